# SPDX-License-Identifier: Apache-2.0
"""Programs that write where others read; the command line tries thousands."""

from __future__ import annotations

import pytest

from tests.host.updates import check_updates


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("seed", range(40))
def test_a_random_program_of_updates(seed: int, library: str) -> None:
    if library == "numpy":
        check_updates(seed)
    else:
        check_updates(seed, pytest.importorskip("torch").from_numpy)
