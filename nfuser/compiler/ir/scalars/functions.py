# SPDX-License-Identifier: Apache-2.0
"""Functions of scalars beside the operators: extrema, comparisons, choices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.scalars.interning import digest, intern
from nfuser.compiler.ir.scalars.operators import Op
from nfuser.compiler.ir.scalars.scalar import (
    Const,
    Poly,
    Scalar,
    Select,
    as_scalar,
    binary,
    const,
    is_natural,
    lies_below,
    multiply,
)

if TYPE_CHECKING:
    from collections.abc import Iterable


def product(factors: Iterable[Scalar | int]) -> Scalar:
    """Return the product of ``factors``."""
    result: Scalar = const(1)
    for factor in factors:
        result = multiply(result, factor)
    return result


def minimum(lhs: Scalar | int, rhs: Scalar | int) -> Scalar:
    """Return the smaller of the two."""
    return _extremum(Op.MIN, as_scalar(lhs), as_scalar(rhs))


def maximum(lhs: Scalar | int, rhs: Scalar | int) -> Scalar:
    """Return the larger of the two."""
    return _extremum(Op.MAX, as_scalar(lhs), as_scalar(rhs))


def _extremum(op: Op, a: Scalar, b: Scalar) -> Scalar:
    gap = a - b
    if isinstance(gap, Const):
        return a if (gap.value >= 0) == (op is Op.MAX) else b
    for x, zero in ((a, b), (b, a)):
        if zero is const(0) and is_natural(x):
            return x if op is Op.MAX else zero
    return binary(op, *sorted((a, b), key=lambda x: x.key))


def less(lhs: Scalar | int, rhs: Scalar | int) -> Scalar:
    """Return 1 where ``lhs < rhs``, else 0."""
    gap = as_scalar(lhs) - rhs
    if isinstance(gap, Const):
        return const(int(gap.value < 0))
    if lies_below(as_scalar(lhs), as_scalar(rhs)):
        return const(1)
    if is_natural(gap):
        return const(0)
    return binary(Op.LT, as_scalar(lhs), as_scalar(rhs))


def equal(lhs: Scalar | int, rhs: Scalar | int) -> Scalar:
    """Return 1 where the two are equal, else 0."""
    a, b = as_scalar(lhs), as_scalar(rhs)
    is_one_atom = isinstance(b, Const) and not isinstance(a, (Const, Poly))
    gap = None if is_one_atom else a - b  # from a number that is none
    if isinstance(gap, Const):
        return const(int(gap.value == 0))
    return binary(Op.EQ, a, b)


def select(condition: Scalar, then: Scalar | int, other: Scalar | int) -> Scalar:
    """Return ``then`` where ``condition`` is not zero, else ``other``."""
    yes, no = as_scalar(then), as_scalar(other)
    if isinstance(condition, Const):
        return yes if condition.value else no
    if yes is no:
        return yes

    def key() -> tuple[int, ...]:
        return (6, digest(condition.key, yes.key, no.key))

    return intern(Select, key, condition, yes, no)
