# SPDX-License-Identifier: Apache-2.0
"""Integer expressions: sizes, strides, loop indices and what is computed of them.

A scalar is built by operators and by the functions here, which fold, normalise and
intern: two scalars that were built alike are the same object. Sums of products are
kept in one normal form (a ``Poly``), so that index arithmetic comes out short however
it was put together. All symbols stand for non-negative integers; divisors are positive.
"""

from __future__ import annotations

import hashlib
import operator
from dataclasses import fields
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self, SupportsIndex, TypeAlias, cast
from weakref import WeakValueDictionary

from nfuser.ir.base import node
from nfuser.locks import INTERNING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


class _Arithmetic:
    """Operators for scalars; an ``int`` on either side is a constant."""

    __slots__ = ()

    def __add__(self, other: Scalar | int) -> Scalar:
        return add(cast("Scalar", self), other)

    __radd__ = __add__

    def __neg__(self) -> Scalar:
        return multiply(cast("Scalar", self), -1)

    def __sub__(self, other: Scalar | int) -> Scalar:
        return add(cast("Scalar", self), multiply(other, -1))

    def __rsub__(self, other: Scalar | int) -> Scalar:
        return add(other, multiply(cast("Scalar", self), -1))

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
        return _interned_again, (type(self), *(getattr(self, name) for name in names))


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


class Op(Enum):
    """An operator that the normal form does not dissolve; the value is its spelling."""

    FLOORDIV = "//"
    MOD = "%"
    MIN = "min"
    MAX = "max"
    LT = "<"
    EQ = "=="
    # Numbers that the host prepares for an exact division by multiplication.
    MULTIPLIER = "multiplier"
    SHIFT = "shift"


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

_interned: WeakValueDictionary[tuple[object, ...], Any] = WeakValueDictionary()


def _intern(make: Any, key: Callable[[], tuple[int, ...]], *fields: object) -> Any:
    identity = (make, *fields)
    with INTERNING:
        found = _interned.get(identity)
        if found is None:
            found = _interned[identity] = make(*fields, key())
    return found


def _interned_again(kind: Any, *found: Any) -> Any:
    *parts, key = found
    return _intern(kind, lambda: key, *parts)


def _digest(*parts: object) -> int:
    """Return a number for the structure of a compound, alike in every process."""
    text = repr(parts).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest())


def const(number: int) -> Const:
    """Return the constant ``number``."""
    value = operator.index(number)
    return _intern(Const, lambda: (0, value), value)


def size(slot: int, axis: int) -> Size:
    """Return the extent of argument ``slot`` along ``axis``."""
    return _intern(Size, lambda: (1, slot, axis), slot, axis)


def scalar_input(slot: int) -> ScalarInput:
    """Return the value of the integer scalar in ``slot``."""
    return _intern(ScalarInput, lambda: (2, slot), slot)


def stride(tensor: int, axis: int) -> Stride:
    """Return the step of tensor ``tensor`` along ``axis``."""
    return _intern(Stride, lambda: (3, tensor, axis), tensor, axis)


def knob(name: str) -> Knob:
    """Return the number of a launch called ``name``."""
    return _intern(Knob, lambda: (9, _digest(name)), name)


def loop_index(number: int, extent: Scalar | int) -> LoopIndex:
    """Return the index of loop ``number``, which runs over ``extent`` values."""
    stop = as_scalar(extent)
    return _intern(LoopIndex, lambda: (4, number, _digest(stop.key)), number, stop)


def place(axis: int, extent: Scalar | int) -> LoopIndex:
    """Return what stands for the index along ``axis`` of a result (``Remap``)."""
    return loop_index(-1 - axis, extent)


def place_axis(place: LoopIndex) -> int:
    """Return the axis whose index ``place`` stands for."""
    return -1 - place.number


def datum(
    tensor: object, index: Iterable[Scalar], extent: Scalar, *, inside: bool = False
) -> Datum:
    """Return the element of ``tensor`` at ``index``, which is below ``extent``."""
    found = tuple(index)

    def key() -> tuple[int, ...]:
        return (8, _digest([x.key for x in (*found, extent)]), int(inside))

    return _intern(Datum, key, tensor, found, extent, inside)


def as_scalar(x: Scalar | SupportsIndex) -> Scalar:
    """Return ``x``, an integer as a constant."""
    if isinstance(x, _Arithmetic):
        return x
    return const(operator.index(x) + 0)  # a bool is a number like others


def _binary(op: Op, lhs: Scalar, rhs: Scalar) -> Scalar:
    def key() -> tuple[int, ...]:
        return (5, list(Op).index(op), _digest(lhs.key, rhs.key))

    return _intern(Binary, key, op, lhs, rhs)


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
        return (7, _digest([([a.key for a in m], c) for m, c in ordered]))

    return _intern(Poly, key, ordered)


def add(lhs: Scalar | int, rhs: Scalar | int) -> Scalar:
    """Return ``lhs + rhs``.

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


def product(factors: Iterable[Scalar | int]) -> Scalar:
    """Return the product of ``factors``."""
    result: Scalar = const(1)
    for factor in factors:
        result = multiply(result, factor)
    return result


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
    return quotient + _binary(Op.FLOORDIV, rest, divisor)


def modulo(lhs: Scalar | int, rhs: Scalar | int) -> Scalar:
    """Return ``lhs % rhs``; the divisor is positive."""
    divisor = as_scalar(rhs)
    _, rest = _natural_rest(as_scalar(lhs), divisor)
    if divisor is const(1):
        return const(0)
    if rest is const(0) or lies_below(rest, divisor):
        return rest
    return _binary(Op.MOD, rest, divisor)


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
                case Binary():
                    return None
                case Select():
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


def is_natural(x: Scalar) -> bool:
    """Tell whether the form of ``x`` shows that it is not negative."""
    match x:
        case Const(number):
            return number >= 0
        case Poly(terms):
            return all(c > 0 and all(map(is_natural, m)) for m, c in terms)
        case Size() | Knob() | LoopIndex():
            return True
        case Binary(Op.FLOORDIV | Op.MIN, lhs, rhs):
            return is_natural(lhs) and is_natural(rhs)
        case Binary(Op.MAX, lhs, rhs):
            return is_natural(lhs) or is_natural(rhs)
        case Binary(Op.MOD | Op.LT | Op.EQ):
            return True
        case Select(_, then, other):
            return is_natural(then) and is_natural(other)
        case _:
            return False


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
    return _binary(op, *sorted((a, b), key=lambda x: x.key))


def less(lhs: Scalar | int, rhs: Scalar | int) -> Scalar:
    """Return 1 where ``lhs < rhs``, else 0."""
    gap = as_scalar(lhs) - rhs
    if isinstance(gap, Const):
        return const(int(gap.value < 0))
    if lies_below(as_scalar(lhs), as_scalar(rhs)):
        return const(1)
    if is_natural(gap):
        return const(0)
    return _binary(Op.LT, as_scalar(lhs), as_scalar(rhs))


def equal(lhs: Scalar | int, rhs: Scalar | int) -> Scalar:
    """Return 1 where the two are equal, else 0."""
    gap = as_scalar(lhs) - rhs
    if isinstance(gap, Const):
        return const(int(gap.value == 0))
    return _binary(Op.EQ, as_scalar(lhs), as_scalar(rhs))


def select(condition: Scalar, then: Scalar | int, other: Scalar | int) -> Scalar:
    """Return ``then`` where ``condition`` is not zero, else ``other``."""
    yes, no = as_scalar(then), as_scalar(other)
    if isinstance(condition, Const):
        return yes if condition.value else no
    if yes is no:
        return yes

    def key() -> tuple[int, ...]:
        return (6, _digest(condition.key, yes.key, no.key))

    return _intern(Select, key, condition, yes, no)


def multiplier(divisor: Scalar) -> Scalar:
    """Return the factor that divides by ``divisor`` (design of fast division)."""
    return _binary(Op.MULTIPLIER, divisor, const(0))


def shift(divisor: Scalar) -> Scalar:
    """Return the shift that goes with ``multiplier(divisor)``."""
    return _binary(Op.SHIFT, divisor, const(0))


KEPT = (_sum, _product, _quotient)  # to be cleared once a kernel is made
