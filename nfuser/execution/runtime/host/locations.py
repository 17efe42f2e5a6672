# SPDX-License-Identifier: Apache-2.0
"""Where the tensors of a host program lie, and what views make of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

import nfuser.execution.host.call.program as flat
from nfuser.compiler.ir.base import node
from nfuser.execution.device.describe.libraries import CPU, Library
from nfuser.execution.host.call.library.library_calls import view_reader
from nfuser.execution.host.run.arrays import Arrays

_BYTE = np.zeros(1, np.int8)
_ORIGIN = _BYTE.ctypes.data
_NUMPY = Arrays(Library.NUMPY, CPU)


@node
class Location:
    """Where a tensor lies: in the memory of ``slot``, in which ``views`` find it.

    NumPy makes the views of a stand-in, too, which says the rest. Its elements are
    bytes that nobody may read: they lie in no memory.
    """

    slot: flat.Slot
    stand_in: np.ndarray[Any, Any]
    views: tuple[flat.ViewOf, ...] = ()

    @staticmethod
    def of(slot: flat.Slot) -> Location:
        """Return where all of a slot lies."""
        return Location(slot, as_strided(_BYTE, slot.shape, slot.strides))

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        return self.stand_in.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides, in elements."""
        return self.stand_in.strides

    @property
    def offset(self) -> int:
        """How many bytes the first element lies behind that of the slot."""
        if not self.views:
            return 0
        return (self.stand_in.ctypes.data - _ORIGIN) * self.slot.dtype.itemsize

    @property
    def is_whole(self) -> bool:
        """Whether it is what the slot is."""
        return not self.views or self.is_at(Location.of(self.slot))

    @property
    def operand(self) -> flat.Operand:
        """What a library reads there."""
        return flat.Operand(flat.SlotPart(self.slot), self.views)

    def is_at(self, other: Location) -> bool:
        """Tell whether elements are the same ones, in the same order."""
        own = self.slot, self.shape, self.strides, self.offset
        return own == (other.slot, other.shape, other.strides, other.offset)

    def viewed(self, view: flat.ViewOf) -> Location | None:
        """Return what a view makes of it; None if that is a copy."""
        if view.how == "reshape":
            seen = self._reshaped(view.numbers)
        else:
            seen = view_reader((view,), _NUMPY)(self.stand_in)
        if seen is None:
            return None
        return replace(self, stand_in=seen, views=(*self.views, view))

    def _reshaped(self, shape: tuple[int, ...]) -> np.ndarray[Any, Any] | None:
        if self.stand_in.size != np.prod(shape, dtype=int):
            message = f"cannot reshape array of size {self.stand_in.size} into {shape}"
            raise ValueError(message)
        try:
            return self.stand_in.reshape(shape, copy=False)
        except ValueError:
            return None
