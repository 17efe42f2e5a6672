# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from nfuser.compiler.dtypes import DType
from nfuser.errors import DeviceError
from nfuser.execution.device.allocate import allocator, empty, finish, output_strides
from nfuser.execution.device.describe.descriptor import CPU, Device, Library, describe
from nfuser.execution.device.describe.libraries import c_strides

LIBRARIES = [Library.NUMPY, Library.TORCH]


def permuted_strides(shape: tuple[int, ...], order: tuple[int, ...]) -> tuple[int, ...]:
    dense = c_strides(tuple(shape[axis] for axis in order))
    return tuple(dense[order.index(axis)] for axis in range(len(shape)))


def require(library: Library) -> None:
    if library is not Library.NUMPY:
        pytest.importorskip(library.value)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_strides_are_those_asked_for(library: Library, order: Any) -> None:
    require(library)
    shape = (2, 3, 4)
    strides = permuted_strides(shape, order)
    array = empty(library, CPU, shape, strides, DType.F32)
    found = describe(array, "result")
    assert (found.library, found.shape, found.strides) == (library, shape, strides)
    assert found.writable


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("dtype", list(DType))
def test_every_dtype(library: Library, dtype: DType) -> None:
    require(library)
    array = empty(library, CPU, (5,), (1,), dtype)
    assert describe(array, "result").dtype is dtype


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    ("shape", "strides"),
    [((), ()), ((0, 3), (3, 1)), ((1, 4), (1, 1)), ((4, 1, 2), (1, 99, 4))],
)
def test_odd_shapes(library: Library, shape: Any, strides: Any) -> None:
    require(library)
    array = empty(library, CPU, shape, strides, DType.I64)
    found = describe(array, "result")
    assert found.shape == shape
    for extent, stride, wanted in zip(shape, found.strides, strides, strict=True):
        assert extent <= 1 or stride == wanted


def test_each_call_makes_another_array() -> None:
    allocate = allocator(Library.NUMPY, CPU, (1000,), (1,), DType.F64)
    first, second = allocate(), allocate()
    assert not np.shares_memory(first, second)


def test_strides_with_holes_are_refused() -> None:
    with pytest.raises(ValueError, match="do not fill"):
        allocator(Library.NUMPY, CPU, (2, 3), (4, 1), DType.F32)


def test_a_library_allocates_only_where_it_lives() -> None:
    with pytest.raises(DeviceError, match="numpy has no arrays on cuda:0"):
        allocator(Library.NUMPY, Device("cuda", 0), (2,), (1,), DType.F32)
    with pytest.raises(DeviceError, match="cupy has no arrays on cpu"):
        allocator(Library.CUPY, CPU, (2,), (1,), DType.F32)


def test_numpy_gives_scalars_where_numpy_does() -> None:
    total = np.full((), 3.0, "f4")
    assert type(finish(Library.NUMPY, total)) is np.float32
    assert finish(Library.NUMPY, total, scalar=False) is total
    vector = np.ones(1)
    assert finish(Library.NUMPY, vector) is vector


def test_torch_keeps_tensors_without_axes() -> None:
    torch: Any = pytest.importorskip("torch")
    total = torch.ones(())
    assert finish(Library.TORCH, total) is total


def test_jax_knows_c_order_only() -> None:
    assert output_strides(Library.JAX, (2, 3), (1, 2)) == (3, 1)
    assert output_strides(Library.NUMPY, (2, 3), (1, 2)) == (1, 2)
