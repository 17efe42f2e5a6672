# SPDX-License-Identifier: Apache-2.0
"""Loops that fail: what turns have made of the caller's arrays is copied there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nfuser.execution.host.run.arrays_of import arrays_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.execution.device.describe.descriptor import Device, Library
    from nfuser.execution.host.call.program import Repeat, Slot


def saves(
    stmt: Repeat, library: Library, device: Device
) -> list[tuple[Callable[[Any, Any], None], Slot, Slot]]:
    """Return functions that copy the first of two arrays to where it belongs."""
    arrays = arrays_of(library, device)

    def save(own: Any, home: Any) -> None:
        arrays.copy(arrays.own(own), arrays.own(home))

    def save_real(own: Any, home: Any) -> None:
        arrays.copy(arrays.own(own), arrays.own(home).real)

    def save_imaginary(own: Any, home: Any) -> None:
        arrays.copy(arrays.own(own), arrays.own(home).imag)

    found: list[tuple[Callable[[Any, Any], None], Slot, Slot]] = []
    for own, home in stmt.homes:
        function = save
        if home.slot.dtype.is_complex:
            function = save_imaginary if home.offset else save_real
        found.append((function, own, home.slot))
    return found
