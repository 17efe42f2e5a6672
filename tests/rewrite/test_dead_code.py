# SPDX-License-Identifier: Apache-2.0
"""What no output needs is dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.expr import ReduceOp
from nfuser.compiler.ir.text import text
from nfuser.compiler.rewrite.dead_code import drop_dead_code
from tests.hand_built import Hand, hand_softmax

if TYPE_CHECKING:
    from collections.abc import Callable


def test_dead_expressions_go_and_arguments_stay(golden: Callable[[str], None]) -> None:
    hand = Hand()
    x, y = hand.argument(2), hand.argument(1)
    hand.point("exp", hand.point("negative", y))
    hand.reduce(ReduceOp.SUM, x, 0)
    golden(text(drop_dead_code(hand.fusion(hand.point("sin", x)))))


def test_a_result_that_is_not_read_keeps_its_reduction() -> None:
    hand = Hand()
    mean, _ = hand.moments(hand.argument(2), 1)
    fusion = hand.fusion(mean)
    assert drop_dead_code(fusion) is fusion


def test_the_same_object_comes_back_where_all_is_live() -> None:
    fusion = hand_softmax()
    assert drop_dead_code(fusion) is fusion
