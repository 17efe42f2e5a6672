# SPDX-License-Identifier: Apache-2.0
"""Casts that change nothing are taken out, casts of constants folded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import Constant
from nfuser.compiler.ir.text import text
from nfuser.compiler.ir.verify import verify_fusion
from nfuser.compiler.rewrite.dead_code import drop_dead_code
from nfuser.compiler.rewrite.types.casts import simplify_casts
from tests.hand_built import Hand, hand_softmax

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_cast_to_the_same_dtype_is_taken_out(golden: Callable[[str], None]) -> None:
    hand = Hand()
    x = hand.argument(1)
    fusion = hand.fusion(hand.point("exp", hand.cast(x, DType.F32)))
    golden(text(simplify_casts(fusion)))


def test_exact_pairs_are_joined(golden: Callable[[str], None]) -> None:
    hand = Hand()
    x = hand.argument(1, DType.BF16)
    there = hand.cast(hand.cast(x, DType.F32), DType.BF16)
    further = hand.cast(hand.cast(there, DType.F32), DType.F64)
    fusion = hand.fusion(hand.point("exp", further), hand.point("negative", there))
    made = simplify_casts(fusion)
    verify_fusion(made)
    golden(text(drop_dead_code(made)))


NARROWING = [
    (DType.F32, DType.BF16),
    (DType.F32, DType.F16),
    (DType.BF16, DType.F16),
    (DType.F16, DType.BF16),
    (DType.F64, DType.F32),
    (DType.I32, DType.F32),
    (DType.I64, DType.F64),
    (DType.I32, DType.I16),
    (DType.I8, DType.U16),
    (DType.U8, DType.I8),
    (DType.F32, DType.I64),
    (DType.I8, DType.BOOL),
]
WIDENING = [
    (DType.BF16, DType.F32),
    (DType.F16, DType.F64),
    (DType.F32, DType.F64),
    (DType.U8, DType.BF16),
    (DType.I16, DType.F32),
    (DType.U32, DType.F64),
    (DType.U32, DType.I64),
    (DType.I8, DType.I16),
    (DType.BOOL, DType.U8),
    (DType.BOOL, DType.F16),
]


def _casts_left(first: DType, through: DType, last: DType) -> int:
    hand = Hand()
    x = hand.argument(1, first)
    there = hand.cast(hand.cast(x, through), last)
    fusion = hand.fusion(hand.point("copy", there))
    made = drop_dead_code(simplify_casts(fusion))
    return len(made.exprs) - 2


@pytest.mark.parametrize(("first", "through"), NARROWING)
def test_a_cast_that_may_lose_something_stays(first: DType, through: DType) -> None:
    assert _casts_left(first, through, first) == 2


@pytest.mark.parametrize(("first", "through"), WIDENING)
def test_a_cast_that_keeps_everything_goes(first: DType, through: DType) -> None:
    assert _casts_left(first, through, first) == 0


@pytest.mark.parametrize(("first", "through"), [*NARROWING, *WIDENING])
def test_exactness_is_that_of_the_values(first: DType, through: DType) -> None:
    values = _sample(first)
    with np.errstate(all="ignore"):
        there = values.astype(through.numpy)
        back = there.astype(first.numpy)
    kept = (first, through) in WIDENING
    assert np.array_equal(back, values) == kept or first.is_integer
    if kept:
        assert np.array_equal(there.astype(np.float64), values.astype(np.float64))


def _sample(dtype: DType) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    if dtype.is_bool:
        return np.array([False, True])
    if dtype.is_integer:
        limits = np.iinfo(dtype.numpy.name)
        return np.array([limits.min, limits.max, limits.max - 1], dtype.numpy)
    numbers = [1.0, 1 / 3, 2.0**-20 / 3, 1000 / 3]
    return np.array(numbers, np.float64).astype(dtype.numpy)


def test_a_cast_of_a_constant_is_folded(golden: Callable[[str], None]) -> None:
    hand = Hand()
    x = hand.argument(1)
    third = hand.cast(hand.constant(1 / 3, DType.F64), DType.F32)
    golden(text(simplify_casts(hand.fusion(hand.point("multiply", x, third)))))


@pytest.mark.parametrize(
    ("number", "dtype"),
    [(2**60 + 2**36 + 1, DType.I64), (1e300, DType.F64), (-1e-300, DType.F64)],
)
def test_a_constant_is_cast_as_an_array_of_its_dtype_is(
    number: float, dtype: DType
) -> None:
    hand = Hand()
    x = hand.argument(1)
    narrow = hand.cast(hand.constant(number, dtype), DType.F32)
    made = simplify_casts(hand.fusion(hand.point("multiply", x, narrow)))
    with np.errstate(over="ignore"):
        expected = np.array(number, dtype.numpy).astype(np.float32)
    constants = [e.value for e in made.exprs if isinstance(e, Constant)]
    assert str(float(expected)) in [str(value) for value in constants]


def test_an_output_keeps_its_own_buffer() -> None:
    hand = Hand()
    x = hand.argument(1)
    fusion = hand.fusion(hand.cast(x, DType.F32))
    assert simplify_casts(fusion) is fusion


def test_the_same_object_comes_back_where_nothing_is_cast() -> None:
    fusion = hand_softmax()
    assert simplify_casts(fusion) is fusion
