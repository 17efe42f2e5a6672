# SPDX-License-Identifier: Apache-2.0
"""The examples of the pages about Dask and xarray run, and print what pages say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dask.array")
pytest.importorskip("xarray")

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", ["dask.md", "xarray.md"])
def test_examples_run(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = (DOCS / page).read_text()
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(block, names)  # noqa: S102 (they are the project's own pages)
    printed = "".join(re.findall(r"```text\n(.*?)```", text, re.DOTALL))
    assert capsys.readouterr().out == printed
