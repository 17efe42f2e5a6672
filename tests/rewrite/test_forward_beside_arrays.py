# SPDX-License-Identifier: Apache-2.0
"""What goes on with a value reads it where it was computed, though an array has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import Assign, Slice
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.tensor import tensor
from nfuser.compiler.rewrite.assignments.forward_beside_arrays import (
    forward_beside_arrays,
)
from tests.hand_built import Hand
from tests.rewrite.beside_numpy import assert_as_numpy

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.ir.expr import Pointwise
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.tensor import TensorView


def _given(dtype: DType = DType.F32) -> tuple[Hand, TensorView, TensorView]:
    """Return an array, and what is assigned to all its rows but the first."""
    hand = Hand()
    whole = hand.argument(2, dtype)
    n, m = whole.shape
    return hand, whole, hand.point("exp", hand.shaped(n - 1, m, dtype=dtype))


def _assigned(hand: Hand, whole: TensorView, value: TensorView) -> TensorView:
    made = tensor(whole.shape, whole.dtype)
    hand.exprs.append(Assign(whole, value, made, (sc.const(1), sc.const(0)), (1, 1)))
    return made


def _read(hand: Hand, whole: TensorView, start: int) -> TensorView:
    n, m = whole.shape
    made = tensor((n - 1, m), whole.dtype)
    hand.exprs.append(Slice(whole, made, (sc.const(start), sc.const(0)), (1, 1)))
    return made


def _operands(fusion: Fusion, root: TensorView) -> tuple[TensorView, ...]:
    made: Pointwise = fusion.definition[root]  # type: ignore[assignment]
    return made.operands


def test_what_goes_on_with_a_value_has_it_from_where_it_was_computed() -> None:
    hand, whole, value = _given()
    made = _assigned(hand, whole, value)
    root = hand.point("sqrt", _read(hand, made, 1))
    fusion = forward_beside_arrays(hand.fusion(root, made))
    assert _operands(fusion, root) == (value,)
    assert fusion.assignments


def test_rows_beside_it_are_read_from_memory() -> None:
    hand, whole, value = _given()
    made = _assigned(hand, whole, value)
    root = hand.point("sqrt", _read(hand, made, 0))
    fusion = hand.fusion(root, made)
    assert forward_beside_arrays(fusion) is fusion


def test_what_waits_for_neighbours_reads_from_memory() -> None:
    hand, whole, value = _given()
    made = _assigned(hand, whole, value)
    root = hand.point("add", _read(hand, made, 1), _read(hand, made, 0))
    fusion = hand.fusion(root, made)
    assert forward_beside_arrays(fusion) is fusion


def test_what_waits_for_neighbours_of_what_the_value_is_made_of_does_too() -> None:
    hand, whole, value = _given()
    made = _assigned(hand, whole, hand.point("sqrt", value))
    pushed = _read(hand, _assigned(hand, whole, value), 0)
    root = hand.point("add", _read(hand, made, 1), pushed)
    fusion = hand.fusion(root, made)
    assert forward_beside_arrays(fusion) is fusion


def test_what_memory_rounds_is_read_from_memory() -> None:
    hand, whole, value = _given(DType.F16)
    made = _assigned(hand, whole, value)
    fusion = hand.fusion(hand.point("sqrt", _read(hand, made, 1)), made)
    assert forward_beside_arrays(fusion) is fusion


def test_a_value_that_is_assigned_again_is_forwarded_as_well() -> None:
    hand, whole, value = _given()
    made = _assigned(hand, whole, value)
    again = _assigned(hand, whole, _read(hand, made, 1))
    fusion = forward_beside_arrays(hand.fusion(made, again))
    assert [a.value for a in fusion.assignments] == [value, value]


def kept_and_gone_on_with(a: Any, b: Any) -> Any:
    mixing, flux = np.zeros_like(a), np.zeros_like(a)
    mixing[1:-1, 1:] = np.maximum(a[1:-1, 1:], 0.5) * b[2:, 1:]
    flux[1:-1, 1:] = mixing[1:-1, 1:] * (a[1:-1, 1:] - a[1:-1, :-1])
    return mixing, flux[2:] - flux[:-2]


def of_the_callers(a: Any, b: Any) -> Any:
    """What is assigned to an argument is read there, overwritten, and read again."""
    a[1:] = b[:-1] * 2
    x = a[1:] + 1
    a[1:] = x * b[1:]
    y = a[1:] - b[1:]
    b[1:] = y
    return x, y + b[1:], a[:-1] * 3


def neighbours(a: Any, b: Any) -> Any:
    a[1:-1] = b[:-2] + b[2:]
    b[1:-1] = a[1:-1] + a[2:] + a[:-2]
    a[1:-1] += b[1:-1] * a[1:-1]
    return a, b


def folded(a: Any, b: Any) -> Any:
    c = np.ones_like(a)
    c[:, 1:] = a[:, 1:] * b[:, 1:]
    return c, c[:, 1:] / (1 + np.abs(c[:, 1:]).sum(axis=0)), c.sum()


@pytest.mark.parametrize(
    "function", [kept_and_gone_on_with, of_the_callers, neighbours, folded]
)
@pytest.mark.parametrize("shape", [(4, 4), (5, 6), (17, 33), (2, 3), (3, 1), (130, 9)])
def test_results_are_numpys(
    function: Callable[..., Any], shape: tuple[int, int]
) -> None:
    assert_as_numpy(function, shape)


def test_a_value_that_an_array_keeps_is_read_by_its_own_kernel() -> None:
    def flux(a: Any, b: Any) -> Any:
        mixing = np.zeros_like(a)
        mixing[1:] = np.maximum(a[1:], 0.5)
        return mixing, mixing[1:] * b[1:]

    a, b = np.random.default_rng(7).random((2, 130, 9))
    shown = nfuser.fuse(flux).explain(a, b)
    assert shown.kernels == 2  # one fills the array


def test_what_overwrites_the_elements_it_is_made_of_is_not_stored_twice() -> None:
    def step(a: Any, b: Any) -> Any:
        a[1:] += b[1:]
        c = a[1:] * 2
        b[:-1] = c
        return c.sum()

    a, b = np.random.default_rng(7).random((2, 130, 9))
    assert nfuser.fuse(step).explain(a, b).kernels == 2
