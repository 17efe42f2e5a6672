# SPDX-License-Identifier: Apache-2.0
"""Streams of random numbers that a traced function draws from.

The state of a stream is a key and the number of draw calls so far. A trace takes both
as inputs, so that one kernel serves every call; each run advances the stream by as many
draw calls as were traced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nfuser.compiler.ir.base import node
from nfuser.compiler.trace.captures.randomness.clocks import is_of_numpy
from nfuser.compiler.trace.captures.randomness.stream import Stream
from nfuser.compiler.trace.captures.randomness.torch_seeds import is_of_torch
from nfuser.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from nfuser.compiler.trace.captures.lookup.origin import Origin

    Read = Callable[[tuple[Any, ...], Mapping[str, Any]], Any]


# To a strict checker type(x) of a value typed Any is unknown; this one is not.
_class_of: Callable[[object], type[object]] = type


@node
class DrawnStream:
    """A stream that a trace draws from: where it is read, and how often it is drawn.

    The key is passed in ``slot``, the number of its first draw call in the next one. A
    generator of NumPy's is passed itself. The key of one that is ``on_device`` is a
    tensor there.
    """

    slot: int
    origin: Origin
    number: int  # among the different streams
    draws: int
    on_device: bool = False


@node
class Streams:
    """The streams that a traced function could see, and those that it drew from.

    ``places`` say where each is read, with its number: where two are one now, or one
    is two, the function has to be traced again.
    """

    places: tuple[tuple[Origin, Read, int, type[object]], ...] = ()
    drawn: tuple[DrawnStream, ...] = ()

    @property
    def are_of_nfuser(self) -> bool:
        """Whether all count in their own words: none is NumPy's or torch's."""
        return all(issubclass(kind, Stream) for *_, kind in self.places)

    def read(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Any, ...] | None:
        """Return the streams to draw from in this call; None to trace it again."""
        found: dict[int, Any] = {}
        for _, read, number, kind in self.places:
            stream = read(args, kwargs)
            if type(stream) is not kind:
                return None
            if found.setdefault(number, stream) is not stream:
                return None
        if len({id(stream) for stream in found.values()}) < len(found):
            return None
        return tuple(found[drawn.number] for drawn in self.drawn)


class StreamDraws:
    """Counts what one trace draws from each stream."""

    def __init__(self) -> None:
        self._drawn: dict[int, tuple[Any, Origin, int, int]] = {}
        self._on_device: set[int] = set()

    def add(
        self, stream: Any, slot: int, values: Mapping[Origin, Any]
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

    def put_on_device(self, slot: int) -> None:
        """Note that the key in ``slot`` is passed as a tensor."""
        self._on_device.add(slot)

    def freeze(self, values: Mapping[Origin, Any]) -> Streams:
        """Return what was drawn, and where all streams were found."""
        seen = [(o, s) for o, s in values.items() if is_drawn_from(s)]
        numbers, on_device = _numbers(stream for _, stream in seen), self._on_device
        places = tuple((o, o.reader(), numbers[id(s)], _class_of(s)) for o, s in seen)
        drawn = tuple(
            DrawnStream(slot, origin, numbers[id(stream)], draws, slot in on_device)
            for stream, origin, slot, draws in self._drawn.values()
        )
        return Streams(places, drawn)


def is_drawn_from(item: Any) -> bool:
    """Tell whether ``item`` is a stream, or a generator of NumPy's or of torch's."""
    return isinstance(item, Stream) or is_of_numpy(item) or is_of_torch(item)


def _numbers(streams: Iterable[Any]) -> dict[int, int]:
    found: dict[int, int] = {}
    for stream in streams:
        found.setdefault(id(stream), len(found))
    return found
