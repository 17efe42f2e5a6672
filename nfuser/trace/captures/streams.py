# SPDX-License-Identifier: Apache-2.0
"""Streams of random numbers that a traced function draws from.

The state of a stream is a key and the number of draw calls so far. A trace takes both
as inputs, so that one kernel serves every call; each run advances the stream by as many
draw calls as were traced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nfuser.errors import TraceError
from nfuser.ir.base import node
from nfuser.trace.captures.stream import Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from nfuser.trace.captures.origins import Origin

    Read = Callable[[tuple[Any, ...], Mapping[str, Any]], Any]


@node
class DrawnStream:
    """A stream that a trace draws from: where it is read, and how often it is drawn.

    The key is passed in ``slot``, the number of its first draw call in the next one.
    """

    slot: int
    origin: Origin
    number: int  # among the different streams
    draws: int


@node
class Streams:
    """The streams that a traced function could see, and those that it drew from.

    ``places`` say where each is read, with its number: where two are one now, or one
    is two, the function has to be traced again.
    """

    places: tuple[tuple[Read, int], ...] = ()
    drawn: tuple[DrawnStream, ...] = ()

    def read(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Stream, ...] | None:
        """Return the streams to draw from in this call; None to trace it again."""
        found: dict[int, Stream] = {}
        for read, number in self.places:
            stream = read(args, kwargs)
            if not isinstance(stream, Stream):
                return None
            if found.setdefault(number, stream) is not stream:
                return None
        if len({id(stream) for stream in found.values()}) < len(found):
            return None
        return tuple(found[drawn.number] for drawn in self.drawn)


class StreamDraws:
    """Counts what one trace draws from each stream."""

    def __init__(self) -> None:
        self._drawn: dict[int, tuple[Stream, Origin, int, int]] = {}

    def add(
        self, stream: Stream, slot: int, values: Mapping[Origin, Any]
    ) -> tuple[int, int]:
        """Note one draw call; return the slot of the stream, and how many came before.

        ``slot`` is the one that a stream gets which was not drawn from before.
        """
        if id(stream) not in self._drawn:
            origin = next((o for o, found in values.items() if found is stream), None)
            if origin is None:
                message = (
                    "pass the generator as an argument: a fused function draws from "
                    "generators that it is given, names or makes, and found another"
                )
                raise TraceError(message)
            self._drawn[id(stream)] = stream, origin, slot, 0
        stream, origin, slot, draws = self._drawn[id(stream)]
        self._drawn[id(stream)] = stream, origin, slot, draws + 1
        return slot, draws

    def freeze(self, values: Mapping[Origin, Any]) -> Streams:
        """Return what was drawn, and where all streams were found."""
        seen = [(o, s) for o, s in values.items() if isinstance(s, Stream)]
        numbers = _numbers(stream for _, stream in seen)
        places = tuple((o.reader(), numbers[id(stream)]) for o, stream in seen)
        drawn = tuple(
            DrawnStream(slot, origin, numbers[id(stream)], draws)
            for stream, origin, slot, draws in self._drawn.values()
        )
        return Streams(places, drawn)


def _numbers(streams: Iterable[Stream]) -> dict[int, int]:
    found: dict[int, int] = {}
    for stream in streams:
        found.setdefault(id(stream), len(found))
    return found
