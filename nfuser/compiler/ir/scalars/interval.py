# SPDX-License-Identifier: Apache-2.0
"""Between which integers a scalar lies, whatever the sizes of a call are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

from nfuser.compiler.ir.scalars.operators import Op
from nfuser.compiler.ir.scalars.scalar import Binary, Const, Poly, Size

if TYPE_CHECKING:
    from nfuser.compiler.ir.scalars.scalar import Scalar

LARGEST_SIZE = 2**63 - 1
Interval: TypeAlias = tuple[int, int]


def interval(x: Scalar) -> Interval | None:
    """Return the least and the largest value that the form of ``x`` allows, if any.

    An integer that the caller passes may be any, and what is computed of it as well.
    """
    match x:
        case Const(number):
            return number, number
        case Size():
            return 0, LARGEST_SIZE
        case Poly(terms):
            return _sum([(c, [interval(a) for a in m]) for m, c in terms])
        case Binary(op, lhs, rhs):
            a, b = interval(lhs), interval(rhs)
            return _of_two(op, a, b) if a and b else None
        case _:
            return None


def _sum(terms: list[tuple[int, list[Interval | None]]]) -> Interval | None:
    least, largest = 0, 0
    for coefficient, factors in terms:
        known = [f for f in factors if f is not None and f[0] >= 0]
        if len(known) < len(factors):
            return None
        ends = [coefficient * math.prod(f[end] for f in known) for end in (0, 1)]
        least, largest = least + min(ends), largest + max(ends)
    return least, largest


def _of_two(op: Op, a: Interval, b: Interval) -> Interval | None:
    match op:
        case Op.FLOORDIV if b[0] > 0:
            return min(a[0] // b[0], a[0] // b[1]), max(a[1] // b[0], a[1] // b[1])
        case Op.MOD if b[0] > 0:
            return 0, b[1] - 1
        case Op.MIN:
            return min(a[0], b[0]), min(a[1], b[1])
        case Op.MAX:
            return max(a[0], b[0]), max(a[1], b[1])
        case _:
            return None
