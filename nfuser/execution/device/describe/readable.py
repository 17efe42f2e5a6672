# SPDX-License-Identifier: Apache-2.0
"""Arrays that kernels cannot read where they lie are copied first, as NumPy does.

Buffers that came over a network begin anywhere; files hold the other byte order; the
fields of records lie between others. Whoever copies says so and counts it.
"""

# Arrays of several libraries have no common static type.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.execution.device.describe.libraries import Library
from nfuser.execution.device.describe.numpy import PLAIN

if TYPE_CHECKING:
    from collections.abc import Callable


def readable(library: Library, array: Any) -> Any:
    """Return ``array``, or the copy of it that a kernel can read.

    >>> import numpy as np
    >>> x = np.frombuffer(bytes(17), np.uint8)[1:].view(np.float64)
    >>> readable(Library.NUMPY, x) is x
    False
    """
    read = _READ.get(library)
    return array if read is None else read(array)


def fault(array: Any) -> str:
    """Say why no kernel can read ``array`` where it lies."""
    if isinstance(array, np.ndarray) and not array.dtype.isnative:
        return "its elements are not in the byte order of this machine"
    return "its elements do not lie at multiples of their size"


def _numpy(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    dtype = array.dtype
    size = dtype.itemsize
    # The parts of a complex number are aligned each by itself.
    is_whole = size == dtype.alignment or not any(s % size for s in array.strides)
    if array.flags.aligned and dtype.isnative and is_whole:
        return array
    # Others are refused by name: a copy of a masked array would lose its mask.
    if type(array) not in PLAIN or dtype.kind not in "biufc":
        return array
    return np.array(array, dtype.newbyteorder("="), order="K", subok=False)


def _torch(tensor: Any) -> Any:
    layout = getattr(tensor, "layout", None)  # none, if it only has the name of one
    if layout.__repr__() != "torch.strided":
        return tensor
    try:
        is_aligned = not tensor.data_ptr() % tensor.element_size()
    except RuntimeError:
        return tensor  # a tracer, which has no memory, and is refused by name
    return tensor if is_aligned else tensor.clone()


_READ: dict[Library, Callable[[Any], Any]] = {
    Library.NUMPY: _numpy,
    Library.TORCH: _torch,
}
