# SPDX-License-Identifier: Apache-2.0
"""Arrays in: what a kernel needs to know, or why the array cannot be taken.

``describe`` is for the first call of its kind. Later calls compare keys: a key holds
all that a description depends on but the address, so an array that ``describe`` would
refuse never has the key of one that it took.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from nfuser.errors import ArgumentError
from nfuser.execution.device.describe.cupy_and_numba import (
    describe_cupy,
    describe_numba,
    numba_device,
    numba_pointer,
)
from nfuser.execution.device.describe.jax import describe_jax, jax_pointer
from nfuser.execution.device.describe.libraries import (
    CPU,
    Descriptor,
    Device,
    Library,
    is_array,
    library_of,
)
from nfuser.execution.device.describe.numpy import describe_numpy, numpy_pointer
from nfuser.execution.device.describe.torch import describe_torch, has_tangent
from nfuser.execution.device.phantom import (
    describe_phantom,
    phantom_key,
    phantom_pointer,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    import numpy as np

__all__ = [
    "CPU",
    "Descriptor",
    "Device",
    "Library",
    "address_and_key",
    "describe",
    "is_array",
    "key_reader",
    "library_of",
    "pointer_reader",
]

_DESCRIBE: dict[Library, Callable[[Any, str], Descriptor]] = {
    Library.NUMPY: describe_numpy,
    Library.TORCH: describe_torch,
    Library.CUPY: describe_cupy,
    Library.NUMBA: describe_numba,
    Library.JAX: describe_jax,
    Library.PHANTOM: describe_phantom,
}


def describe(array: object, what: str) -> Descriptor:
    """Describe an array; ``what`` names it in an error ("argument 'x' of norm").

    >>> import numpy as np
    >>> describe(np.zeros((2, 3), "f4"), "x")
    numpy f32[2, 3] on cpu
    >>> describe(np.zeros((2, 3), "f4").T[::-1], "x").strides
    (-1, 3)
    """
    library = library_of(type(array))
    if library is None:
        message = (
            f"{what}: expected an array of NumPy, PyTorch, CuPy, Numba or JAX, found "
            f"{type(array).__module__}.{type(array).__qualname__}"
        )
        raise ArgumentError(message)
    try:
        return _DESCRIBE[library](array, what)
    except (AttributeError, KeyError) as error:  # no module has made it
        name = f"{type(array).__module__}.{type(array).__qualname__}"
        message = (
            f"{what}: pass an array that {library.value} made: this {name} only has "
            f"the name of one"
        )
        raise ArgumentError(message) from error


def pointer_reader(library: Library) -> Callable[[Any], int]:
    """Return the fastest function that reads the address of a first element."""
    return _POINTER[library]


def key_reader(library: Library) -> Callable[[Any], Hashable]:
    """Return a function that reads all a description depends on but the address."""
    return _KEY[library]


def address_and_key(library: Library, array: Any) -> tuple[int, Hashable]:
    """Return where an array lies, and all of it that the plan of a call depends on.

    That is its library, what its description depends on, and how it is aligned.
    """
    address = _POINTER[library](array)
    return address, (library, _KEY[library](array), address & 15)


def _torch_pointer(tensor: Any) -> int:
    return tensor.data_ptr()


def _cupy_pointer(array: Any) -> int:
    return array.data.ptr


def _numpy_key(array: np.ndarray[Any, Any]) -> Hashable:
    flags = array.flags
    return (
        type(array),
        array.dtype,
        array.shape,
        array.strides,
        flags.aligned,
        flags.writeable,
    )


def _torch_key(tensor: Any) -> Hashable:
    # Sparse tensors refuse stride() themselves, and those of torch.func data_ptr().
    torch = sys.modules["torch"]
    grad = tensor.requires_grad and torch.is_grad_enabled()
    return (
        tensor.__class__,
        tensor.dtype,
        tensor.shape,
        tensor.stride(),
        tensor.device,
        grad or tensor.is_neg() or tensor.is_conj() or has_tangent(torch, tensor),
        tensor.data_ptr() == 0 and tensor.numel() > 0,  # a tracer of torch.func
    )


def _cupy_key(array: Any) -> Hashable:
    return array.dtype, array.shape, array.strides, array.data.device_id


def _numba_key(array: Any) -> Hashable:
    return array.dtype, array.shape, array.strides, numba_device(array)


def _jax_key(array: Any) -> Hashable:
    return array.dtype, array.shape, array.format, array.is_deleted()


_POINTER: dict[Library, Callable[[Any], int]] = {
    Library.NUMPY: numpy_pointer,
    Library.TORCH: _torch_pointer,
    Library.CUPY: _cupy_pointer,
    Library.NUMBA: numba_pointer,
    Library.JAX: jax_pointer,
    Library.PHANTOM: phantom_pointer,
}
_KEY: dict[Library, Callable[[Any], Hashable]] = {
    Library.NUMPY: _numpy_key,
    Library.TORCH: _torch_key,
    Library.CUPY: _cupy_key,
    Library.NUMBA: _numba_key,
    Library.JAX: _jax_key,
    Library.PHANTOM: phantom_key,
}
