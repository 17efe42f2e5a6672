# SPDX-License-Identifier: Apache-2.0
"""What is written twice is computed once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import Constant, ReduceOp
from nfuser.compiler.ir.text import text
from nfuser.compiler.rewrite.common_subexpressions import merge_common_subexpressions
from tests.hand_built import Hand, hand_softmax

if TYPE_CHECKING:
    from collections.abc import Callable


def test_equal_chains_become_one(golden: Callable[[str], None]) -> None:
    hand = Hand()
    x = hand.argument(2)
    rows = [
        hand.expand_dims(hand.reduce(ReduceOp.SUM, hand.point("exp", x), 1), 1)
        for _ in range(2)
    ]
    fusion = hand.fusion(hand.point("divide", rows[0], rows[1], shape=rows[0].shape))
    golden(text(merge_common_subexpressions(fusion)))


def test_what_differs_in_one_field_stays_apart() -> None:
    hand = Hand()
    x = hand.argument(2)
    n, m = x.shape
    parts = [
        hand.reduce(ReduceOp.SUM, x, 0),
        hand.reduce(ReduceOp.SUM, x, 1),
        hand.reduce(ReduceOp.MAX, x, 1),
        hand.slice(x, (0, 0), (1, 1), (n, m)),
        hand.slice(x, (1, 0), (1, 1), (n, m)),
        hand.slice(x, (0, 0), (2, 1), (n, m)),
        hand.cast(x, DType.F64),
        hand.cast(x, DType.I32),
    ]
    ends = [hand.point("copy", part) for part in parts]
    fusion = hand.fusion(*ends)
    assert merge_common_subexpressions(fusion) is fusion


@pytest.mark.parametrize(
    ("a", "b", "dtype"),
    [(0.0, -0.0, DType.F32), (1, True, DType.I64), (1, 1.0, DType.F64)],
)
def test_numbers_that_only_compare_equal_stay_apart(
    a: float, b: float, dtype: DType
) -> None:
    hand = Hand()
    x = hand.shaped(3, dtype=dtype)
    sums = [hand.point("add", x, hand.constant(v, dtype)) for v in (a, b)]
    fusion = hand.fusion(hand.point("multiply", *sums))
    assert merge_common_subexpressions(fusion) is fusion


def test_equal_numbers_become_one() -> None:
    hand = Hand()
    x = hand.shaped(3)
    sums = [hand.point("add", x, hand.constant(0.5)) for _ in range(2)]
    made = merge_common_subexpressions(hand.fusion(hand.point("multiply", *sums)))
    assert sum(isinstance(e, Constant) for e in made.exprs) == 1
    assert len(made.exprs) == 4


def test_outputs_keep_their_buffers() -> None:
    hand = Hand()
    x = hand.argument(1)
    fusion = hand.fusion(hand.point("exp", x), hand.point("exp", x))
    assert merge_common_subexpressions(fusion) is fusion


def test_the_same_object_comes_back_where_nothing_repeats() -> None:
    fusion = hand_softmax()
    assert merge_common_subexpressions(fusion) is fusion


def test_outputs_that_are_one_reduction_are_found_once() -> None:
    hand = Hand()
    x = hand.argument(2)
    sums = [hand.reduce(ReduceOp.SUM, x, 1) for _ in range(2)]
    made = merge_common_subexpressions(hand.fusion(*sums))
    assert made.outputs[0] is made.outputs[1]
    assert len(made.exprs) == 2
