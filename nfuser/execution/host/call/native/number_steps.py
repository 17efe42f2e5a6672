# SPDX-License-Identifier: Apache-2.0
"""The steps by which native code works numbers out, and what it requires of them."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.open_integer import OpenInteger
from nfuser.compiler.ir.scalars.operators import Op
from nfuser.compiler.ir.scalars.scalar import (
    Binary,
    Const,
    Poly,
    ScalarInput,
    Select,
    is_natural,
)
from nfuser.execution.device.native import layout as at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from nfuser.compiler.ir.scalars.scalar import Scalar

LEAST, GREATEST = -(1 << 63), (1 << 63) - 1

_OPERATORS = {
    Op.FLOORDIV: at.N_FLOOR_DIVIDE,
    Op.MOD: at.N_MODULO,
    Op.MIN: at.N_MINIMUM,
    Op.MAX: at.N_MAXIMUM,
    Op.LT: at.N_LESS,
    Op.EQ: at.N_EQUAL,
}


class NotNativeError(Exception):
    """Native code cannot run this; Python can."""


class NumberWriter:
    """Writes steps; a number is known by its place among all that are worked out.

    ``positions`` say which argument each integer of the call is, by its slot, and
    ``reads`` how other symbols are read.
    """

    def __init__(
        self,
        positions: Mapping[int, int],
        reads: Mapping[Scalar, Callable[[NumberWriter], int]] | None = None,
    ) -> None:
        self._positions = positions
        self._reads = reads or {}
        self._steps: list[tuple[int, ...]] = []
        self._places: dict[tuple[int, ...], int] = {}
        self._scalars: dict[Scalar, int] = {}

    @property
    def words(self) -> list[int]:
        """The steps as words; none where nothing has to be worked out."""
        if len(self._steps) > at.MOST_NUMBERS:
            raise NotNativeError
        words = [x for step in self._steps for x in step]
        return [*words, at.N_STOP] if words else []

    def step(
        self,
        code: int,
        first: int = 0,
        second: int = 0,
        third: int = 0,
        fourth: int = 0,
    ) -> int:
        """Return the place of what a step works out of the numbers at two places."""
        key = (code, first, second, third, fourth)
        if key not in self._places:
            self._places[key] = len(self._steps)
            is_read = at.N_STOP < code < at.N_CONSTANT
            scale = 1 if is_read else 8  # an argument, or where a number lies
            self._steps.append((code, scale * first, 8 * second, third, fourth))
        return self._places[key]

    def given(self, position: int) -> int:
        """Return the place of a number that is an argument."""
        return self.step(at.N_GIVEN, position)

    def integer(self, value: int) -> int:
        """Return the place of a constant."""
        if not LEAST <= value <= GREATEST:
            raise NotNativeError
        return self.step(at.N_CONSTANT, third=value)

    def real(self, value: float) -> int:
        """Return the place of a constant that is a float."""
        (bits,) = struct.unpack("<q", struct.pack("<d", value))
        return self.integer(bits)

    def size(self, position: int, axis: int) -> int:
        """Return the place of an extent of an array."""
        return self.step(at.N_SIZE, position, third=8 * axis)

    def stride(self, position: int, axis: int, itemsize: int) -> int:
        """Return the place of a stride of an array, in elements: whole ones."""
        found, unit = self.bytes_apart(position, axis), self.integer(itemsize)
        self.require(self.step(at.N_MODULO, found, unit), 0, 0)
        return self.step(at.N_FLOOR_DIVIDE, found, unit)

    def bytes_apart(self, position: int, axis: int) -> int:
        """Return the place of a stride of an array as it is."""
        return self.step(at.N_STRIDE, position, third=8 * axis)

    def number(self, x: int) -> int:
        """Return the place of an integer that is open or not."""
        if isinstance(x, OpenInteger):
            return self.scalar(x.scalar)
        return self.integer(x)

    def row(self, numbers: Iterable[int]) -> int:
        """Return where several integers lie, one after another."""
        places = [self.number(x) for x in numbers]
        first = len(self._steps)
        # The larger of a number and itself is the number.
        self._steps += [(at.N_MAXIMUM, 8 * p, 8 * p, 0, 0) for p in places]
        return first

    def outside(self, address: int) -> int:
        """Return the place of a word that lies outside of the call."""
        return self.step(at.N_WORD, third=address)

    def room(self, count: int) -> int:
        """Return the first of so many places that a statement writes."""
        first = len(self._steps)
        self._steps += [(at.N_CONSTANT, 0, 0, 0, 0)] * count
        return first

    def require(self, place: int, low: int, high: int) -> None:
        """Serve only calls where the integer at ``place`` is one of these."""
        self.step(at.N_BETWEEN, place, 0, max(low, LEAST), min(high, GREATEST))

    def require_answers(self, answers: Mapping[Scalar, int]) -> None:
        """Serve only calls in which conditions have these answers."""
        ranges, others = in_ranges(answers)
        for x, (low, high) in ranges.items():
            if low > LEAST or high < GREATEST:
                self.require(self.scalar(x), low, high)
        for condition, answer in others.items():
            self.require(self.scalar(condition), answer, answer)

    def scalar(self, root: Scalar) -> int:
        """Return the place of an integer expression."""
        for x in scalar_walk.every([root]):
            if x not in self._scalars:
                self._scalars[x] = self._worked_out(x)
        return self._scalars[root]

    def _worked_out(self, x: Scalar) -> int:
        found = self._scalars
        if x in self._reads:
            return self._reads[x](self)
        match x:
            case Const(value):
                # Coefficients are constants, too, but no scalars of their own.
                return self.integer(value)
            case ScalarInput(slot) if slot in self._positions:
                return self.given(self._positions[slot])
            case Poly(terms):
                return self._sum(terms)
            case Binary(op, lhs, rhs) if op in _OPERATORS:
                return self.step(_OPERATORS[op], found[lhs], found[rhs])
            case Select(condition, then, other):
                # The third word of a step is no place by itself.
                other_at = 8 * found[other]
                return self.step(at.N_SELECT, found[condition], found[then], other_at)
            case _:
                raise NotNativeError

    def _sum(self, terms: tuple[tuple[tuple[Scalar, ...], int], ...]) -> int:
        total: int | None = None
        for monomial, coefficient in terms:
            factors = [self._scalars[atom] for atom in monomial]
            if coefficient != 1 or not factors:
                factors.append(self.integer(coefficient))
            term = factors[0]
            for factor in factors[1:]:
                term = self.step(at.N_MULTIPLY, term, factor)
            total = term if total is None else self.step(at.N_ADD, total, term)
        assert total is not None  # a sum has terms
        return total


def in_ranges(
    answers: Mapping[Scalar, int],
) -> tuple[dict[Scalar, tuple[int, int]], dict[Scalar, int]]:
    """Return what conditions say of scalars by themselves, and the other conditions.

    >>> from nfuser.compiler.ir.scalars.symbols import size
    >>> from nfuser.compiler.ir.scalars.functions import equal, less
    >>> n = size(0, 0)
    >>> found, others = in_ranges({less(n * 8, 100): 1, equal(n, 0): 0, less(2, n): 1})
    >>> found[n], others
    ((3, 12), {})
    """
    ranges: dict[Scalar, tuple[int, int]] = {}
    others: dict[Scalar, int] = {}
    for condition, answer in answers.items():
        found = _range_of(condition, answer)
        if found is None:
            others[condition] = answer
            continue
        x, low, high = found
        least, most = ranges.get(x, (0 if is_natural(x) else LEAST, GREATEST))
        ranges[x] = max(low, least), min(high, most)
    for condition, answer in list(others.items()):
        excluded = _value_in(condition) if not answer else None
        if excluded is None or excluded[0] not in ranges:
            continue
        x, value = excluded
        low, high = ranges[x]
        ranges[x] = low + (value == low), high - (value == high)
        if not low < value < high:
            del others[condition]
    return ranges, others


def _range_of(condition: Scalar, answer: int) -> tuple[Scalar, int, int] | None:
    """Return the least and the greatest value that a condition leaves to a scalar."""
    match condition:
        case Binary(Op.LT, Const(value), x):
            low, high = (value + 1, GREATEST) if answer else (LEAST, value)
        case Binary(Op.LT, x, Const(value)):
            low, high = (LEAST, value - 1) if answer else (value, GREATEST)
        case Binary(Op.EQ) if answer and (found := _value_in(condition)):
            x, low = found
            high = low
        case _:
            return None
    match x:
        case Poly((((part,), scale),)) if scale > 0:
            low = low if low == LEAST else -(-low // scale)
            high = high if high == GREATEST else high // scale
            return part, low, high
        case _:
            return x, low, high


def _value_in(condition: Scalar) -> tuple[Scalar, int] | None:
    """Return what a condition compares with a constant, and that."""
    match condition:
        case Binary(Op.EQ, x, Const(value)) | Binary(Op.EQ, Const(value), x):
            return x, value
        case _:
            return None
