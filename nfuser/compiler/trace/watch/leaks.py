# SPDX-License-Identifier: Apache-2.0
"""Traced arrays that a function put somewhere instead of returning them.

``self.state = x * 2`` and ``log.append(x.sum())`` happen once, while the function is
traced; what they leave behind has no elements. So a trace looks for its stand-ins when
it is over, and warns of those that something still holds.
"""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import gc
import sys
import warnings
from types import CellType, FrameType, FunctionType
from typing import TYPE_CHECKING, Any

from nfuser.compiler.trace.standins.standin import Standin

if TYPE_CHECKING:
    import weakref
    from collections.abc import Iterable

    from nfuser.compiler.ir.tensor import SourceLine

# What holds a stand-in for somebody else.
_PASSED_ON = (list, tuple, dict, CellType, FunctionType, Standin)


def warn_of_kept(
    made: Iterable[weakref.ref[Standin]], name: str, otherwise: SourceLine | None
) -> None:
    """Warn of the stand-ins that something still holds after their trace.

    The line is the one that made the array; ``otherwise`` that of the function.
    """
    alive = [ref for ref in made if ref() is not None]
    for generation in (1, 2):
        if not alive:
            return
        gc.collect(generation)  # functions that call themselves hold their variables
        alive = [ref for ref in alive if ref() is not None]
    if not alive or not _is_kept(*alive):
        return
    seen: set[SourceLine | None] = set()
    for ref in alive:
        line = _line(ref) or otherwise
        if line not in seen and _is_kept(ref):
            seen.add(line)
            _warn(name, _place(ref), line)


def _is_kept(*refs: weakref.ref[Standin]) -> bool:
    """Return whether anything but frames of calls that are over holds one of stand-ins.

    A profiler looks at the frames of all threads, a debugger and a traceback keep them:
    none of these is something that the function wrote. What frames hold may lie in
    lists of arguments and closures of theirs.
    """
    holders: list[Any] = []
    held: list[Any] = [ref() for ref in refs]
    seen: set[int] = set()
    while held:
        ours = {id(holders), id(held)}
        # All of memory is looked at, once for all that is held.
        holders = [h for h in gc.get_referrers(*held) if id(h) not in ours]
        held = []
        for holder in holders:
            if isinstance(holder, FrameType) or id(holder) in seen:
                continue
            if not isinstance(holder, _PASSED_ON):
                return True
            seen.add(id(holder))
            held.append(holder)
    return False


def _line(ref: weakref.ref[Standin]) -> SourceLine | None:
    item = ref()
    return None if item is None else item._operand().source  # pyright: ignore[reportPrivateUsage]


def _warn(name: str, place: str, line: SourceLine | None) -> None:
    message = (
        f"{name} keeps a traced array in {place}; a fused function runs once, while it "
        "is traced, and what it writes outside itself then has no elements and is not "
        "written again: return the array and keep it after the call"
    )
    if line is None:
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    else:
        message += line.note
        warnings.warn_explicit(message, RuntimeWarning, line.file, line.line)


def _place(ref: weakref.ref[Standin]) -> str:
    """Return what holds a stand-in, in the user's words."""
    # No variable of ours may hold it by then: it would be found, too.
    found, holders = id(ref()), gc.get_referrers(ref())
    for holder in holders:
        if isinstance(holder, FrameType):
            continue
        if isinstance(holder, dict):
            return _place_in_dict(holder, found)
        if isinstance(holder, CellType):
            return "a variable of a closure"
        name = _key(getattr(holder, "__dict__", {}), found)
        kind = type(holder).__qualname__
        return f"a {kind}" if name is None else f"{kind}.{name}"
    return "something outside itself"


def _place_in_dict(holder: dict[Any, Any], found: int) -> str:
    key = _key(holder, found)
    module = sys.modules.get(str(holder.get("__name__")))
    if module is not None and vars(module) is holder:
        return f"the global {key}"
    for owner in gc.get_referrers(holder):
        if getattr(owner, "__dict__", None) is holder:
            return f"{type(owner).__qualname__}.{key}"
    return f"a dict, as {key!r}"


def _key(names: Any, found: int) -> Any:
    return next((k for k, v in names.items() if id(v) == found), None)
