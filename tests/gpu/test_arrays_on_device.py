# SPDX-License-Identifier: Apache-2.0
"""Arrays, memory, streams and launches of every library on a real device."""

from __future__ import annotations

import operator
import os
import threading
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from nfuser.codegen.numba.compile_cuda import compile_cuda
from nfuser.compiler.dtypes import DType
from nfuser.errors import ArgumentError, BackendError, DeviceError
from nfuser.execution.device.allocate import allocator, finish, output_strides
from nfuser.execution.device.cuda import driver
from nfuser.execution.device.cuda.launch import PackedLaunch
from nfuser.execution.device.cuda.module import CudaFunction, load_cubin
from nfuser.execution.device.cuda.streams import current_stream, guard, stream_reader
from nfuser.execution.device.describe.descriptor import (
    CPU,
    Device,
    Library,
    describe,
    key_reader,
    pointer_reader,
)
from nfuser.execution.device.describe.libraries import c_strides

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

# The other libraries may warn as they like.
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]

GPU = Device("cuda", 0)
LIBRARIES = [Library.TORCH, Library.CUPY, Library.NUMBA, Library.JAX]
THREADS = 128
SIGNATURE = "void(CPointer(float32), CPointer(float32), int32, float32)"
SOURCE = f'''
from numba import cuda


@cuda.jit("{SIGNATURE}")
def scale(x, o, n, factor):
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if i < n:
        o[i] = x[i] * factor
'''


@cache
def binary() -> Any:
    return compile_cuda(
        SOURCE, "scale", SIGNATURE, cc=driver.attributes(0).compute_capability
    )


@cache
def scale(device: int = 0) -> CudaFunction:
    return load_cubin(binary().cubin, "scale", device)


def plan(count: int, device: int = 0, shared_bytes: int = 0) -> PackedLaunch:
    blocks = -(-count // THREADS)
    return PackedLaunch(
        scale(device),
        ("pointer", "pointer", "i32", "f32"),
        (blocks, 1, 1),
        (THREADS, 1, 1),
        shared_bytes,
    )


def imported(library: Library) -> Any:
    """Import a library, or skip the test."""
    if library is Library.JAX:
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    name = "numba.cuda" if library is Library.NUMBA else library.value
    return pytest.importorskip(name)


def to_device(library: Library, array: Any, index: int = 0) -> Any:
    module = imported(library)
    match library:
        case Library.TORCH:
            return module.from_numpy(array).to(f"cuda:{index}")
        case Library.CUPY:
            with module.cuda.Device(index):
                return module.asarray(array)
        case Library.NUMBA:
            with module.gpus[index]:
                return module.to_device(array)
        case _:
            return module.device_put(array, module.devices("cuda")[index])


def to_host(library: Library, array: Any) -> Any:
    match library:
        case Library.TORCH:
            return array.cpu().numpy()
        case Library.CUPY:
            return array.get()
        case Library.NUMBA:
            return array.copy_to_host()
        case _:
            return np.asarray(array)


def scaled(library: Library, array: Any, factor: float) -> Any:
    """Multiply by a kernel, through every step of a fused call."""
    found = describe(array, "x")
    device, count = found.device, int(np.prod(found.shape))
    make = allocator(library, device, found.shape, found.strides, DType.F32)
    launch = plan(count, device.index)
    read = pointer_reader(library)
    with guard(device):
        result = make()
        stream = current_stream(library, device)
        launch(stream, read(array), read(result), count, factor)
    return finish(library, result, stream=stream)


def numbers(*shape: int) -> Any:
    return np.random.default_rng(7).standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("shape", [(1000,), (33, 65), (1,), (2, 3, 4)])
def test_a_launch_on_arrays_of_every_library(
    library: Library, shape: tuple[int, ...]
) -> None:
    host = numbers(*shape)
    array = to_device(library, host)
    found = describe(array, "x")
    assert (found.library, found.device, found.dtype) == (library, GPU, DType.F32)
    assert (found.shape, found.strides) == (shape, c_strides(shape))
    result = scaled(library, array, 3.0)
    assert describe(result, "result").library is library
    np.testing.assert_array_equal(to_host(library, result), host * np.float32(3))
    np.testing.assert_array_equal(to_host(library, array), host)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("strides", [(12, 4, 1), (1, 2, 6), (4, 8, 1)])
def test_outputs_have_the_strides_asked_for(library: Library, strides: Any) -> None:
    imported(library)
    shape = (2, 3, 4)
    wanted = output_strides(library, shape, strides)
    found = describe(allocator(library, GPU, shape, wanted, DType.F32)(), "result")
    assert (found.shape, found.strides, found.device) == (shape, wanted, GPU)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("shape", [(), (0,), (0, 3)])
def test_arrays_of_one_or_no_element(library: Library, shape: tuple[int, ...]) -> None:
    imported(library)
    result = allocator(library, GPU, shape, c_strides(shape), DType.F64)()
    found = describe(finish(library, result), "result")
    assert (found.shape, found.dtype, found.device) == (shape, DType.F64, GPU)


@pytest.mark.parametrize("library", [Library.TORCH, Library.CUPY, Library.JAX])
@pytest.mark.parametrize("dtype", list(DType))
def test_every_dtype(library: Library, dtype: DType) -> None:
    imported(library)
    result = allocator(library, GPU, (5,), (1,), dtype)()
    assert describe(result, "result").dtype is dtype


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_thread_that_never_used_the_device(library: Library) -> None:
    host = numbers(500)
    array = to_device(library, host)
    found: list[Any] = []

    def caller() -> None:
        found.append(to_host(library, scaled(library, array, 2.0)))

    thread = threading.Thread(target=caller)
    thread.start()
    thread.join()
    np.testing.assert_array_equal(found[0], host * np.float32(2))


def test_a_fresh_thread_gets_a_context_from_the_launch() -> None:
    host = numbers(500)
    torch = imported(Library.TORCH)
    array = to_device(Library.TORCH, host)
    out = torch.zeros_like(array)
    torch.cuda.synchronize()
    launch, failures = plan(500), list[BaseException]()

    def caller() -> None:
        try:
            assert driver.current_context() is None
            launch(0, array.data_ptr(), out.data_ptr(), 500, 2.0)
            driver.synchronize(0)
        except BaseException as error:  # noqa: BLE001 (shown by the assertion below)
            failures.append(error)

    thread = threading.Thread(target=caller)
    thread.start()
    thread.join()
    assert not failures
    np.testing.assert_array_equal(out.cpu().numpy(), host * np.float32(2))


def test_torch_works_on_its_current_stream() -> None:
    torch = imported(Library.TORCH)
    read = stream_reader(Library.TORCH, GPU)
    assert read() == torch.cuda.current_stream(0).cuda_stream
    side = torch.cuda.Stream()
    host = numbers(1 << 20)
    with torch.cuda.stream(side):
        assert read() == side.cuda_stream != 0
        array = torch.from_numpy(host).cuda()
        torch.cuda._sleep(50_000_000)
        array.mul_(2)  # late on this stream: a launch on another would miss it
        result = scaled(Library.TORCH, array, 3.0)
    side.synchronize()
    np.testing.assert_array_equal(result.cpu().numpy(), host * np.float32(6))


def test_cupy_works_on_its_current_stream() -> None:
    cupy = imported(Library.CUPY)
    side = cupy.cuda.Stream(non_blocking=True)
    host = numbers(1 << 20)
    with side:
        assert current_stream(Library.CUPY, GPU) == side.ptr != 0
        result = scaled(Library.CUPY, cupy.asarray(host), 3.0)
    side.synchronize()
    np.testing.assert_array_equal(result.get(), host * np.float32(3))


def test_a_capture_into_a_graph_after_warm_up() -> None:
    torch = imported(Library.TORCH)
    array = torch.ones(1000, device="cuda")
    scaled(Library.TORCH, array, 3.0)
    launch = plan(1000)
    make = allocator(Library.TORCH, GPU, (1000,), (1,), DType.F32)
    read = stream_reader(Library.TORCH, GPU)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = make()
        launch(read(), array.data_ptr(), out.data_ptr(), 1000, 3.0)
    for number in (5.0, 7.0):
        array.fill_(number)
        graph.replay()
        torch.cuda.synchronize()
        assert (out == number * 3).all()


def test_jax_computes_on_with_the_result() -> None:
    jax = imported(Library.JAX)
    host = numbers(1 << 20)
    add = jax.jit(operator.add)
    pending = add(to_device(Library.JAX, host), 1)
    result = add(scaled(Library.JAX, pending, 2.0), -1)
    expected = (host + np.float32(1)) * np.float32(2) - np.float32(1)
    np.testing.assert_array_equal(np.asarray(result), expected)


def test_jax_tracers_are_refused() -> None:
    jax = imported(Library.JAX)

    def function(x: Any) -> Any:
        with pytest.raises(ArgumentError, match="tracer"):
            describe(x, "x")
        return x

    jax.jit(function)(to_device(Library.JAX, numbers(4)))


@pytest.mark.parametrize("library", LIBRARIES)
def test_keys(library: Library) -> None:
    key = key_reader(library)
    array = to_device(library, numbers(4, 6))
    assert key(array) == key(to_device(library, numbers(4, 6)))
    assert key(array) != key(to_device(library, numbers(6, 4)))
    assert hash(key(array)) == hash(key(array))


@pytest.mark.parametrize("library", [Library.TORCH, Library.CUPY])
def test_views(library: Library) -> None:
    array = to_device(library, numbers(4, 6))
    view = array.T[1:, ::2]
    found = describe(view, "x")
    assert (found.shape, found.strides) == ((5, 2), (1, 12))
    assert found.pointer == describe(array, "x").pointer + 4


def test_properties_agree_with_torch() -> None:
    torch = imported(Library.TORCH)
    ours, theirs = driver.attributes(0), torch.cuda.get_device_properties(0)
    assert ours.name == theirs.name
    assert ours.compute_capability == (theirs.major, theirs.minor)
    assert ours.multiprocessors == theirs.multi_processor_count
    assert ours.l2_bytes == theirs.L2_cache_size
    assert ours.threads_per_multiprocessor == theirs.max_threads_per_multi_processor
    assert ours.shared_per_block_optin == theirs.shared_memory_per_block_optin
    assert (ours.warp, ours.registers) == (32, 65536)
    assert driver.why_missing() is None
    assert driver.driver_version() >= (12, 0)


def test_what_a_kernel_needs() -> None:
    function = scale()
    assert 0 < function.registers <= 64
    assert (function.local_bytes, function.static_shared_bytes) == (0, 0)
    assert function.max_threads >= THREADS
    few = function.blocks_per_multiprocessor(THREADS, 100 << 10)
    assert 1 <= few < function.blocks_per_multiprocessor(THREADS, 0)


def test_much_shared_memory_is_asked_for() -> None:
    torch = imported(Library.TORCH)
    array, out = torch.ones(1000, device="cuda"), torch.zeros(1000, device="cuda")
    launch = plan(1000, shared_bytes=driver.attributes(0).shared_per_block_optin)
    stream = current_stream(Library.TORCH, GPU)
    launch(stream, array.data_ptr(), out.data_ptr(), 1000, 2.0)
    assert (out == 2).all()
    with pytest.raises(BackendError, match="at most"):
        plan(1000, shared_bytes=1 << 20)


def test_a_cooperative_launch() -> None:
    torch = imported(Library.TORCH)
    array, out = torch.ones(1000, device="cuda"), torch.zeros(1000, device="cuda")
    kinds, block = ("pointer", "pointer", "i32", "f32"), (THREADS, 1, 1)
    stream = current_stream(Library.TORCH, GPU)
    launch = PackedLaunch(scale(), kinds, (8, 1, 1), block, cooperative=True)
    launch(stream, array.data_ptr(), out.data_ptr(), 1000, 2.0)
    assert (out == 2).all()
    too_many = PackedLaunch(scale(), kinds, (1 << 20, 1, 1), block, cooperative=True)
    with pytest.raises(BackendError, match="COOPERATIVE_LAUNCH_TOO_LARGE"):
        too_many(stream, array.data_ptr(), out.data_ptr(), 1000, 2.0)


def test_memory_is_set_and_found() -> None:
    torch = imported(Library.TORCH)
    array = torch.ones(10, dtype=torch.int32, device="cuda")
    stream = current_stream(Library.TORCH, GPU)
    driver.memset(array.data_ptr(), 0, 20, stream)
    driver.synchronize(stream)
    assert array.tolist() == [0] * 5 + [1] * 5
    assert driver.pointer_device(array.data_ptr()) == 0


def test_bytes_that_are_no_cubin_are_refused() -> None:
    with pytest.raises(BackendError, match=r"cuLibrary.*CUDA_ERROR_INVALID_IMAGE"):
        load_cubin(b"neither a cubin nor PTX", "scale", 0)
    with pytest.raises(BackendError, match="CUDA_ERROR_NOT_FOUND"):
        load_cubin(binary().cubin, "another", 0)


def test_pinned_memory_of_torch_is_on_the_cpu() -> None:
    torch = imported(Library.TORCH)
    assert describe(torch.ones(3).pin_memory(), "x").device == CPU


@pytest.fixture
def first_device_again() -> Generator[None]:
    """Leave the first device current: JAX leaves that on which it allocated last."""
    yield
    driver.make_current(0)


def both_devices(make: Callable[[int], Any]) -> tuple[Any, Any]:
    return make(0), make(1)


@pytest.mark.multigpu
@pytest.mark.usefixtures("first_device_again")
@pytest.mark.parametrize("library", LIBRARIES)
def test_the_second_device_while_the_first_is_current(library: Library) -> None:
    host = numbers(1000)
    first, second = both_devices(lambda index: to_device(library, host, index))
    assert describe(second, "x").device == Device("cuda", 1)
    context = driver.current_context()
    results = [scaled(library, array, 2.0) for array in (second, first)]
    assert driver.current_context() == context
    for index, result in zip((1, 0), results, strict=True):
        assert describe(result, "result").device == Device("cuda", index)
        np.testing.assert_array_equal(to_host(library, result), host * np.float32(2))


@pytest.mark.multigpu
@pytest.mark.usefixtures("first_device_again")
def test_an_array_over_two_devices_is_refused() -> None:
    jax = imported(Library.JAX)
    mesh = jax.make_mesh((2,), ("d",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("d"))
    with pytest.raises(DeviceError, match="2 devices"):
        describe(jax.device_put(numbers(8), sharding), "x")
