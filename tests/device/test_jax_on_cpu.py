# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nfuser.compiler.dtypes import DType
from nfuser.errors import ArgumentError
from nfuser.execution.device.allocate import allocator, finish
from nfuser.execution.device.describe.descriptor import (
    CPU,
    Library,
    describe,
    key_reader,
)

jax: Any = pytest.importorskip("jax")


def on_cpu(array: Any) -> Any:
    return jax.device_put(array, jax.devices("cpu")[0])


def test_a_jax_array() -> None:
    array = on_cpu(np.arange(6, dtype="f4").reshape(2, 3))
    found = describe(array, "x")
    assert (found.library, found.device, found.dtype) == (Library.JAX, CPU, DType.F32)
    assert (found.shape, found.strides, found.writable) == ((2, 3), (3, 1), False)
    assert found.pointer == array.unsafe_buffer_pointer()


def test_equal_arrays_have_equal_keys() -> None:
    key = key_reader(Library.JAX)
    array = on_cpu(np.ones((2, 3), "f4"))
    assert key(array) == key(on_cpu(np.zeros((2, 3), "f4")))
    assert hash(key(array)) == hash(key(array))
    assert key(array) != key(on_cpu(np.ones((3, 2), "f4")))


@pytest.mark.parametrize("transform", ["jit", "vmap", "grad"])
def test_tracers_are_refused(transform: str) -> None:
    def function(x: Any) -> Any:
        with pytest.raises(ArgumentError, match="tracer"):
            describe(x, "x")
        return x.sum()

    getattr(jax, transform)(function)(on_cpu(np.ones((2, 3), "f4")))


def test_a_deleted_array_is_refused() -> None:
    array = on_cpu(np.ones(3, "f4"))
    before = key_reader(Library.JAX)(array)
    array.delete()
    assert key_reader(Library.JAX)(array) != before
    with pytest.raises(ArgumentError, match="deleted"):
        describe(array, "x")


@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (0, 2), (1000, 1000)])
@pytest.mark.parametrize("dtype", [DType.F32, DType.F64, DType.BF16, DType.BOOL])
def test_what_is_written_before_finish_is_what_jax_holds(
    shape: tuple[int, ...], dtype: DType
) -> None:
    strides = describe(np.empty(shape), "x").strides
    buffer = allocator(Library.JAX, CPU, shape, strides, dtype)()
    buffer[...] = 1
    array = finish(Library.JAX, buffer)
    assert isinstance(array, jax.Array)
    assert (array.shape, array.dtype) == (shape, dtype.numpy)
    np.testing.assert_array_equal(np.asarray(array), np.ones(shape, dtype.numpy))


def test_a_large_result_is_adopted_without_a_copy() -> None:
    buffer = allocator(Library.JAX, CPU, (1 << 20,), (1,), DType.F32)()
    address = buffer.ctypes.data
    assert finish(Library.JAX, buffer).unsafe_buffer_pointer() == address
