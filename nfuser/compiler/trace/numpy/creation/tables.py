# SPDX-License-Identifier: Apache-2.0
"""Arrays that a function computes outside the trace while it is traced.

``(np.arange(n) + 0.5) * h`` is an array that plain NumPy made of what Python consumed:
``n`` and ``h`` are guards by then, and names that it read are constants of the trace.
So its elements are, too: the trace keeps a copy, which each call reads as it reads a
captured array. What it may have been made of besides, captured arrays, is compared at
each call; what cannot be compared is refused.
"""

from __future__ import annotations

import hashlib
import warnings
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.trace.captures.randomness.clocks as clocks
from nfuser.compiler.trace.captures.lookup.origin import Origin, Root
from nfuser.compiler.trace.captures.parts import PLAIN, is_array
from nfuser.compiler.trace.source_line import current_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nfuser.compiler.ir.tensor import SourceLine

MUCH = 1 << 20  # bytes of captured arrays that a call had better not compare
_CODE = (type, BuiltinFunctionType, FunctionType, MethodType, ModuleType, np.ufunc)
_COMPARED = (*PLAIN, *_CODE, np.dtype, range, slice, set, frozenset, bytearray)


class Held(dict[str, Any]):
    """The tables of one trace by name: the place that calls read them from."""


class Tables:
    """The arrays that one trace keeps, each content once."""

    def __init__(self) -> None:
        self._held = Held()
        self._names: dict[Any, Origin] = {}

    def keep(self, item: Any) -> tuple[Origin, Any]:
        """Return where a copy of ``item`` is read from now on, and the copy.

        What the function later writes into ``item`` is no part of it.
        """
        content = _content(item)
        if content not in self._names:
            name = f"table {len(self._held)}"
            line = current_line()
            told = "a table" if line is None else f"the table of {line}"
            self._held[name] = _copied(item)
            self._names[content] = Origin(Root(self._held, name), told)
        origin = self._names[content]
        return origin, self._held[origin.root.key]


def can_keep(item: Any) -> bool:
    """Tell whether ``item`` is a plain array of numbers in the host's memory."""
    if type(item) is np.ndarray:
        return item.dtype.kind in "biufcV" and item.dtype.names is None
    return _is_tensor(item) and item.device.type == "cpu" and not item.requires_grad


def hidden(values: Iterable[tuple[Origin, Any]]) -> Origin | None:
    """Return a captured value that may hold numbers which no test compares."""
    for origin, found in values:
        if (
            isinstance(found, _COMPARED)
            or is_array(found)
            or clocks.is_generator(found)
        ):
            continue
        if any(
            hasattr(found, name) for name in ("__getitem__", "__iter__", "__array__")
        ):
            return origin
        if _has_memory(found):
            return origin
    return None


_warned: set[SourceLine | None] = set()


def warn_of_compared(arrays: Iterable[tuple[Origin, Any]]) -> None:
    """Say once for each line that captured arrays are compared at each call."""
    large = {o: n for o, a in arrays if (n := _bytes(a)) >= MUCH}
    line = current_line()
    if not large or line in _warned or line is None:
        return
    _warned.add(line)
    name = str(next(iter(large)))
    message = (
        f"write xp.asarray({name}) for {name}, where xp is nfuser.numpy, or make the "
        f"array here by xp: as plain NumPy may have made it of captured arrays, the "
        f"{sum(large.values()) >> 20} MB of those are compared at each call"
    )
    warnings.warn_explicit(message + line.note, RuntimeWarning, line.file, line.line)


def _bytes(item: Any) -> int:
    return int(getattr(item, "nbytes", 0))


def _is_tensor(item: Any) -> bool:
    return type(item).__module__ == "torch" and type(item).__name__ == "Tensor"


def _copied(item: Any) -> Any:
    return item.detach().clone() if _is_tensor(item) else item.copy(order="K")


def _content(item: Any) -> Any:
    host = item.numpy(force=True) if _is_tensor(item) else item
    dtype = item.dtype
    # Memory order decides that of results.
    layout = tuple(host.strides) if host.size else ()
    content = hashlib.blake2b(np.ascontiguousarray(host).view(np.uint8).tobytes())
    return type(item), dtype, tuple(host.shape), layout, content.digest()


def _has_memory(found: Any) -> bool:
    try:
        memoryview(found)
    except TypeError:
        return False
    return True
