# SPDX-License-Identifier: Apache-2.0
"""What changed of the values that a trace took from outside its arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nfuser.compiler.trace.captures.windows import memory_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from nfuser.compiler.trace.captures.captured import Captured, CapturedArray

_LOST = (AttributeError, LookupError, TypeError, ValueError)


def changed_constants(
    captured: Captured, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Iterator[str]:
    """Yield the names of what is no longer what the trace has of it."""
    for constant in captured.constants:
        if not _holds(lambda c=constant: c.holds(c.read(args, kwargs))):
            yield str(constant.origin)


def changes(
    captured: Captured, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Iterator[str]:
    """Yield a sentence for each reason why ``captured.read`` gives None."""
    for name in changed_constants(captured, args, kwargs):
        yield f"{name}, which it reads outside of its arguments, changed"
    for one, other in captured.aliases:
        if not _holds(
            lambda a=one, b=other: (
                memory_of(a.read(args, kwargs)) == memory_of(b.read(args, kwargs))
            )
        ):
            yield f"{one} and {other} are no longer the same array"
    for array in captured.arrays:
        yield from _changes_of(array, args, kwargs)
    if captured.streams.places and captured.read_streams(args, kwargs) is None:
        yield "a generator that it draws from is another"


def _changes_of(
    array: CapturedArray, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Iterator[str]:
    name = array.origin
    try:
        item = array.read(args, kwargs)
    except _LOST:
        yield f"{name} is no longer there"
        return
    if type(item) is not array.library:
        before = array.library.__name__
        yield f"{name} is of class {type(item).__name__}, traced before as {before}"
        return
    if item.dtype != array.native:
        yield f"the dtype of {name} is {item.dtype}, traced before as {array.native}"
    if len(item.shape) != array.ndim:
        yield f"{name} has {len(item.shape)} axes, traced before with {array.ndim}"


def _holds(ask: Callable[[], bool]) -> bool:
    try:
        return ask()
    except _LOST:
        return False
