# SPDX-License-Identifier: Apache-2.0
"""The cells that libraries are compared on are the same cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from asv_bench.compare.notebook_cells import CELLS, Cell, data

GIVEN = data()


def _found(text: str, cell: Cell) -> Any:
    names: dict[str, Any] = {"np": np}
    exec(text, names)  # noqa: S102 (a cell is run so)
    return names["f"](*(GIVEN[name] for name in cell.arguments))


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_loops_give_what_arrays_do_and_edits_change_it(cell: Cell) -> None:
    plain, loops = cell.versions("nfuser"), cell.versions("numba")
    results = [_found(text, cell) for text in plain]
    for text, expected in zip(loops, results, strict=True):
        np.testing.assert_allclose(_found(text, cell), expected, 1e-9, 1e-9)
    first, edited = (np.ravel(result) for result in results)
    assert first.shape != edited.shape or not np.array_equal(first, edited)
