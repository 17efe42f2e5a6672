# SPDX-License-Identifier: Apache-2.0
"""Integers that stay open while a plan is made: what is asked of them is remembered.

A plan is made for the numbers of one call. Where one of them is open, the plan serves
other numbers, too: all those of which every question has the same answer.
"""

from __future__ import annotations

import dataclasses
import operator
from typing import TYPE_CHECKING, Any, cast

from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.functions import equal, less
from nfuser.compiler.ir.scalars.scalar import Const

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.ir.scalars.scalar import Scalar


class Asked:
    """What was asked of open integers, and what the answers are in today's call."""

    def __init__(self) -> None:
        self.today: dict[Scalar, int] = {}
        self.answers: dict[Scalar, int] = {}

    def open(self, symbol: Scalar, today: int) -> int:
        """Return ``symbol`` as an integer that stays open; it is ``today`` now."""
        self.today[symbol] = today
        return cast("int", OpenInteger(self, symbol, today))


def _of_today(name: str) -> Callable[..., Any]:
    """Return the method of ``int``, which takes the value of today."""

    def method(self: Any, *args: Any, **options: Any) -> Any:
        given = [int(x) if isinstance(x, OpenInteger) else x for x in args]
        return getattr(int(self), name)(*given, **options)

    return method


class OpenInteger:
    """Acts as the integer that it is today; what that decides is noted.

    Arithmetic keeps it open. Whoever wants its value, as ``hash`` and ``range`` do,
    asks whether it equals today's.
    """

    __slots__ = ("_asked", "scalar", "today")

    def __init__(self, asked: Asked, scalar: Scalar, today: int) -> None:
        self._asked = asked
        self.scalar = scalar
        self.today = today

    def made(self, scalar: Scalar, today: int) -> Any:
        """Return another integer, made of this one."""
        if isinstance(scalar, Const):
            return scalar.value
        return OpenInteger(self._asked, scalar, today)

    def _with(
        self,
        other: Any,
        fold: Callable[[Any, Any], Scalar],
        act: Callable[[Any, Any], Any],
    ) -> Any:
        if isinstance(other, OpenInteger):
            today = act(self.today, other.today)
            return self.made(fold(self.scalar, other.scalar), today)
        if type(other) is int or type(other) is bool:
            return self.made(fold(self.scalar, int(other)), act(self.today, other))
        return act(int(self), other)

    def _ask(self, condition: Scalar, today: bool) -> bool:
        if isinstance(condition, Const) and condition.value == today:
            return today
        if isinstance(condition, Const):  # what it takes for granted does not hold
            int(self)
        else:
            self._asked.answers[condition] = int(today)
        return today

    def __int__(self) -> int:
        condition = equal(self.scalar, self.today)
        if not isinstance(condition, Const):
            self._asked.answers[condition] = 1
        return self.today

    __index__ = __int__

    def __add__(self, other: Any) -> Any:
        return self._with(other, sc.add, operator.add)

    def __mul__(self, other: Any) -> Any:
        return self._with(other, sc.multiply, operator.mul)

    __radd__, __rmul__ = __add__, __mul__

    def __sub__(self, other: Any) -> Any:
        return self._with(other, lambda a, c: a - c, operator.sub)

    def __rsub__(self, other: Any) -> Any:
        return self._with(other, lambda a, c: c - a, lambda a, c: c - a)

    def __neg__(self) -> Any:
        return self.made(-self.scalar, -self.today)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return -self if self < 0 else self

    def __floordiv__(self, other: Any) -> Any:
        return _divided(self, other, sc.floor_divide, lambda a, c: a // c)

    def __mod__(self, other: Any) -> Any:
        return _divided(self, other, sc.modulo, operator.mod)

    def __rfloordiv__(self, other: Any) -> Any:
        return _divided(other, self, sc.floor_divide, lambda a, c: a // c)

    def __rmod__(self, other: Any) -> Any:
        return _divided(other, self, sc.modulo, operator.mod)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __truediv__(self, other: Any) -> Any:
        return int(self) / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / int(self)

    def __float__(self) -> float:
        return float(int(self))

    def __bool__(self) -> bool:
        return self != 0

    def __eq__(self, other: object) -> bool:
        return self._compared(other, equal, operator.eq)

    def __lt__(self, other: Any) -> bool:
        return self._compared(other, less, operator.lt)

    def __gt__(self, other: Any) -> bool:
        return self._compared(other, lambda a, c: less(c, a), operator.gt)

    def __le__(self, other: Any) -> bool:
        return not self > other

    def __ge__(self, other: Any) -> bool:
        return not self < other

    def _compared(
        self,
        other: Any,
        fold: Callable[[Any, Any], Scalar],
        act: Callable[[Any, Any], bool],
    ) -> bool:
        if isinstance(other, OpenInteger):
            condition = fold(self.scalar, other.scalar)
            return self._ask(condition, act(self.today, other.today))
        if type(other) is int or type(other) is bool:
            return self._ask(fold(self.scalar, int(other)), act(self.today, other))
        return act(int(self), other)

    def __hash__(self) -> int:
        return hash(int(self))

    def __and__(self, other: Any) -> Any:
        return int(self) & int(other)

    def __lshift__(self, other: Any) -> Any:
        return self * (1 << int(other))

    def __rshift__(self, other: Any) -> Any:
        return self // (1 << int(other))

    __rand__ = __and__

    def __rlshift__(self, other: Any) -> Any:
        return other << int(self)

    __pow__, __rpow__ = _of_today("__pow__"), _of_today("__rpow__")
    __or__ = __ror__ = _of_today("__or__")
    __xor__ = __rxor__ = _of_today("__xor__")
    __invert__, __round__ = _of_today("__invert__"), _of_today("__round__")
    __trunc__, __floor__ = _of_today("__trunc__"), _of_today("__floor__")
    __ceil__, __rrshift__ = _of_today("__ceil__"), _of_today("__rrshift__")
    __rdivmod__ = _of_today("__rdivmod__")
    bit_length, bit_count = _of_today("bit_length"), _of_today("bit_count")
    to_bytes, is_integer = _of_today("to_bytes"), _of_today("is_integer")

    def __format__(self, spec: str) -> str:
        return format(self.today, spec)  # a message names it

    def __repr__(self) -> str:
        return str(self.today)


def _divided(
    x: Any,
    y: Any,
    fold: Callable[[Any, Any], Scalar],
    act: Callable[[int, int], int],
) -> Any:
    """Divide by a positive number, as scalars do, or by today's number."""
    one = x if isinstance(x, OpenInteger) else y
    kinds: set[type[object]] = {type(x), type(y)}
    if not kinds <= {OpenInteger, int} or not y > 0:
        return act(int(x), int(y))
    scalars = [v.scalar if isinstance(v, OpenInteger) else v for v in (x, y)]
    today = [v.today if isinstance(v, OpenInteger) else v for v in (x, y)]
    return one.made(fold(*scalars), act(*today))


def closed(x: Any) -> Any:
    """Return ``x``, a value or a tuple, with integers in place of open ones."""
    if type(x) is int:
        return x
    if isinstance(x, OpenInteger):
        return int(x)
    if type(x) in (tuple, frozenset):
        parts: list[Any] = [closed(part) for part in cast("tuple[Any, ...]", x)]
        same = all(a is b for a, b in zip(parts, x, strict=True))
        return x if same else type(x)(parts)
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        fields = {f.name: getattr(x, f.name) for f in dataclasses.fields(x) if f.init}
        changed = {k: v for k, old in fields.items() if (v := closed(old)) is not old}
        return dataclasses.replace(x, **changed) if changed else x
    return x
