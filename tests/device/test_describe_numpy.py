# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfuser.compiler.dtypes import DType
from nfuser.errors import ArgumentError, DTypeError
from nfuser.execution.device.describe.descriptor import (
    CPU,
    Descriptor,
    Library,
    describe,
    is_array,
    key_reader,
    pointer_reader,
)
from nfuser.execution.device.describe.elements import overlaps_itself
from nfuser.execution.device.describe.libraries import c_strides, is_dense

if TYPE_CHECKING:
    from pathlib import Path

Array = np.ndarray[Any, np.dtype[Any]]


def read(descriptor: Descriptor, index: tuple[int, ...]) -> int:
    """Read one int32 the way a kernel does: address and strides alone."""
    steps = zip(index, descriptor.strides, strict=True)
    address = descriptor.pointer + 4 * sum(i * s for i, s in steps)
    return ctypes.c_int32.from_address(address).value


def test_a_plain_array() -> None:
    array = np.zeros((2, 3), "f4")
    found = describe(array, "x")
    assert found == Descriptor(
        Library.NUMPY, CPU, DType.F32, (2, 3), (3, 1), array.ctypes.data, True
    )


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(-3, 3).filter(bool)),
        min_size=3,
        max_size=3,
    ),
    st.permutations(range(3)),
)
def test_strides_lead_to_every_element_of_a_view(
    cuts: list[tuple[int, int]], order: list[int]
) -> None:
    base = np.arange(5 * 6 * 7, dtype="i4").reshape(5, 6, 7)
    view = base[tuple(slice(None, None, step) for _, step in cuts)]
    view = view[tuple(slice(min(start, 1), None) for start, _ in cuts)].transpose(order)
    found = describe(view, "x")
    assert found.shape == view.shape
    for index in np.ndindex(*view.shape):
        assert read(found, index) == view[index]


def test_an_expanded_array_cannot_be_written() -> None:
    found = describe(np.broadcast_to(np.ones(3, "f4"), (2, 3)), "x")
    assert found.strides == (0, 1)
    assert not found.writable


def test_a_frozen_array_cannot_be_written() -> None:
    array = np.ones(3)
    array.flags.writeable = False
    assert not describe(array, "x").writable


def test_a_broadcast_of_extent_one_overlaps_nothing() -> None:
    assert not overlaps_itself((1, 3), (0, 1))
    assert overlaps_itself((2, 3), (0, 1))


def test_bfloat16_of_ml_dtypes() -> None:
    found = describe(np.zeros(4, ml_dtypes.bfloat16), "x")
    assert (found.dtype, found.strides) == (DType.BF16, (1,))


def test_an_imaginary_part_has_stride_two() -> None:
    complex_array: Any = np.ones(4, "c8")
    found = describe(complex_array.imag, "x")
    assert (found.dtype, found.strides) == (DType.F32, (2,))


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (3, 0), (1,), (1, 1)])
def test_few_or_no_elements(shape: tuple[int, ...]) -> None:
    found = describe(np.zeros(shape), "x")
    assert (found.shape, found.dtype) == (shape, DType.F64)
    assert len(found.strides) == len(shape)


def test_a_memory_map_is_an_array(tmp_path: Path) -> None:
    mapped = np.memmap(tmp_path / "m", "f4", "w+", shape=(2, 2))
    assert describe(mapped, "x").pointer == mapped.ctypes.data


class Quantity(np.ndarray):
    pass


def misaligned() -> Array:
    return np.zeros(33, np.uint8)[1:].view("f4")


def field() -> Array:
    return np.zeros(4, np.dtype([("a", "f8"), ("b", "i4")], align=False))["a"]


@pytest.mark.parametrize(
    ("array", "error", "words"),
    [
        (np.zeros(3, ">f4"), DTypeError, "byte order"),
        (misaligned(), ArgumentError, "not aligned"),
        (field(), ArgumentError, "not multiples"),
        (np.ma.masked_array([1.0]), ArgumentError, "masked"),
        (np.zeros((2, 2)).view(np.matrix), ArgumentError, "np.matrix"),
        (np.zeros(2, [("a", "f8")]).view(np.recarray), ArgumentError, "record"),
        (np.zeros(2).view(Quantity), ArgumentError, "Quantity"),
        (np.zeros(3, np.longdouble), DTypeError, "longdouble|float128"),
        (np.zeros(3, object), DTypeError, "object"),
        (np.zeros(3, "U4"), DTypeError, "<U4"),
        (np.zeros(3, "M8[s]"), DTypeError, "datetime64"),
        (np.zeros(3, [("a", "f8")]), DTypeError, "'a'"),
        ([1.0, 2.0], ArgumentError, "builtins.list"),
        (np.float32(1), ArgumentError, "numpy.float32"),
    ],
)
def test_what_would_be_misread_is_refused(
    array: object, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words) as caught:
        describe(array, "argument 'x' of f")
    assert "argument 'x' of f: " in str(caught.value)


def test_a_refused_array_has_a_key_of_its_own() -> None:
    key = key_reader(Library.NUMPY)
    plain = np.zeros(8, "f4")
    for other in (
        misaligned(),
        plain.astype(">f4"),
        plain.view(Quantity),
        np.ma.masked_array(plain),
        plain[::-1],
        np.zeros(8, "i4"),
    ):
        assert key(other) != key(plain)
    assert key(np.ones(8, "f4")) == key(plain)


def test_pointers() -> None:
    base = np.arange(12.0).reshape(3, 4)
    pointer = pointer_reader(Library.NUMPY)
    for view in (base, base[1:, 2], base[::-1], np.zeros(()), np.zeros((0, 3))):
        assert pointer(view) == view.__array_interface__["data"][0]


def test_what_counts_as_an_array() -> None:
    assert is_array(np.ma.masked_array([1]))  # so that it is refused by name
    assert not any(map(is_array, (1, 1.0, "x", None, [1], np.float64(1))))


def test_dense_strides() -> None:
    assert c_strides((2, 0, 3)) == (3, 3, 1)
    assert is_dense((2, 0), (9, 9))
    assert not is_dense((2, 3), (4, 1))
    assert is_dense((), ())
