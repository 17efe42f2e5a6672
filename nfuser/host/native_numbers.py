# SPDX-License-Identifier: Apache-2.0
"""The steps by which native code works numbers out, and what it requires of them."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from nfuser.device.native import layout as at
from nfuser.ir import scalar_walk
from nfuser.ir.scalar import Binary, Const, Op, Poly, ScalarInput, Select

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.ir.scalar import Scalar

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

    ``positions`` say which argument each integer of the call is, by its slot.
    """

    def __init__(self, positions: Mapping[int, int]) -> None:
        self._positions = positions
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

    def require(self, place: int, low: int, high: int) -> None:
        """Serve only calls where the integer at ``place`` is one of these."""
        self.step(at.N_BETWEEN, place, 0, max(low, LEAST), min(high, GREATEST))

    def scalar(self, root: Scalar) -> int:
        """Return the place of an integer expression."""
        for x in scalar_walk.every([root]):
            if x not in self._scalars:
                self._scalars[x] = self._worked_out(x)
        return self._scalars[root]

    def _worked_out(self, x: Scalar) -> int:
        found = self._scalars
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
