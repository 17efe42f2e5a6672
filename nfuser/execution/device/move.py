# SPDX-License-Identifier: Apache-2.0
"""Copy an array of the host's to a device, as an array of the library there."""

from __future__ import annotations

from typing import Any

from nfuser.compiler.dtypes import as_dtype
from nfuser.execution.device.cuda.driver import why_missing
from nfuser.execution.device.describe.libraries import Device, Library, module
from nfuser.execution.device.phantom import Phantom


def moved(item: Any, library: Library, device: Device) -> Any:
    """Return ``item``, of NumPy or torch, as an array of ``library`` on ``device``.

    Where there is no such device, what stands for the array has no elements.
    """
    if why_missing() is not None:
        return Phantom(library, device, tuple(item.shape), as_dtype(item.dtype))
    made = module(library)
    if library is Library.TORCH:
        return made.as_tensor(item, device=str(device))
    host = item if type(item).__module__ == "numpy" else item.numpy()
    if library is Library.CUPY:
        with made.cuda.Device(device.index):
            return made.asarray(host)
    if library is Library.NUMBA:
        with made.gpus[device.index]:
            return made.to_device(host)
    return made.device_put(host, made.devices("cuda")[device.index])
