# SPDX-License-Identifier: Apache-2.0
"""Global memory as a kernel's pointer argument sees it, and what a run reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

_ALIGNMENT = 256  # what allocators give


class PointerArgument:
    """A pointer argument: storage, where in it the pointer points, and its address.

    Buffers over the same array object see each other's writes, and races between them
    are found. 16-bit floats and bools are stored as unsigned integers.

    Parameters
    ----------
    storage
        A one-dimensional, contiguous array.
    offset
        The element that the pointer points to.
    address
        Of element 0 of the storage; only its alignment matters.
    initialized
        Whether reading an element is allowed before the kernel wrote it.
    in_place
        Whether the kernel overwrites what it reads, each thread its own element.
        Threads past the end read the last one as well, and do nothing with it.
    """

    __slots__ = ("address", "in_place", "initialized", "memory", "offset", "storage")

    def __init__(
        self,
        storage: np.ndarray[Any, Any],
        offset: int = 0,
        address: int = _ALIGNMENT,
        *,
        initialized: bool = True,
        in_place: bool = False,
    ) -> None:
        if storage.ndim != 1 or not storage.flags.c_contiguous:
            raise ValueError("storage must be one-dimensional and contiguous")
        self.storage = storage
        self.memory = _as_stored(storage)
        self.offset = offset
        self.address = address
        self.initialized = initialized
        self.in_place = in_place


def _as_stored(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if array.dtype.kind == "b":
        return array.view(np.uint8)
    if array.dtype.itemsize == 2 and array.dtype.kind not in "iu":
        return array.view(np.uint16)
    return array


@dataclass(slots=True)
class PointerUse:
    """What a kernel did with one pointer argument."""

    elements_read: int = 0
    distinct_elements_read: int = 0
    elements_written: int = 0
    packet_reads: int = 0
    packet_writes: int = 0


@dataclass(slots=True)
class RunReport:
    """What a run counted; a run that breaks a rule raises instead."""

    accesses: dict[str, PointerUse] = field(default_factory=dict[str, PointerUse])
    barriers: int = 0
    waves: int = 0
