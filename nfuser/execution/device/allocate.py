# SPDX-License-Identifier: Apache-2.0
"""Arrays out: outputs and workspaces from the caller's own allocator.

An output must be right when its library reuses memory behind streams: so each library
allocates its own arrays, on the stream it would itself launch on (large ones of NumPy
lie in memory that is lent: ``reuse``). A plan makes one
``allocator`` for each output and calls it without arguments ever after.

JAX is the exception. Its arrays are immutable, dense in C order, and computed on
streams that it shares with nobody. ``allocator`` returns a buffer that nobody has seen
yet, the kernel writes into it, and ``finish`` makes the array: on the CPU the buffer is
a NumPy array that JAX adopts; on a CUDA device it is a fresh JAX array, complete before
the kernel may touch it, and the stream is waited for before anybody may read it. That
costs JAX its asynchrony around a fused call; no public interface offers its stream.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.errors import DeviceError
from nfuser.execution.device.cuda import driver
from nfuser.execution.device.cuda.streams import DeviceGuard, guard
from nfuser.execution.device.describe.libraries import (
    CPU,
    Device,
    Library,
    c_strides,
    is_dense,
    module,
)
from nfuser.execution.device.reuse import LEAST_BYTES, reusing_allocator

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.dtypes import DType

Shape = tuple[int, ...]
ALIGNMENT = 16  # bytes: what every allocator gives, and all that packets need
_JAX_ALIGNMENT = 64  # JAX copies a host buffer that is aligned to less


def empty(
    library: Library, device: Device, shape: Shape, strides: Shape, dtype: DType
) -> Any:
    """Return an uninitialised array with these strides, counted in elements.

    >>> from nfuser.compiler.dtypes import DType
    >>> empty(Library.NUMPY, CPU, (2, 3), (1, 2), DType.F32).strides
    (4, 8)
    """
    return allocator(library, device, shape, strides, dtype)()


def output_strides(library: Library, shape: Shape, strides: Shape) -> Shape:
    """Return the strides that an output can have: JAX knows C order only."""
    return c_strides(shape) if library is Library.JAX else strides


def allocator(
    library: Library, device: Device, shape: Shape, strides: Shape, dtype: DType
) -> Callable[[], Any]:
    """Return a function that makes such an array; the strides must be dense.

    Dense means a permutation of C order: what NumPy calls K order always is.
    """
    if not is_dense(shape, strides) and not _is_permuted(shape, strides):
        message = f"strides {strides} do not fill an array of shape {shape}"
        raise ValueError(message)
    if (library is Library.NUMPY) != (device == CPU) and library not in _BOTH:
        message = f"{library.value} has no arrays on {device}"
        raise DeviceError(message)
    return _ALLOCATOR[library](device, shape, strides, dtype)


def allocation(
    library: Library, device: Device, shape: Shape, strides: Shape, dtype: DType
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return a C function, where there is one, and arguments: what ``allocator`` calls.

    The context of the device has to be current.
    """
    if library is Library.TORCH:
        torch = module(library)
        direct = getattr(torch._C._dynamo.guards, f"_empty_strided_{device.kind}", None)
        if direct is not None:
            return direct, (shape, strides, getattr(torch, dtype.numpy.name))
    if library is Library.CUPY and is_dense(shape, strides):
        return module(library).ndarray, (shape, dtype.numpy)
    return allocator(library, device, shape, strides, dtype), ()


def finish(
    library: Library, array: Any, *, stream: int = 0, scalar: bool = True
) -> Any:
    """Return what the caller gets for an output, after its kernel was launched.

    NumPy gives scalars where it would itself (0-d results, unless ``scalar`` is false);
    JAX gets its array; the others have theirs already.

    >>> finish(Library.NUMPY, np.zeros((), "f4"))
    np.float32(0.0)
    """
    if library is Library.NUMPY:
        return array[()] if scalar and array.ndim == 0 else array
    if library is Library.JAX:
        return _finish_jax(array, stream)
    return array


def _is_permuted(shape: Shape, strides: Shape) -> bool:
    order = _major_to_minor(strides)
    return is_dense(_permuted(shape, order), _permuted(strides, order))


def _major_to_minor(strides: Shape) -> Shape:
    return tuple(sorted(range(len(strides)), key=lambda axis: -strides[axis]))


def _permuted(sizes: Shape, order: Shape) -> Shape:
    return tuple(sizes[axis] for axis in order)


def _make_permuted(make: Callable[[], Any], inverse: Shape) -> Any:
    return make().transpose(inverse)


def _through_permutation(
    make: Callable[[Shape], Callable[[], Any]], shape: Shape, strides: Shape
) -> Callable[[], Any]:
    if is_dense(shape, strides):
        return make(shape)
    order = _major_to_minor(strides)
    inverse = tuple(order.index(axis) for axis in range(len(order)))
    return partial(_make_permuted, make(_permuted(shape, order)), inverse)


def _numpy(
    device: Device, shape: Shape, strides: Shape, dtype: DType
) -> Callable[[], Any]:
    def make(sizes: Shape) -> Callable[[], Any]:
        if math.prod(sizes) * dtype.itemsize >= LEAST_BYTES:
            return reusing_allocator(sizes, dtype)
        return partial(np.empty, sizes, dtype.numpy)

    return _through_permutation(make, shape, strides)


def _torch(
    device: Device, shape: Shape, strides: Shape, dtype: DType
) -> Callable[[], Any]:
    torch = module(Library.TORCH)
    kind = getattr(torch, dtype.numpy.name)
    general = partial(
        torch.empty_strided,
        shape,
        strides,
        dtype=kind,
        device=torch.device(str(device)),
    )
    # What torch.compile's own output calls: the same allocator without the argument
    # parser and the dispatcher, 0.5 us against 1.4.
    direct = getattr(torch._C._dynamo.guards, f"_empty_strided_{device.kind}", None)
    if direct is None:
        return general
    fast = partial(direct, shape, strides, kind)
    if not device.is_cuda:
        return fast
    current, index = torch._C._cuda_getDevice, device.index

    def allocate() -> Any:
        return fast() if current() == index else general()

    return allocate


def _cupy(
    device: Device, shape: Shape, strides: Shape, dtype: DType
) -> Callable[[], Any]:
    cupy = module(Library.CUPY)

    def make(sizes: Shape) -> Callable[[], Any]:
        return partial(cupy.empty, sizes, dtype.numpy)

    here = _through_permutation(make, shape, strides)

    def allocate() -> Any:
        if cupy.cuda.runtime.getDevice() == device.index:
            return here()
        with cupy.cuda.Device(device.index):
            return here()

    return allocate


def _numba(
    device: Device, shape: Shape, strides: Shape, dtype: DType
) -> Callable[[], Any]:
    cuda = module(Library.NUMBA)
    byte_strides = tuple(stride * dtype.itemsize for stride in strides)

    def allocate() -> Any:
        with cuda.gpus[device.index]:
            return cuda.device_array(shape, dtype.numpy, strides=byte_strides)

    return allocate


def _jax(
    device: Device, shape: Shape, strides: Shape, dtype: DType
) -> Callable[[], Any]:
    if not is_dense(shape, strides):
        message = f"JAX arrays are in C order; strides {strides} of {shape} are not"
        raise ValueError(message)
    if device == CPU:
        return partial(_aligned, shape, dtype)
    return partial(_jax_buffer, device, shape, dtype)


def _aligned(shape: Shape, dtype: DType) -> Any:
    count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    raw = np.empty(count + _JAX_ALIGNMENT, np.uint8)
    skip = -raw.ctypes.data % _JAX_ALIGNMENT
    return raw[skip : skip + count].view(dtype.numpy).reshape(shape)


def _jax_buffer(device: Device, shape: Shape, dtype: DType) -> Any:
    jax = module(Library.JAX)
    place = _jax_device(jax, device)
    # JAX leaves the context current in which it allocated last.
    with guard(device), _wide_types(jax):
        if np.prod(shape, dtype=np.int64) <= 1:
            # A constant this small may be one that JAX keeps and hands out again; what
            # is copied from the host belongs to us alone.
            array = jax.device_put(np.zeros(shape, dtype.numpy), place)
        else:
            array = jax.numpy.empty(shape, dtype.numpy, device=place)
    return array.block_until_ready()


def _finish_jax(array: Any, stream: int) -> Any:
    jax = module(Library.JAX)
    if isinstance(array, np.ndarray):
        with _wide_types(jax):
            return jax.device_put(array, jax.devices("cpu")[0], may_alias=True)
    with DeviceGuard(array.device.local_hardware_id):
        driver.synchronize(stream)
    return array


def _jax_device(jax: Any, device: Device) -> Any:
    for found in jax.local_devices(backend="cuda"):
        if found.local_hardware_id == device.index:
            return found
    message = f"JAX sees no {device}"
    raise DeviceError(message)


def _wide_types(jax: Any) -> Any:
    """Let JAX make 64-bit arrays: nfuser's dtypes are NumPy's, whatever the switch."""
    owner = jax if hasattr(jax, "enable_x64") else jax.experimental
    return owner.enable_x64(True)


_BOTH = (Library.TORCH, Library.JAX)
_ALLOCATOR: dict[Library, Callable[..., Callable[[], Any]]] = {
    Library.NUMPY: _numpy,
    Library.TORCH: _torch,
    Library.CUPY: _cupy,
    Library.NUMBA: _numba,
    Library.JAX: _jax,
}
