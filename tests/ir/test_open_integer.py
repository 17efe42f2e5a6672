# SPDX-License-Identifier: Apache-2.0
"""Open integers: what is decided on them is noted, and nothing else."""

from __future__ import annotations

import operator
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

import nfuser.compiler.ir.scalars.functions as scalar_functions
import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.open_integer import Asked, OpenInteger, closed

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.ir.scalars.scalar import Scalar

N, M = scalar_symbols.size(0, 0), scalar_symbols.size(0, 1)

DECISIONS: dict[str, Callable[[Any, Any], Any]] = {
    "less": lambda n, m: n < m,
    "at most": lambda n, m: n + 3 <= 2 * m,
    "equal": lambda n, m: n == m,
    "unequal": lambda n, m: n != m - 1,
    "more": lambda n, m: n * m < 7,
    "truth": lambda n, m: bool(n - m),
    "largest": lambda n, m: max(n, m, 4) > 4,
    "whole": lambda n, m: n % 4 == 0,
    "shifted": lambda n, m: (n >> 2) > (m << 1),
    "size": lambda n, m: abs(n - m) > 2,
    "hash": lambda n, m: {n: 1}.get(3),
    "range": lambda n, m: len(range(n)),
    "float": lambda n, m: n * 0.5 > m / 2,
    "bits": lambda n, m: (n & 3, n.bit_length() if n else 0),
    "powers": lambda n, m: n**2 + 2**m > 40,
    "words": lambda n, m: (n | m, n ^ 3, ~m, round(n), divmod(17, m + 1)),
    "division": lambda n, m: (n // m if m else 0) > 1,
    "turned division": lambda n, m: (100 // n if n else 0) > (100 % m if m else 0),
}


@pytest.mark.parametrize("decision", DECISIONS)
def test_numbers_with_the_same_answers_decide_alike(decision: str) -> None:
    decide = DECISIONS[decision]
    for today in ((3, 5), (8, 8), (0, 2), (9, 1), (4, 0)):
        asked = Asked()
        n, m = (asked.open(s, k) for s, k in zip((N, M), today, strict=True))
        found = decide(n, m)
        assert found == decide(*today)
        for other in product(range(12), repeat=2):
            values: dict[Scalar, int] = {N: other[0], M: other[1]}
            answers = scalar_walk.evaluate_all(asked.answers, values)
            if answers == list(asked.answers.values()):
                assert decide(*other) == found


def test_arithmetic_alone_asks_nothing() -> None:
    asked = Asked()
    n = asked.open(N, 5)
    made: Any = (3 * n - 1 + n * n) // 4 % 7 + -n
    assert isinstance(made, OpenInteger)
    assert made.today == (15 - 1 + 25) // 4 % 7 - 5
    assert not asked.answers
    assert n - n == 0
    assert not asked.answers


@pytest.mark.parametrize("act", [int, operator.index, str, float])
def test_a_value_that_is_wanted_is_noted(act: Callable[[Any], Any]) -> None:
    asked = Asked()
    assert act(asked.open(N, 5)) == act(5)
    if act is not str:  # a message may name it
        assert asked.answers == {scalar_functions.equal(N, 5): 1}


def test_closed_values_hold_plain_integers() -> None:
    asked = Asked()
    found = closed((1, (asked.open(N, 5), "x"), frozenset({2})))
    assert found == (1, (5, "x"), frozenset({2}))
    assert type(found[1][0]) is int
    assert asked.answers == {scalar_functions.equal(N, 5): 1}


def test_messages_name_the_number_of_today() -> None:
    n = Asked().open(N, 1234567)
    assert f"{n} {n:,}" == "1234567 1,234,567"
