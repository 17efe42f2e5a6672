# SPDX-License-Identifier: Apache-2.0
"""What loops run over that is as long as an array: rows, also in pairs or counted."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from nfuser.compiler.ir.scalars.functions import equal, minimum
from nfuser.compiler.ir.scalars.scalar import Const
from nfuser.compiler.trace.loops.python.ranges import OpenRange, open_range
from nfuser.compiler.trace.standins.standin import Standin
from nfuser.compiler.trace.standins.symbolic import integer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.trace.tracer import Tracer


class OpenItems:
    """As many items as there are turns; ``item`` gives that of a turn.

    ``complaint`` is the error that they end with, if they do.
    """

    def __init__(
        self,
        trips: Scalar,
        item: Callable[[Any], Any],
        one_by_one: Callable[[], Iterator[Any]],
        complaint: Exception | None = None,
    ) -> None:
        self.trips = trips
        self.item = item
        self.complaint = complaint
        self._one_by_one = one_by_one

    @property
    def length(self) -> int | None:
        """How many there are, if that is the same in each call."""
        return self.trips.value if isinstance(self.trips, Const) else None

    def __iter__(self) -> Iterator[Any]:
        """Return the items as Python has them."""
        return self._one_by_one()


def open_items(t: Tracer, turns: Any) -> OpenRange | OpenItems | None:
    """Return what gives the item of a turn that is not known; else None."""
    if type(turns) is range:
        return open_range(t, turns.start, turns.stop, turns.step)
    if isinstance(turns, (OpenRange, OpenItems)):
        return turns
    rows: Any = turns
    if not isinstance(turns, Standin) or not hasattr(type(turns), "_remake"):
        return None
    shape = t.operand(turns).shape
    return OpenItems(shape[0], rows.__getitem__, lambda: iter(rows)) if shape else None


def opening(t: Tracer, function: Any) -> Any:
    """Return what is called in place of ``range``, ``zip`` and their like; else None.

    What that gives may be as long as an array, or as a bound says that is not known.
    """
    opened = _OPENED.get(function) if isinstance(function, type) else None
    return None if opened is None else partial(opened, t)


def _zipped(t: Tracer, *given: Any, strict: Any = False) -> Any:
    """Return ``zip(*given, strict=strict)``."""
    parts = [open_items(t, x) for x in given]
    found = [x for x in parts if x is not None]
    are_open = found and len(found) == len(parts)
    if not are_open or any(map(_complaint, found)):
        return zip(*given, strict=strict)
    trips, complaint = found[0].trips, None
    for other in (x.trips for x in found[1:]):
        if other is trips or t.ask(equal(trips, other), usual=1):
            continue
        trips = minimum(trips, other)
        if strict:
            complaint = _unequal([t.consume_scalar(x.trips) for x in found])
    return OpenItems(
        trips,
        lambda turn: tuple(x.item(turn) for x in found),
        lambda: zip(*found, strict=strict),
        complaint,
    )


def _unequal(lengths: list[int]) -> ValueError:
    """Return what Python's ``zip`` raises after the last turn that all items have."""
    least = min(lengths)
    number, word = lengths.index(least), "shorter"
    if not number:
        number = next(k for k, n in enumerate(lengths) if n > least)
        word = "longer"
    others = "argument 1" if number == 1 else f"arguments 1-{number}"
    return ValueError(f"zip() argument {number + 1} is {word} than {others}")


def _counted(t: Tracer, given: Any, start: Any = 0) -> Any:
    """Return ``enumerate(given, start)``."""
    found = open_items(t, given)
    if found is None:
        return enumerate(given, start)
    return OpenItems(
        found.trips,
        lambda turn: (turn if start == 0 else turn + start, found.item(turn)),
        lambda: iter(enumerate(found, start)),
        _complaint(found),
    )


def _complaint(items: OpenRange | OpenItems) -> Exception | None:
    return items.complaint if isinstance(items, OpenItems) else None


def _reversed(t: Tracer, given: Any) -> Any:
    """Return ``reversed(given)``."""
    if isinstance(given, OpenRange):
        return given.__reversed__()
    rows: Any = given
    found = open_items(t, given) if isinstance(given, Standin) else None
    if found is None:
        return reversed(rows)
    last = integer(t, found.trips - 1)
    return OpenItems(
        found.trips, lambda turn: found.item(last - turn), lambda: reversed(rows)
    )


_OPENED: dict[Any, Callable[..., Any]] = {
    range: open_range,
    zip: _zipped,
    enumerate: _counted,
    reversed: _reversed,
}
