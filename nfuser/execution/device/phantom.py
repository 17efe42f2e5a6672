# SPDX-License-Identifier: Apache-2.0
"""An array that nobody can make: of a library or a device that this machine lacks.

It has all that a description needs but the elements, so that kernels can be written
for it, and shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.base import value
from nfuser.execution.device.describe.libraries import (
    Descriptor,
    Device,
    Library,
    c_strides,
)

if TYPE_CHECKING:
    from nfuser.compiler.dtypes import DType

_ADDRESS = 1 << 20  # as aligned as what allocators give


@value
class Phantom:
    """Stands for an array of ``library`` on ``device``, in C order."""

    library: Library
    device: Device
    shape: tuple[int, ...]
    dtype: DType


def describe_phantom(array: Phantom, what: str) -> Descriptor:
    """Describe the array that ``array`` stands for."""
    del what
    strides = c_strides(array.shape)
    place = array.library, array.device
    return Descriptor(*place, array.dtype, array.shape, strides, _ADDRESS, True)


def phantom_key(array: Phantom) -> Phantom:
    """Return all that a description depends on."""
    return array


def phantom_pointer(array: Phantom) -> int:
    """Return an address that no memory has."""
    del array
    return _ADDRESS
