# SPDX-License-Identifier: Apache-2.0
"""Parts that were assigned to an array are read where they were computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import Assign, Slice
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.tensor import tensor
from nfuser.compiler.rewrite.assignments.forward_assigned_parts import (
    forward_assigned_parts,
)
from nfuser.compiler.rewrite.dead_code import drop_dead_code
from tests.hand_built import Hand
from tests.rewrite.beside_numpy import assert_as_numpy

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.tensor import TensorView


def _inner(
    hand: Hand, whole: TensorView, value: TensorView, start: int, step: int = 1
) -> TensorView:
    """Assign from one row on, and not to the last columns."""
    made = tensor(whole.shape, whole.dtype)
    starts = (sc.const(start), sc.const(0))
    hand.exprs.append(Assign(whole, value, made, starts, (step, 1)))
    return made


def _read(hand: Hand, whole: TensorView, start: int, dropped: int) -> TensorView:
    """Read from one row on, without so many rows in all."""
    n, m = whole.shape
    made = tensor((n - dropped, m - 1), whole.dtype)
    starts = (sc.const(start), sc.const(0))
    hand.exprs.append(Slice(whole, made, starts, (1, 1)))
    return made


def _given(dtype: DType = DType.F32) -> tuple[Hand, TensorView, TensorView]:
    """Return an array, and a value without its first row and its last column."""
    hand = Hand()
    whole = hand.argument(2, dtype)
    n, m = whole.shape
    given = hand.shaped(n - 1, m - 1, dtype=dtype)
    return hand, whole, hand.point("exp", given)


def _slices(fusion: Fusion) -> list[Slice]:
    return [e for e in fusion.exprs if isinstance(e, Slice)]


def test_a_part_of_what_was_assigned_is_a_part_of_the_value() -> None:
    hand, whole, value = _given()
    made = _inner(hand, whole, value, 1)
    root = hand.point("sqrt", _read(hand, made, 2, 3))
    fusion = drop_dead_code(forward_assigned_parts(hand.fusion(root)))
    (read,) = _slices(fusion)
    assert read.source is value
    assert read.starts == (sc.const(1), sc.const(0))
    assert not fusion.assignments
    assert forward_assigned_parts(fusion) is fusion


def test_all_that_was_assigned_is_the_value() -> None:
    hand, whole, value = _given()
    made = _inner(hand, whole, value, 1)
    root = hand.point("sqrt", _read(hand, made, 1, 1))
    fusion = forward_assigned_parts(hand.fusion(root))
    assert fusion.definition[root].operands == (value,)  # type: ignore[union-attr]


@pytest.mark.parametrize(("start", "dropped"), [(0, 1), (2, 1), (0, 4)])
def test_rows_in_front_of_it_and_behind_it_are_read_from_memory(
    start: int, dropped: int
) -> None:
    hand, whole, value = _given()
    made = _inner(hand, whole, value, 1)
    inside = hand.point("exp", _read(hand, made, 1, 2))
    root = hand.point("sqrt", _read(hand, made, start, dropped))
    fusion = hand.fusion(root, inside)
    assert forward_assigned_parts(fusion) is fusion


def test_an_array_that_is_returned_keeps_what_is_read() -> None:
    hand, whole, value = _given()
    made = _inner(hand, whole, value, 1)
    fusion = hand.fusion(made, hand.point("sqrt", _read(hand, made, 1, 2)))
    assert forward_assigned_parts(fusion) is fusion


def test_steps_are_read_from_memory() -> None:
    hand, whole, value = _given()
    made = _inner(hand, whole, value, 1, 2)
    fusion = hand.fusion(hand.point("sqrt", _read(hand, made, 1, 2)))
    assert forward_assigned_parts(fusion) is fusion


def test_what_memory_rounds_is_read_from_memory() -> None:
    hand, whole, value = _given(DType.F16)
    made = _inner(hand, whole, value, 1)
    fusion = hand.fusion(hand.point("sqrt", _read(hand, made, 1, 2)))
    assert forward_assigned_parts(fusion) is fusion


def test_one_array_after_another_is_gone() -> None:
    hand, whole, value = _given()
    made = _inner(hand, whole, value, 1)
    again = _inner(hand, made, hand.point("exp", _read(hand, made, 1, 1)), 1)
    other = _inner(hand, whole, _read(hand, again, 1, 1), 1)
    root = hand.point("sqrt", _read(hand, other, 2, 2))
    fusion = drop_dead_code(forward_assigned_parts(hand.fusion(root)))
    assert not fusion.assignments
    assert len(_slices(fusion)) == 1


def halos(a: Any, b: Any) -> Any:
    flux, across = np.zeros_like(a), np.zeros_like(a)
    flux[:-1] = (a[1:] - a[:-1]) * b[1:]
    across[1:-1, 1:-1] = flux[1:-1, 1:-1] + flux[:-2, 1:-1] * a[1:-1, 2:]
    a[2:-2, 2:-2] += across[2:-2, 2:-2] - across[1:-3, 2:-2]
    return a


def chained(a: Any, b: Any) -> Any:
    """An array is assigned a part of another one, and multiplied in place."""
    one, other = np.zeros_like(a), np.zeros_like(a)
    one[1:] = a[1:] * 2
    other[:-1] = one[1:]
    other[:-1] *= b[1:]
    return other[1:-1] + one[2:], other[:-2] * a[:-2]


def seen_whole(a: Any, b: Any) -> Any:
    """What was assigned is read alone, and then with what lies around it."""
    c = np.ones_like(a)
    c[1:-1] = a[1:-1] + b[2:]
    return c[2:-1] * 2, c[1:] - c[:-1], np.sqrt(c)


def overwritten(a: Any, b: Any) -> Any:
    """Parts of two assignments meet, and each is read where it lies."""
    c = np.zeros_like(a)
    c[:-1] = a[1:]
    x = c[1:-1] + 1
    c[2:] = b[2:]
    y = c[2:] * 2
    c[1:-1] = x
    return c[1:-1] + x, y


@pytest.mark.parametrize("function", [halos, chained, seen_whole, overwritten])
@pytest.mark.parametrize("shape", [(4, 4), (5, 6), (17, 33), (2, 3), (3, 1), (130, 9)])
def test_results_are_numpys(
    function: Callable[..., Any], shape: tuple[int, int]
) -> None:
    assert_as_numpy(function, shape)


def test_an_array_of_which_only_the_inner_part_is_read_is_never_made() -> None:
    def across(a: Any, b: Any) -> Any:
        flux = np.zeros_like(a)
        flux[:-1] = a[1:] * b[:-1]
        return flux[1:-1] - b[1:-1]

    a, b = np.random.default_rng(7).random((2, 130, 9))
    assert nfuser.fuse(across).explain(a, b).kernels == 1
