# SPDX-License-Identifier: Apache-2.0
"""The page on processes is one script that runs: a cluster, joblib, a pool."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.pages import blocks_of
from tests.processes.scripts import run_script

DOCS = Path(__file__).parents[2] / "docs"
CHECKS = """
if __name__ == "__main__":
    np.testing.assert_allclose((y / WEIGHT).sum(axis=1), 1)
    np.testing.assert_allclose(z, scaled(np.ones((3, 4))))
    for block, one, other in zip(blocks, each, found, strict=True):
        np.testing.assert_allclose(one, scaled(block))
        np.testing.assert_allclose(other, scaled(block))
    print("all agree")
"""


@pytest.mark.timeout(120)
def test_the_blocks_of_the_page_are_one_script(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    pytest.importorskip("joblib")
    script = "\n".join([*blocks_of(DOCS / "howto" / "processes.md"), CHECKS])
    assert run_script(script, tmp_path)[-1] == "all agree"
