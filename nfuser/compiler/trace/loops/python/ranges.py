# SPDX-License-Identifier: Apache-2.0
"""Ranges whose bounds may be open: sizes, and integers that the caller passes."""

# What a traced function holds has no static type.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.functions import maximum
from nfuser.compiler.ir.scalars.scalar import Const
from nfuser.compiler.trace.loops.python.complaints import STEP
from nfuser.compiler.trace.standins.host_numbers import host_number
from nfuser.compiler.trace.standins.sizes import passed_integer
from nfuser.compiler.trace.standins.standin import Standin
from nfuser.compiler.trace.standins.symbolic import SymbolicInt, integer
from nfuser.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.trace.tracer import Tracer


class OpenRange:
    """A range of ``trips`` integers from ``first`` on."""

    def __init__(self, t: Tracer, first: Scalar, trips: Scalar, step: int) -> None:
        self._t = t
        self.first = first
        self.trips = trips
        self.step = step

    @property
    def length(self) -> int | None:
        """How many there are, if that is the same in each call."""
        return self.trips.value if isinstance(self.trips, Const) else None

    def item(self, turn: Any) -> Any:
        """Return the item of a turn, which is not known while tracing."""
        found = turn if self.step == 1 else turn * self.step
        is_at_zero = isinstance(self.first, Const) and self.first.value == 0
        return found if is_at_zero else found + integer(self._t, self.first)

    def __iter__(self) -> Iterator[int]:
        """Count, as Python does: the bounds of today are guarded."""
        count = self._t.consume_scalar(self.trips)
        first = self._t.consume_scalar(self.first)
        return iter(range(first, first + self.step * count, self.step))

    def __reversed__(self) -> Any:
        """Return the same integers from the last one on."""
        last = self.first + (self.trips - 1) * self.step
        return OpenRange(self._t, last, self.trips, -self.step)


class ComputedRange:
    """A range of which a bound is computed of arrays: how many turns is not known."""

    def __init__(self, first: Any, last: Any, step: int) -> None:
        self.first = first
        self.last = last
        self.step = step

    def __iter__(self) -> Iterator[int]:
        """Refuse to count: Python asks the bounds for their values."""
        return iter(range(self.first, self.last, self.step))

    def __reversed__(self) -> Iterator[int]:
        """Refuse to count, as from the front."""
        return reversed(range(self.first, self.last, self.step))


def open_range(t: Tracer, *bounds: Any) -> Any:
    """Return what ``range`` gives; its bounds stay open if they are."""
    first, last, step = 0, *bounds[:1], 1
    if len(bounds) > 1:
        first, last = bounds[:2]
    if len(bounds) == 3:
        if (
            _is_computed(t, bounds[2])
            and host_number(t.builder, t.operand(bounds[2])) is None
        ):
            raise TraceError(STEP)
        step = bounds[2].__index__()
    ends = [_open(t, x) for x in (first, last)]
    if len(bounds) not in (1, 2, 3) or step == 0:
        return range(*bounds)
    if None in ends:
        unknown = [x for x, e in zip((first, last), ends, strict=True) if e is None]
        if all(_is_computed(t, x) for x in unknown):
            return ComputedRange(first, last, step)
        return range(*bounds)
    begin, end = (x for x in ends if x is not None)
    far = maximum(end - begin if step > 0 else begin - end, 0)
    trips = far if abs(step) == 1 else (far + (abs(step) - 1)) // abs(step)
    return OpenRange(t, begin, sc.as_scalar(trips), step)


def _is_computed(t: Tracer, x: Any) -> bool:
    """Tell whether ``x`` is an integer that a call computes of arrays.

    Those of 64 bits without a sign are none: a counter holds half of them.
    """
    if not isinstance(x, Standin) or not hasattr(type(x), "_remake"):
        return False
    held = t.operand(x)
    return not held.ndim and held.dtype.is_integer and held.dtype is not DType.U64


def _open(t: Tracer, x: Any) -> Scalar | None:
    if isinstance(x, SymbolicInt):
        return x._scalar
    if isinstance(x, Standin):
        return passed_integer(t, t.operand(x))
    return sc.as_scalar(x) if type(x) is int else None
