# SPDX-License-Identifier: Apache-2.0
"""Rows that were assigned to an array are read where they were computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import Assign, Slice
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.tensor import tensor
from nfuser.compiler.rewrite.assignments.forward_assigned_rows import (
    forward_assigned_rows,
)
from tests.hand_built import Hand
from tests.rewrite.beside_numpy import assert_as_numpy

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.ir.tensor import TensorView


def _assigned(
    hand: Hand, whole: TensorView, value: TensorView, place: int, step: int = 1
) -> TensorView:
    """Assign to the rows from ``place`` on."""
    made = tensor(whole.shape, whole.dtype)
    starts = (sc.const(place), sc.const(0))
    hand.exprs.append(Assign(whole, value, made, starts, (step, 1)))
    return made


def _row(hand: Hand, whole: TensorView, place: int) -> TensorView:
    made = tensor((1, whole.shape[1]), whole.dtype)
    starts = (sc.const(place), sc.const(0))
    hand.exprs.append(Slice(whole, made, starts, (1, 1)))
    return made


def _rows(dtype: DType = DType.F32) -> tuple[Hand, TensorView, TensorView]:
    """Return an array of two axes, and a row of it that is computed."""
    hand = Hand()
    whole = hand.argument(2, dtype)
    given = hand.shaped(1, whole.shape[1], dtype=dtype)
    return hand, whole, hand.point("exp", given)


def test_the_row_that_was_assigned_is_the_value() -> None:
    hand, whole, row = _rows()
    made = _assigned(hand, whole, row, 0)
    root = hand.point("sqrt", _row(hand, made, 0))
    fusion = forward_assigned_rows(hand.fusion(made, root))
    assert fusion.definition[fusion.outputs[1]].operands == (row,)  # type: ignore[union-attr]
    assert forward_assigned_rows(fusion) is fusion


@pytest.mark.parametrize(("place", "step"), [(1, 1), (4, 1), (7, 3)])
def test_what_lies_behind_the_row_is_looked_past(place: int, step: int) -> None:
    hand, whole, row = _rows()
    many = hand.shaped(5, whole.shape[1])
    made = _assigned(hand, _assigned(hand, whole, row, 0), many, place, step)
    root = hand.point("sqrt", _row(hand, made, 0))
    fusion = forward_assigned_rows(hand.fusion(made, root))
    assert fusion.definition[fusion.outputs[1]].operands == (row,)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("place", "step", "read"), [(0, 1, 0), (4, -1, 0), (0, 2, 1), (2, 1, 3)]
)
def test_rows_that_may_have_been_overwritten_are_read_from_memory(
    place: int, step: int, read: int
) -> None:
    hand, whole, row = _rows()
    many = hand.shaped(5, whole.shape[1])
    made = _assigned(hand, _assigned(hand, whole, row, read), many, place, step)
    fusion = hand.fusion(made, hand.point("sqrt", _row(hand, made, read)))
    assert forward_assigned_rows(fusion) is fusion


def test_what_memory_rounds_is_read_from_memory() -> None:
    hand, whole, row = _rows(DType.F16)
    made = _assigned(hand, whole, row, 0)
    fusion = hand.fusion(made, hand.point("sqrt", _row(hand, made, 0)))
    assert forward_assigned_rows(fusion) is fusion


def columns(a: Any, b: Any) -> Any:
    """A tridiagonal system in each column, rows last."""
    rows = a.shape[1]
    c, d = np.empty(a.shape), np.empty(a.shape)
    c[:, 0] = a[:, 0] * 0.1
    c[:, 0] = c[:, 0] / (2 + a[:, 0])
    d[:, 0] = b[:, 0] / (2 + a[:, 0])
    for k in range(1, rows):
        m = 2 + a[:, k] - a[:, k] * 0.1 * c[:, k - 1]
        c[:, k] = a[:, k] * 0.1 / m
        d[:, k] = (b[:, k] - a[:, k] * 0.1 * d[:, k - 1]) / m
    for k in range(rows - 2, -1, -1):
        d[:, k] = d[:, k] - c[:, k] * d[:, k + 1]
    return d


def ends(a: Any, b: Any) -> Any:
    """The first and the last row are assigned twice, and read beside each other."""
    c = np.zeros(a.shape)
    c[0] = b[0]
    c[1] = c[0] + b[1]
    c[0] = c[0] * 2 + c[1]
    c[-1] = a[-1] - c[0]
    c[-1] *= c[1]
    return c, c[0] + c[-1]


def old_rows(a: Any, b: Any) -> Any:
    """A row that stays as it was is read before and after its neighbour changes."""
    a[0] = b[0]
    x = a[2] + a[0]
    a[0] = x * a[1]
    a[2] = a[0] - a[1]
    return x + a[2]


def in_turns(a: Any, b: Any) -> Any:
    """Each turn of a loop begins with a row that it has just written."""
    for _ in range(20):
        c = np.zeros(a.shape)
        c[:, 0] = a[:, 0] * 0.5
        for k in range(1, a.shape[1]):
            c[:, k] = 0.5 * c[:, k - 1] + b[:, k]
        a = c * 0.25 + b
    return a


def as_before(a: Any, b: Any) -> Any:
    """What was read before other rows changed is assigned to rows apart from them."""
    c = a * 2
    t = c[:-1] + 0.0
    s = c[0] * b[0]
    c[0] = b[0]
    c[1:] = t * s
    return c, t


def shifted(a: Any, b: Any) -> Any:
    """Rows are assigned what their neighbours were before the first one changed."""
    c = a * 2
    t = c[:-1].copy()
    c[0] = b[0]
    c[1:] = t
    return c


@pytest.mark.parametrize(
    "function", [columns, ends, old_rows, in_turns, as_before, shifted]
)
@pytest.mark.parametrize("shape", [(3, 3), (3, 4), (5, 17), (130, 9)])
def test_results_are_numpys(
    function: Callable[..., Any], shape: tuple[int, int]
) -> None:
    assert_as_numpy(function, shape)


def test_a_sweep_computes_the_row_that_it_begins_with() -> None:
    a, b = np.random.default_rng(7).random((2, 130, 9))
    kernels = nfuser.fuse(columns).lower(a, b).as_text().split("def ")[1:]
    assert len(kernels) == 3, kernels  # both sweeps are one
