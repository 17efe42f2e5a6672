# SPDX-License-Identifier: Apache-2.0
"""Loops that read beyond an array end, and raise IndexError as plain Python does."""

# Programs are given, and give, what has no static type.
# pyright: basic

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser import lax
from tests.trace.loops.search_cases import CASES
from tests.trace.loops.searches import first_at_least, linked

if TYPE_CHECKING:
    from collections.abc import Callable


def outcome(program: Callable[..., Any], given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return what a call gives or raises, and what it leaves of its arrays."""
    copies = [np.array(x) if isinstance(x, np.ndarray) else x for x in given]
    try:
        found = program(*copies)
    except IndexError:
        found = IndexError
    arrays = [x.tolist() for x in copies if isinstance(x, np.ndarray)]
    if found is not None and found is not IndexError:
        found = np.asarray(found).tolist()
    return found, arrays


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
@pytest.mark.parametrize("program", CASES, ids=lambda f: f.__name__)
def test_searches_end_as_pythons_do(program: Callable[..., Any], backend: str) -> None:
    fused = nfuser.fuse(program, backend=backend)
    for given in CASES[program]:
        assert outcome(fused, given) == outcome(program, given), given
        if backend == "cpu":  # as native code runs it
            for _ in range(3):
                assert outcome(fused, given) == outcome(program, given), given


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
def test_rows_of_vmap_that_read_beyond_raise(backend: str) -> None:
    rows = nfuser.fuse(nfuser.vmap(linked, in_axes=(None, 0)), backend=backend)
    x = np.array([3, 1, -1, 2, 4, 7])
    assert rows(x, np.array([0, 2, 3])).tolist() == [2, 0, 1]
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with"):
        rows(x, np.array([0, 5, 3]))
    assert rows(x, np.array([3, 2, 0])).tolist() == [1, 0, 2]


def test_the_line_that_reads_beyond_is_told() -> None:
    with pytest.raises(IndexError) as caught:
        nfuser.fuse(first_at_least)(np.arange(4), 9)
    assert "index 4 is out of bounds for axis 0 with size 4" in str(caught.value)
    assert "while x[c] < v:" in str(caught.value)


def _until_less(x, v):
    return lax.while_loop(lambda c: x[c] < v, lambda c: c + 1, 0)


def test_loops_of_lax_end_where_they_read_beyond() -> None:
    fused = nfuser.fuse(_until_less)
    assert fused(np.arange(4), 2) == 2
    with pytest.raises(IndexError, match="index 4 is out of bounds"):
        fused(np.arange(4), 9)


def _bounded(x, v):
    c = 0
    while c < len(x) and x[c] < v:
        c += 1
    return c


def test_nobody_looks_where_a_condition_says_that_elements_are_there() -> None:
    fused = nfuser.fuse(_bounded)
    x = np.arange(4)
    assert fused(x, 9) == 4
    assert "indexing" not in str(fused.explain(x, 9))
    assert "indexing" in str(nfuser.fuse(first_at_least).explain(x, 2))
