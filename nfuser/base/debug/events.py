# SPDX-License-Identifier: Apache-2.0
"""Spans of time with a name, told to whoever watches: nobody, as a rule.

While somebody does, native code leaves all calls to Python, where spans are told. So
calls that nobody watches pay nothing for it.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol

import nfuser.config as config
from nfuser.base.locks import ForkSafeLock

if TYPE_CHECKING:
    from collections.abc import Generator
    from contextlib import AbstractContextManager


class Watcher(Protocol):
    """Is told when a span begins and when it ends, on the thread that it is on."""

    def begin(self, name: str, kind: str) -> Any:
        """Note that a span begins; what this returns is given to ``end``."""
        ...

    def end(self, begun: Any, told: dict[str, object]) -> None:
        """Note that it ends; ``told`` is what was learnt on the way."""
        ...


_lock = ForkSafeLock()
_watchers: tuple[Watcher, ...] = ()


def watched() -> bool:
    """Tell whether anybody watches."""
    return bool(_watchers)


def watch(watcher: Watcher) -> None:
    """Tell ``watcher`` of all spans that begin from now on."""
    _change(watcher, is_watching=True)


def leave(watcher: Watcher) -> None:
    """Tell ``watcher`` of no span any more but of the ends of those that run."""
    _change(watcher, is_watching=False)


def _change(watcher: Watcher, *, is_watching: bool) -> None:
    global _watchers
    with _lock:
        others = tuple(w for w in _watchers if w is not watcher)
        _watchers = (*others, watcher) if is_watching else others
        config.leave_to_python(is_wanted=bool(_watchers))


def span(name: str, kind: str) -> AbstractContextManager[dict[str, object]]:
    """Return what is entered and left with a span; what is put into it is told.

    ``kind`` is the stage that takes the time, ``call`` or ``launch``.
    """
    return _told(name, kind) if _watchers else nullcontext({})


@contextmanager
def _told(name: str, kind: str) -> Generator[dict[str, object]]:
    told: dict[str, object] = {}
    with ExitStack() as ends:  # of each that began, also where one of them raises
        for watcher in _watchers:
            ends.callback(watcher.end, watcher.begin(name, kind), told)
        yield told
