# SPDX-License-Identifier: Apache-2.0
"""What memory the statements of a host program read and write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.execution.device.cuda.ordering import Bytes, Footprint
from nfuser.execution.device.describe.elements import span
from nfuser.execution.host.call.program import SlotPart

if TYPE_CHECKING:
    from nfuser.execution.host.call.program import LaunchKernel, Slot


def of_launch(launch: LaunchKernel) -> Footprint:
    """Return what a kernel touches; the buffers are its first parameters."""
    touched: list[Bytes] = []
    for k, buffer in enumerate(launch.source.form.buffers):
        part = launch.arguments[k]
        assert isinstance(part, SlotPart)
        slot = part.slot
        low, high = span(slot.shape, slot.strides, slot.dtype.itemsize)
        is_written = buffer.role != "in"
        touched.append(Bytes(k, low - part.offset, high - part.offset, is_written))
    return Footprint(tuple(touched), launch.is_cooperative)


def of_clear(slot: Slot) -> Footprint:
    """Return what clearing a slot touches; its address is the only parameter."""
    low, high = span(slot.shape, slot.strides, slot.dtype.itemsize)
    return Footprint((Bytes(0, low, high, is_written=True),))
