# SPDX-License-Identifier: Apache-2.0
"""Integer expressions: sizes, strides, loop indices and what is computed of them.

A scalar is built by operators and by the functions here, which fold, normalise and
intern: two scalars that were built alike are the same object. Sums of products are
kept in one normal form (a ``Poly``), so that index arithmetic comes out short however
it was put together. All symbols stand for non-negative integers; divisors are positive.
"""

from __future__ import annotations

import operator
from dataclasses import fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self, SupportsIndex, TypeAlias, cast

from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.scalars.interning import digest, intern, interned_again
from nfuser.compiler.ir.scalars.operators import PLACES, Op

if TYPE_CHECKING:
    from collections.abc import Mapping


class _Arithmetic:
    """Operators for scalars; an ``int`` on either side is a constant."""

    __slots__ = ()

    def __add__(self, other: Scalar | int) -> Scalar:
        return add(cast("Scalar", self), other)

    __radd__ = __add__

    def __neg__(self) -> Scalar:
        return multiply(cast("Scalar", self), -1)

    def __sub__(self, other: Scalar | int) -> Scalar:
        return _difference(cast("Scalar", self), as_scalar(other))

    def __rsub__(self, other: Scalar | int) -> Scalar:
        return _difference(as_scalar(other), cast("Scalar", self))

    def __mul__(self, other: Scalar | int) -> Scalar:
        return multiply(cast("Scalar", self), other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Scalar | int) -> Scalar:
        return floor_divide(cast("Scalar", self), other)

    def __mod__(self, other: Scalar | int) -> Scalar:
        return modulo(cast("Scalar", self), other)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        """Pickle how it is found: equal scalars are one object in each process."""
        names = (f.name for f in fields(cast("Any", self)))
        return interned_again, (type(self), *(getattr(self, name) for name in names))


@node
class Const(_Arithmetic):
    """A literal integer."""

    value: int
    key: tuple[int, ...]


@node
class Size(_Arithmetic):
    """The extent of argument ``slot`` along ``axis``."""

    slot: int
    axis: int
    key: tuple[int, ...]


@node
class ScalarInput(_Arithmetic):
    """The value of the integer scalar that is argument ``slot``."""

    slot: int
    key: tuple[int, ...]


@node
class Stride(_Arithmetic):
    """The step, in elements, of tensor ``tensor`` of a segment along ``axis``."""

    tensor: int
    axis: int
    key: tuple[int, ...]


@node
class Knob(_Arithmetic):
    """A number of a launch that a kernel serves whatever it is; at least 1."""

    name: str
    key: tuple[int, ...]


@node
class LoopIndex(_Arithmetic):
    """The index of loop ``number`` of a kernel: ``0 <= index < extent``."""

    number: int
    extent: Scalar
    key: tuple[int, ...]


@node
class Datum(_Arithmetic):
    """The element of the integer ``tensor`` at ``index``, read in the kernel.

    It names one of ``extent`` elements, from the end if it is negative; nothing but
    those, counted from the front, if it is ``inside``.
    """

    tensor: object
    index: tuple[Scalar, ...]
    extent: Scalar
    inside: bool
    key: tuple[int, ...]


@node
class Binary(_Arithmetic):
    """``lhs op rhs``; comparisons give 0 or 1."""

    op: Op
    lhs: Scalar
    rhs: Scalar
    key: tuple[int, ...]


@node
class Select(_Arithmetic):
    """``then`` where ``condition`` is not zero, else ``other``."""

    condition: Scalar
    then: Scalar
    other: Scalar
    key: tuple[int, ...]


@node
class Poly(_Arithmetic):
    """A sum of coefficient times atoms; the empty product is the constant term."""

    terms: tuple[tuple[tuple[Atom, ...], int], ...]
    key: tuple[int, ...]


Atom: TypeAlias = (
    Size | ScalarInput | Stride | Knob | LoopIndex | Datum | Binary | Select
)
Scalar: TypeAlias = Const | Poly | Atom
Terms: TypeAlias = "dict[tuple[Atom, ...], int]"

_KEPT = 1 << 13  # sums, products and quotients each: few are asked for, very often


@lru_cache(_KEPT)
def const(number: int) -> Const:
    """Return the constant ``number``."""
    value = operator.index(number)
    return intern(Const, lambda: (0, value), value)


def as_scalar(x: Scalar | SupportsIndex) -> Scalar:
    """Return ``x``, an integer as a constant."""
    if isinstance(x, _Arithmetic):
        return x
    return const(operator.index(x) + 0)  # a bool is a number like others


def binary(op: Op, lhs: Scalar, rhs: Scalar) -> Scalar:
    """Return ``lhs op rhs`` as it is, of what no rule applies to."""

    def key() -> tuple[int, ...]:
        return (5, PLACES[op], digest(lhs.key, rhs.key))

    return intern(Binary, key, op, lhs, rhs)


def terms_of(x: Scalar) -> Terms:
    """Return the normal form of ``x``: coefficient for each product of atoms."""
    match x:
        case Const(0):
            return {}
        case Const(number):
            return {(): number}
        case Poly(terms):
            return dict(terms)
        case _:
            return {(x,): 1}


def from_terms(terms: Mapping[tuple[Atom, ...], int]) -> Scalar:
    """Return the scalar whose normal form is ``terms``."""
    kept = {m: c for m, c in terms.items() if c}
    if not kept:
        return const(0)
    if len(kept) == 1:
        ((monomial, coefficient),) = kept.items()
        if not monomial:
            return const(coefficient)
        if len(monomial) == 1 and coefficient == 1:
            return monomial[0]
    ordered = tuple(
        sorted(kept.items(), key=lambda t: (not t[0], [a.key for a in t[0]]))
    )

    def key() -> tuple[int, ...]:
        return (7, digest([([a.key for a in m], c) for m, c in ordered]))

    return intern(Poly, key, ordered)


def add(lhs: Scalar | int, rhs: Scalar | int) -> Scalar:
    """Return ``lhs + rhs``.

    >>> from nfuser.compiler.ir.scalars.symbols import loop_index, size
    >>> n = size(0, 0)
    >>> n * 1 + 0 is n and n * 4 + 1 is 1 + 4 * n
    True
    >>> i = loop_index(0, n * size(0, 1))
    >>> (i // n) * n + i % n is i
    True
    """
    return _sum(as_scalar(lhs), as_scalar(rhs))


@lru_cache(_KEPT)
def _sum(lhs: Scalar, rhs: Scalar) -> Scalar:
    terms = terms_of(lhs)
    for monomial, coefficient in terms_of(rhs).items():
        terms[monomial] = terms.get(monomial, 0) + coefficient
    return from_terms(_recombine({m: c for m, c in terms.items() if c}))


@lru_cache(_KEPT)
def _difference(lhs: Scalar, rhs: Scalar) -> Scalar:
    return _sum(lhs, _product(rhs, const(-1)))


def _recombine(terms: Terms) -> Terms:
    """Rewrite ``(x // n) * n * m + (x % n) * m`` as ``x * m``."""
    for monomial, coefficient in terms.items():
        for atom in monomial:
            if not (isinstance(atom, Binary) and atom.op is Op.MOD):
                continue
            rest = _without(monomial, (atom,))
            scale = from_terms({rest: coefficient})
            whole = terms_of((atom.lhs // atom.rhs) * atom.rhs * scale)
            if whole and all(terms.get(m) == c for m, c in whole.items()):
                left = {m: c for m, c in terms.items() if m not in whole}
                del left[monomial]
                return terms_of(add(from_terms(left), atom.lhs * scale))
    return terms


def _without(monomial: tuple[Atom, ...], part: tuple[Atom, ...]) -> tuple[Atom, ...]:
    left = list(monomial)
    for atom in part:
        left.remove(atom)
    return tuple(left)


def multiply(lhs: Scalar | int, rhs: Scalar | int) -> Scalar:
    """Return ``lhs * rhs``, multiplied out."""
    return _product(as_scalar(lhs), as_scalar(rhs))


@lru_cache(_KEPT)
def _product(lhs: Scalar, rhs: Scalar) -> Scalar:
    terms: Terms = {}
    right = terms_of(rhs)
    for m1, c1 in terms_of(lhs).items():
        for m2, c2 in right.items():
            monomial = tuple(sorted(m1 + m2, key=lambda a: a.key))
            terms[monomial] = terms.get(monomial, 0) + c1 * c2
    if len(terms) > 1:
        terms = _recombine({m: c for m, c in terms.items() if c})
    return from_terms(terms)


def _divided(x: Scalar, divisor: Scalar) -> tuple[Scalar, Scalar]:
    """Return (quotient, rest) such that ``x == quotient * divisor + rest``."""
    terms = terms_of(divisor)
    if len(terms) != 1:
        return (const(1), const(0)) if x is divisor else (const(0), x)
    ((part, scale),) = terms.items()
    quotient: Terms = {}
    rest: Terms = {}
    for monomial, coefficient in terms_of(x).items():
        divides = all(monomial.count(a) >= part.count(a) for a in part)
        if not divides or (part and coefficient % scale):
            rest[monomial] = coefficient
            continue
        times, left = divmod(coefficient, scale)
        if monomial and left:
            rest[monomial] = coefficient
            continue
        quotient[_without(monomial, part)] = times
        if left:
            rest[monomial] = left
    return from_terms(quotient), from_terms(rest)


def _natural_rest(x: Scalar, divisor: Scalar) -> tuple[Scalar, Scalar]:
    """Return ``_divided``; all in the rest where that may be negative in a kernel.

    Python floors what the host divides; a kernel divides natural numbers.
    """
    quotient, rest = _divided(x, divisor)
    if quotient is const(0) or is_natural(rest) or not _has_loops(rest):
        return quotient, rest
    return const(0), x


def _has_loops(x: Scalar) -> bool:
    stack: list[Scalar] = [x]
    while stack:
        match stack.pop():
            case LoopIndex() | Datum():
                return True
            case Poly(terms):
                stack.extend(atom for monomial, _ in terms for atom in monomial)
            case Binary(_, lhs, rhs):
                stack += (lhs, rhs)
            case Select(condition, then, other):
                stack += (condition, then, other)
            case _:
                pass
    return False


def _cancelled(x: Scalar, divisor: Scalar) -> tuple[Scalar, Scalar]:
    """Drop the atoms that two products have in common."""
    above, below = terms_of(x), terms_of(divisor)
    if len(above) != 1 or len(below) != 1:
        return x, divisor
    ((top, scale),), ((bottom, unit),) = above.items(), below.items()
    common: list[Atom] = []
    left = list(top)
    for atom in bottom:
        if atom in left:
            left.remove(atom)
            common.append(atom)
    rest = _without(bottom, tuple(common))
    return from_terms({tuple(left): scale}), from_terms({rest: unit})


def floor_divide(lhs: Scalar | int, rhs: Scalar | int) -> Scalar:
    """Return ``lhs // rhs``; the divisor is positive.

    >>> from nfuser.compiler.ir.scalars.symbols import loop_index, size
    >>> n = size(0, 0)
    >>> (n * 4 + loop_index(0, 4)) // 4 is n
    True
    """
    return _quotient(as_scalar(lhs), as_scalar(rhs))


@lru_cache(_KEPT)
def _quotient(x: Scalar, divisor: Scalar) -> Scalar:
    if divisor is const(1):
        return x
    quotient, rest = _natural_rest(x, divisor)
    if rest is const(0) or lies_below(rest, divisor):
        return quotient
    rest, divisor = _cancelled(rest, divisor)
    if isinstance(rest, Binary) and rest.op is Op.FLOORDIV:
        return quotient + floor_divide(rest.lhs, rest.rhs * divisor)
    return quotient + binary(Op.FLOORDIV, rest, divisor)


def modulo(lhs: Scalar | int, rhs: Scalar | int) -> Scalar:
    """Return ``lhs % rhs``; the divisor is positive."""
    divisor = as_scalar(rhs)
    _, rest = _natural_rest(as_scalar(lhs), divisor)
    if divisor is const(1):
        return const(0)
    if rest is const(0) or lies_below(rest, divisor):
        return rest
    return binary(Op.MOD, rest, divisor)


def upper_bound(x: Scalar) -> Scalar | None:
    """Return a largest value of ``x`` in terms of sizes, if the form shows one."""
    bound: Scalar = const(0)
    for monomial, coefficient in terms_of(x).items():
        if coefficient < 0:
            return None
        term: Scalar = const(coefficient)
        for atom in monomial:
            match atom:
                case LoopIndex(_, extent):
                    term = term * (extent - 1)
                case Binary(Op.MOD, _, divisor):
                    term = term * (divisor - 1)
                case Binary(Op.FLOORDIV, LoopIndex(_, Const(extent)), Const(divisor)):
                    term = term * ((extent - 1) // divisor)
                case Binary() | Select():
                    return None
                case _:
                    term = term * atom
        bound = bound + term
    return bound


def lies_below(x: Scalar, limit: Scalar) -> bool:
    """Tell whether ``0 <= x < limit`` can be seen from the form of ``x``."""
    bound = upper_bound(x)
    if bound is None:
        return False
    gap = limit - 1 - bound
    return isinstance(gap, Const) and gap.value >= 0


@lru_cache(_KEPT)
def is_natural(x: Scalar) -> bool:
    """Tell whether the form of ``x`` shows that it is not negative."""
    match x:
        case Const(number):
            return number >= 0
        case Poly(terms):
            return all(c > 0 and all(map(is_natural, m)) for m, c in terms)
        case Size() | Knob() | LoopIndex() | Binary(Op.MOD | Op.LT | Op.EQ):
            return True
        case Binary(Op.FLOORDIV | Op.MIN, lhs, rhs):
            return is_natural(lhs) and is_natural(rhs)
        case Binary(Op.MAX, lhs, rhs):
            return is_natural(lhs) or is_natural(rhs)
        case Select(_, then, other):
            return is_natural(then) and is_natural(other)
        case _:
            return False


# To be cleared once a kernel is made.
KEPT = (_sum, _difference, _product, _quotient, is_natural)
