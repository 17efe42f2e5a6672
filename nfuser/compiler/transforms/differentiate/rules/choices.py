# SPDX-License-Identifier: Apache-2.0
"""Operations that give one of their operands, element by element.

A cotangent goes to the operand that was taken. It is not multiplied with 0 elsewhere
but left out, so that what the other operand is there, be it not a number, is all one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.transforms.differentiate.numbers import Numbers


def _selected(
    n: Numbers, t: TensorView, given: tuple[TensorView, ...], place: int
) -> tuple[TensorView, TensorView]:
    return t, given[0] if place == 1 else n.invert(given[0])


def _ordered(name: str) -> Rule:
    """Return the rule of maximum or minimum: equal operands share."""

    def rule(
        n: Numbers, t: TensorView, given: tuple[TensorView, ...], place: int
    ) -> tuple[TensorView, TensorView]:
        own, other = given[place], given[1 - place]
        tie = n.equal(own, other)
        return n.select(tie, n.scaled(t, 0.5), t), getattr(n, name)(own, other)

    return rule


def _of_numbers(name: str) -> Rule:
    """Return the rule of fmax or fmin: of equal operands the second is taken."""

    def rule(
        n: Numbers, t: TensorView, given: tuple[TensorView, ...], place: int
    ) -> tuple[TensorView, TensorView]:
        first = n.bit_or(getattr(n, name)(*given), n.isnan(given[1]))
        return t, first if place == 0 else n.invert(first)

    return rule


def _bounded(name: str) -> Rule:
    """Return the rule of torch's clamp: what lies at the bound is taken."""

    def rule(
        n: Numbers, t: TensorView, given: tuple[TensorView, ...], place: int
    ) -> tuple[TensorView, TensorView]:
        inside = getattr(n, name)(*given)
        return t, inside if place == 0 else n.invert(inside)

    return rule


def _positive(
    n: Numbers, t: TensorView, given: tuple[TensorView, ...], place: int
) -> tuple[TensorView, TensorView]:
    del place
    return t, n.greater(given[0], n(0.0))


if TYPE_CHECKING:
    Rule = Callable[
        [Numbers, TensorView, tuple[TensorView, ...], int],
        tuple[TensorView, TensorView],
    ]

CHOICES: dict[str, Rule] = {
    "select": _selected,
    "maximum": _ordered("greater_equal"),
    "minimum": _ordered("less_equal"),
    "fmax": _of_numbers("greater"),
    "fmin": _of_numbers("less"),
    "at_least": _bounded("greater_equal"),
    "at_most": _bounded("less_equal"),
    "relu": _positive,
}
"""What operand ``place`` gets of ``t``, and where it was taken."""
