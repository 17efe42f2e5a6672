# SPDX-License-Identifier: Apache-2.0
"""A bounded cache that makes each of its values once, in one thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar
from weakref import WeakValueDictionary

from nfuser.base.locks import ForkSafeLock
from nfuser.execution.runtime.tables.eviction import ByUse, Gone

if TYPE_CHECKING:
    from collections.abc import Callable

K = TypeVar("K")
V = TypeVar("V")


class Memo(Generic[K, V]):
    """Values by key, at most ``NFUSER_CACHE_SIZE``; the least recently used goes first.

    Where keys come in a cycle that it cannot hold, most of what it holds stays.

    A thread that asks for a value being made waits for it; other keys do not wait.
    What goes is only forgotten here: plans keep the kernels that they run.
    """

    def __init__(self) -> None:
        self._found: ByUse[K, V] = ByUse()
        # A lock lives as long as a thread makes its value or waits for it. Where making
        # fails, the next thread that waits tries again.
        self._making: WeakValueDictionary[K, ForkSafeLock] = WeakValueDictionary()
        self._lock = ForkSafeLock()
        self._gone = Gone()

    def get(self, key: K, make: Callable[[], V]) -> tuple[V, bool]:
        """Return the value of ``key``, and whether it was made just now."""
        with self._lock:
            if key in self._found:
                return self._touched(key), False
            making = self._making.get(key)
            if making is None:
                making = self._making[key] = ForkSafeLock()
        with making:
            with self._lock:
                if key in self._found:
                    return self._touched(key), False
            made = make()
            with self._lock:
                self._found[key] = made
                while (leaving := self._gone.drop(self._found, key)) is not None:
                    del self._found[leaving]
            return made, True

    def peek(self, key: K) -> V | None:
        """Return the value of ``key`` if there is one; this counts as its use."""
        with self._lock:
            return self._touched(key) if key in self._found else None

    def forget(self, key: K, value: V) -> None:
        """Forget what was made of ``key``, if it is ``value``."""
        with self._lock:
            if self._found.get(key) is value:
                del self._found[key]

    def values(self) -> list[V]:
        """Return all values, the least recently used first."""
        with self._lock:
            return list(self._found.values())

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._found.clear()
            self._gone.clear()

    def __len__(self) -> int:
        return len(self._found)

    def _touched(self, key: K) -> V:
        self._found.move_to_end(key)
        return self._found[key]
