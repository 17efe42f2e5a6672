# SPDX-License-Identifier: Apache-2.0
"""Which operations a host program uses: those of the library of its arrays."""

from __future__ import annotations

from typing import Any

from nfuser.errors import UnsupportedError
from nfuser.execution.device.describe.libraries import Device, Library, module
from nfuser.execution.host.run.arrays import Arrays
from nfuser.execution.host.run.device_arrays import CupyArrays, TorchArrays

_KINDS = {
    Library.NUMPY: Arrays,
    Library.TORCH: TorchArrays,
    Library.CUPY: CupyArrays,
}


def arrays_of(library: Library, device: Device) -> Arrays:
    """Return what a program on arrays of ``library`` uses."""
    if library not in _KINDS:
        message = (
            f"host programs take arrays of NumPy, PyTorch and CuPy, not of "
            f"{library.value}: its arrays cannot be written"
        )
        raise UnsupportedError(message)
    return _KINDS[library](library, device)


def share_memory(library: Library, a: Any, b: Any) -> bool:
    """Tell whether two arrays of ``library`` may lie in the same memory."""
    if library is Library.TORCH:
        return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
    return module(library).may_share_memory(a, b)
