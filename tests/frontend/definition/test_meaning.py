# SPDX-License-Identifier: Apache-2.0
"""What operations of fd.ops give where nvFuser decides, and not NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from nfuser import DataType, FusionDefinition
from nfuser.errors import DTypeError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable

ONES = np.ones((4, 3), np.float32)


def _run(build: Callable[[Any], Any], *inputs: Any) -> Any:
    with FusionDefinition() as fd:
        fd.add_output(build(fd))
    return fd.execute(list(inputs))[0]


def _linear(fd: Any, bias: int = -1) -> Any:
    x, weight = fd.define_tensor([-1, -1]), fd.define_tensor([-1, -1])
    return fd.ops.linear(x, weight, fd.define_tensor([bias]))


def test_the_reciprocal_of_an_integer_is_a_float() -> None:
    numbers = np.array([1, 2, -4], np.int32)
    found = _run(lambda fd: fd.ops.reciprocal(fd.from_numpy(numbers)), numbers)
    np.testing.assert_array_equal(found, [1.0, 0.5, -0.25])
    scalar = _run(lambda fd: fd.ops.reciprocal(fd.define_scalar(dtype=DataType.Int)), 4)
    assert scalar == 0.25


def test_a_sum_times_the_reciprocal_of_a_size_is_a_mean_of_its_dtype() -> None:
    def mean(fd: Any) -> Any:
        x = fd.define_tensor([-1, -1])
        count = fd.ops.mul(x.size(0), x.size(1))
        return fd.ops.mul(fd.ops.sum(x), fd.ops.reciprocal(count))

    found = _run(mean, np.arange(12, dtype=np.float32).reshape(3, 4))
    assert (found, found.dtype) == (5.5, np.float32)


def test_index_select_with_an_index_without_axes_keeps_the_axis() -> None:
    def chosen(fd: Any) -> Any:
        x, index = fd.define_tensor([-1, -1]), fd.define_tensor([], dtype=DataType.Int)
        return fd.ops.index_select(x, index, 1)

    found = _run(chosen, np.arange(12, dtype=np.float32).reshape(3, 4), np.array(2))
    np.testing.assert_array_equal(found, np.array([[2], [6], [10]], np.float32))


@pytest.mark.parametrize("promised", [5, -1])
def test_a_bias_never_stretches_a_product(promised: int) -> None:
    with pytest.raises(ShapeError, match="pass a bias with one element for each row"):
        _run(lambda fd: _linear(fd, promised), ONES, ONES[:1], np.ones(5, np.float32))


@pytest.mark.parametrize("count", [1, 4])
def test_a_bias_stretches_to_a_product(count: int) -> None:
    found = _run(_linear, ONES, ONES, np.full(count, 2, np.float32))
    np.testing.assert_array_equal(found, np.full((4, 4), 5, np.float32))


@pytest.mark.parametrize(
    ("dtype", "number"),
    [("Float", 1j), ("Int", 2.5), ("Int", 1j), ("Bool", 2)],
)
def test_a_number_that_the_tensor_cannot_hold_does_not_pad_it(
    dtype: str, number: complex
) -> None:
    kind = DataType[dtype]
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1], dtype=kind)
        dtypes = {bool: "Bool", int: "Int", float: "Double", complex: "ComplexDouble"}
        scalar = fd.define_scalar(dtype=DataType[dtypes[type(number)]])
        for value in (number, scalar):
            with pytest.raises(DTypeError, match=rf"write fd\.ops\.cast.*{kind}"):
                fd.ops.pad(x, [1, 1], value)
        fd.add_output(x)


def test_the_steps_of_iota_are_numbers_of_its_dtype() -> None:
    with FusionDefinition() as fd:
        for numbers in ((0, 1j), (0.5, 1)):
            with pytest.raises(DTypeError, match="of iota is a number that"):
                fd.ops.iota(3, *numbers)
        fd.add_output(fd.ops.iota(3, 0.5, 1, dtype=DataType.Float))
    np.testing.assert_array_equal(fd.execute([])[0], [0.5, 1.5, 2.5])


@pytest.mark.parametrize("dtype", [DataType.Float, DataType.Int])
def test_where_takes_a_condition_of_bool(dtype: DataType) -> None:
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1], dtype=dtype)
        with pytest.raises(DTypeError, match=r"write fd\.ops\.ne\(condition, 0\)"):
            fd.ops.where(x, 1.0, 0.0)
        fd.add_output(fd.ops.where(fd.ops.ne(x, 0), 1.0, 0.0))


def test_a_cast_scalar_stays_weak() -> None:
    def scaled(fd: Any) -> Any:
        x, n = fd.define_tensor([-1]), fd.define_scalar(dtype=DataType.Int)
        return fd.ops.mul(x, fd.ops.cast(n, DataType.Double))

    found = _run(scaled, ONES[0], 3)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [3, 3, 3])


def test_a_scatter_sets_an_element_for_each_index() -> None:
    def scattered(fd: Any) -> Any:
        x, source = fd.define_tensor([-1, -1]), fd.define_tensor([-1, -1])
        index = fd.define_tensor([-1, -1], dtype=DataType.Int)
        return fd.ops.scatter(x, index, source, 1)

    x, source = np.zeros((3, 4), np.float32), np.ones((3, 5), np.float32)
    index = np.array([[0, 3, 3], [1, -1, 2]])
    wanted = x.copy()
    np.put_along_axis(wanted[:2], index, source[:2, :3], 1)
    np.testing.assert_array_equal(_run(scattered, x, source, index), wanted)
