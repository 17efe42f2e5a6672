# SPDX-License-Identifier: Apache-2.0
"""Who owns what native code reads.

An address is good for as long as something holds what lies there. So addresses come
from here alone: from a ``Keeper``, which holds whatever it gives the address of, or
from ``for_ever``. What a call follows is an ``Owned``: words, and the keepers of all
that they name, in one object that nobody can change. Native code takes a reference to
it before the first word and gives it back after the last.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable


class Keeper:
    """Gives addresses, and holds what lies there as long as it lives itself."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: list[Any] = []

    def object(self, item: object) -> int:
        """Return where ``item`` lies."""
        self._held.append(item)
        return id(item)

    def words(self, numbers: Iterable[int]) -> int:
        """Return where ``numbers`` lie, a 0 behind them."""
        made = new_words([*numbers, 0])
        self._held.append(made)
        return address_of(made)

    def structure(self, item: ctypes.Array[Any]) -> int:
        """Return where the memory of a ``ctypes`` object lies."""
        self._held.append(item)
        return ctypes.addressof(item)

    def hold(self, *items: object) -> None:
        """Hold what words name by way of something else."""
        self._held += items


class Owned(tuple[Any, ...]):
    """Words that native code follows, and what holds all that they name.

    Native code knows the words by their place, the first, and trusts no object of
    another type.
    """

    __slots__ = ()

    def __new__(cls, words: Any, *holders: object) -> Owned:
        """Return the owner of ``words``, which ``new_words`` made."""
        assert words.dtype == np.int64
        return super().__new__(cls, (words, *holders))


def new_words(numbers: Iterable[int]) -> Any:
    """Return memory with ``numbers`` of 64 bits."""
    return np.array([*numbers], np.int64)


def address_of(words: Any) -> int:
    """Return where ``words`` lie: good as long as the caller holds them."""
    return words.ctypes.data


def for_ever(item: object) -> int:
    """Return where ``item`` lies; it is never freed, not even while the process ends.

    Modules are emptied then, and finalizers may still call.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(item))
    return id(item)
