# SPDX-License-Identifier: Apache-2.0
"""Of a choice whose condition is a constant one side remains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.text import text
from nfuser.compiler.rewrite.known_choices import take_known_choices
from tests.hand_built import Hand, hand_softmax

if TYPE_CHECKING:
    from collections.abc import Callable


def test_the_chosen_side_is_taken(golden: Callable[[str], None]) -> None:
    hand = Hand()
    x, y = hand.argument(0), hand.argument(0)
    yes, no = (hand.constant(answer, DType.BOOL) for answer in (True, False))
    chosen = hand.point("select", yes, hand.point("exp", x), y)
    other = hand.point("select", no, hand.point("sin", x), y)
    total = hand.point("add", chosen, other)
    golden(text(take_known_choices(hand.fusion(total, chosen))))


def test_a_condition_that_is_computed_remains() -> None:
    hand = Hand()
    x, y = hand.argument(1), hand.argument(1)
    fusion = hand.fusion(hand.point("select", hand.point("less", x, y), x, y))
    assert take_known_choices(fusion) is fusion


def test_a_side_that_the_other_stretches_remains() -> None:
    hand = Hand()
    never = hand.constant(False, DType.BOOL)
    x, y = hand.argument(1), hand.argument(0)
    fusion = hand.fusion(hand.point("select", never, x, y))
    assert take_known_choices(fusion) is fusion


def test_the_same_object_comes_back_where_nothing_is_chosen() -> None:
    fusion = hand_softmax()
    assert take_known_choices(fusion) is fusion
