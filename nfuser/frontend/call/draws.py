# SPDX-License-Identifier: Apache-2.0
"""The draw calls of a call, which another call can make again.

The way back through a call draws what the way there drew, when the generators have
moved on. It runs the same function, so it first draws from each generator in the same
order: what each gave is told by its place in that order, whoever holds it by then.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeAlias

from nfuser.compiler.trace.captures.randomness.stream import Stream
from nfuser.compiler.trace.captures.randomness.torch_seeds import (
    is_of_torch,
    key_of_torch,
    tensor_of_torch,
)
from nfuser.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from nfuser.compiler.trace.captures.randomness.streams import DrawnStream

DrawCalls: TypeAlias = "tuple[int, tuple[Any, ...]]"
"""How often a call drew from a stream, and what it was given: a key, the first call."""

_notes: ContextVar[list[DrawCalls] | None]
_notes = ContextVar("nfuser_noted_draws", default=None)
_again: ContextVar[Sequence[DrawCalls] | None]
_again = ContextVar("nfuser_draws_again", default=None)


def take_draws(drawn: Sequence[DrawnStream], streams: Sequence[Any]) -> dict[int, Any]:
    """Return what a call is given in the slots of its streams, which move on.

    Streams that draw again stay where they are. Calls that note draws, or repeat them,
    have to come here: native code does neither.
    """
    again = _again.get()
    if again is None:
        again = [_taken(*pair) for pair in zip(drawn, streams, strict=True)]
    elif [count for count, _ in again] != [what.draws for what in drawn]:
        message = (
            "leave what the function depends on as it is until the way back: it draws "
            "other random numbers than on the way there"
        )
        raise TraceError(message)
    notes = _notes.get()
    if notes is not None:
        notes.extend(again)
    numbers: dict[int, Any] = {}
    for what, (_, values) in zip(drawn, again, strict=True):
        numbers.update(enumerate(values, what.slot))
    return numbers


def _taken(what: DrawnStream, stream: Any) -> DrawCalls:
    if isinstance(stream, Stream):
        return what.draws, stream.take(what.draws)
    if what.on_device:
        return what.draws, (tensor_of_torch(stream), 0)
    if is_of_torch(stream):
        return what.draws, (key_of_torch(stream), 0)
    return what.draws, (stream,)  # NumPy's own counts by itself


@contextmanager
def noting_draws() -> Generator[list[DrawCalls]]:
    """Enter a context in which a call notes its draw calls."""
    notes: list[DrawCalls] = []
    token = _notes.set(notes)
    try:
        yield notes
    finally:
        _notes.reset(token)


@contextmanager
def drawing_again(made: Sequence[DrawCalls]) -> Generator[None]:
    """Enter a context in which a call makes draw calls that were made before."""
    token = _again.set(made)
    try:
        yield
    finally:
        _again.reset(token)
