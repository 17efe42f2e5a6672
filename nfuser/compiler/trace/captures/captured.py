# SPDX-License-Identifier: Apache-2.0
"""Values that a traced function took from outside its arguments.

An array that an operation met is one more input, read again at each call. Anything
else that the function can read, numbers foremost, is a constant of the trace: when it
changed, the function is traced again. Nothing stale is ever used.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from nfuser.compiler.ir.base import node
from nfuser.compiler.trace.captures.lookup.bytecode import REFERENT
from nfuser.compiler.trace.captures.parts import PLAIN, is_array
from nfuser.compiler.trace.captures.randomness.streams import Streams
from nfuser.compiler.trace.captures.windows import (
    bytes_of,
    memory_of,
    overlap,
    sharing,
)
from nfuser.compiler.trace.numpy.creation.tables import Held
from nfuser.compiler.trace.standins.standin import is_ndarray

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nfuser.compiler.dtypes import DType
    from nfuser.compiler.trace.captures.lookup.origin import Origin

Read: TypeAlias = "Callable[[tuple[Any, ...], Mapping[str, Any]], Any]"


@node
class CapturedArray:
    """An array from outside: the slot it has, and where it is read at each call."""

    slot: int
    origin: Origin
    dtype: DType
    ndim: int
    library: type
    native: Any  # the dtype in that library's terms
    read: Read
    whole: Origin | None = None  # what this is a part of


@node
class Captured:
    """What a trace took from outside; ``read`` tells whether it is still so."""

    arrays: tuple[CapturedArray, ...] = ()
    constants: tuple[CapturedConstant, ...] = ()
    aliases: tuple[tuple[Origin, Origin], ...] = ()
    streams: Streams = Streams()

    @property
    def draws(self) -> bool:
        """Whether calls draw from a stream."""
        return bool(self.streams.drawn)

    @property
    def has_seen(self) -> bool:
        """Whether Python may have read in the memory of a constant while tracing."""
        return any(constant.memory is not None for constant in self.constants)

    def holders(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        """Return what stands on the way to all that is captured, and that itself."""
        origins = [held.origin for held in (*self.constants, *self.arrays)]
        return [x for origin in origins for x in origin.way(args, kwargs)]

    def read_streams(
        self, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> tuple[Any, ...] | None:
        """Return the streams to draw from; None when it must be traced again."""
        try:
            return self.streams.read(args, kwargs or {})
        except (AttributeError, LookupError, ValueError):
            return None

    def read(
        self, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> tuple[Any, ...] | None:
        """Return today's captured arrays; None when it must be traced again."""
        kwargs = kwargs or {}
        try:
            for constant in self.constants:
                if not constant.holds(constant.read(args, kwargs)):
                    return None
            for one, other in self.aliases:
                if memory_of(one.read(args, kwargs)) != memory_of(
                    other.read(args, kwargs)
                ):
                    return None
            found = [array.read(args, kwargs) for array in self.arrays]
            for array, item in zip(self.arrays, found, strict=True):
                if type(item) is not array.library or item.dtype != array.native:
                    return None
                if len(item.shape) != array.ndim:
                    return None
        except (AttributeError, LookupError, ValueError):
            return None
        return tuple(found)

    def seen_within(
        self, arrays: Sequence[Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> str | None:
        """Name what Python has read while tracing that shares memory with ``arrays``.

        None where nothing does.
        """
        for constant in self.constants:
            if constant.memory is None:
                continue
            held: Any = constant.memory(args, kwargs)
            if not is_ndarray(held) and not is_array(held):
                held = bytes_of(held)
            if any(overlap(held, x) for x in sharing(held, arrays)):
                return str(constant.origin)
        return None

    def placed(self, place: Callable[[Any], Any]) -> Captured:
        """Return this with the tables of the trace as ``place`` gives them."""
        arrays: list[CapturedArray] = []
        for found in self.arrays:
            root = found.origin.root
            if not isinstance(root.place, Held):
                arrays.append(found)
                continue
            item = root.place[root.key] = place(root.place[root.key])
            arrays.append(replace(found, library=type(item), native=item.dtype))
        return replace(self, arrays=tuple(arrays))


@node
class CapturedConstant:
    """A value that the trace depends on, and the test that it is unchanged.

    What Python has read of one that has ``memory`` is what was there then.
    """

    origin: Origin
    holds: Callable[[Any], bool]
    read: Read
    memory: Read | None = None


def memory_read(
    origin: Origin, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Read | None:
    """Return what reads the array, or buffer, in which ``origin`` lies, if one is.

    A number that is an item of an array, or of a buffer, lies in there: of an array of
    NumPy's that item alone is read.
    """
    way: list[Any] = origin.way(args, kwargs)
    if not way:
        return None
    is_item = bool(way[1:]) and not origin.steps[-1].is_attribute
    is_number = is_item and isinstance(way[-1], PLAIN)
    found: Any = way[-1 - is_number]
    if not is_array(found) and (isinstance(found, PLAIN) or bytes_of(found) is None):
        return None
    if not is_number:
        return origin.reader()
    *steps, last = origin.steps
    whole = replace(origin, steps=tuple(steps)).reader()
    if not is_ndarray(found) or last.key is REFERENT:
        return whole
    key: Any = last.key
    place: Any = (*key, ...) if type(key) is tuple else (key, ...)
    return lambda args, kwargs: whole(args, kwargs)[place]
