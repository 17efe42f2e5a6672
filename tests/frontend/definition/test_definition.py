# SPDX-License-Identifier: Apache-2.0
"""Definitions: inputs, outputs, what is counted, what is printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

from nfuser import DataType, FusionDefinition

if TYPE_CHECKING:
    from collections.abc import Callable

BACKENDS = ("cpu", "interpret")
GRID = np.arange(6, dtype=np.float32).reshape(2, 3)


def _f32(numbers: list[float]) -> Any:
    return np.asarray(numbers, np.float32)


def _sums(backend: str | None = None) -> FusionDefinition:
    with FusionDefinition(backend=backend) as fd:
        t0 = fd.define_tensor(shape=[-1, -1], contiguity=[True, True])
        scale = fd.define_scalar(dtype=DataType.Double)
        t1 = fd.ops.mul(t0, scale)
        fd.add_output(t1)
        fd.add_output(fd.ops.sum(t1, 1))
    return fd


@pytest.mark.parametrize("backend", BACKENDS)
def test_outputs_come_in_order_as_arrays_of_their_dtype(backend: str) -> None:
    scaled, total = _sums(backend).execute([GRID, 0.5])
    np.testing.assert_array_equal(scaled, GRID * np.float32(0.5))
    np.testing.assert_array_equal(total, _f32([1.5, 6]))
    assert (scaled.dtype, total.dtype) == (np.float32, np.float32)


def test_a_new_size_or_number_compiles_nothing() -> None:
    fd = _sums()
    fd.execute([GRID, 0.5])
    first = fd.cache_info()
    kernels = first.compiled + first.reused
    assert kernels >= 1
    fd.execute([GRID, 2.5])
    assert fd.cache_info().hits == 1
    fd.execute([np.ones((5, 7), np.float32), 0.5])
    assert len(fd.kernels([GRID, 0.5])) == kernels
    assert fd.cache_info() == first._replace(calls=3, hits=1)


def test_why_names_what_was_new() -> None:
    fd = _sums()
    assert fd.why() == "it has not been called"
    fd.execute([GRID, 0.5])
    assert fd.why() != "it has not been called"
    fd.execute([GRID[:1], 0.5])
    assert "the size of argument 0 along axis 0 is 1" in fd.why()


def test_an_axis_of_any_size_may_be_one_or_empty() -> None:
    with FusionDefinition() as fd:
        a = fd.define_tensor(shape=[-1, -1])
        b = fd.define_tensor(shape=[-1, 1])
        fd.add_output(fd.ops.add(a, b))
    for rows in (0, 1, 3):
        x = np.ones((rows, 1), np.float32)
        y = np.ones((2, 3), np.float32)[: max(rows, 1)][:1]
        np.testing.assert_array_equal(fd.execute([y, x])[0], y + x)


@pytest.mark.parametrize("backend", BACKENDS)
def test_numbers_of_each_kind_are_weak(backend: str) -> None:
    with FusionDefinition(backend=backend) as fd:
        x = fd.define_tensor(shape=[-1], dtype=DataType.Float)
        i, f, b, c = (
            fd.define_scalar(dtype=kind)
            for kind in (
                *(DataType.Int, DataType.Double, DataType.Bool),
                DataType.ComplexDouble,
            )
        )
        for number in (i, f, c):
            fd.add_output(fd.ops.add(x, number))
        fd.add_output(fd.ops.where(b, x, fd.ops.neg(x)))
        fd.add_output(fd.ops.add(i, f))
        fd.add_output(fd.ops.mul(i, 3))
        fd.add_output(fd.ops.add(fd.ops.cast(x, DataType.Half), i))
    x = _f32([1, 2])
    for numbers in ((3, 0.1, True, 1 + 2j), (-4, np.inf, False, 1j)):
        i, f, b, c = numbers
        expected: list[Any] = [
            x + i,
            x + f,
            x + c,
            x if b else -x,
            np.float64(i + f),
            i * 3,
        ]
        expected.append(x.astype(np.float16) + i)
        found = fd.execute([x, *numbers])
        for got, want in zip(found, expected, strict=True):
            np.testing.assert_array_equal(got, want)
            assert got.dtype == np.asarray(want).dtype


def test_a_vector_is_a_list_of_integers_that_may_be_extents() -> None:
    with FusionDefinition() as fd:
        rows, columns = fd.define_vector(2)
        fill = fd.ops.add(fd.ops.mul(rows, 10), columns)
        fd.add_output(fd.ops.full([rows, columns], fill, DataType.Int32))
        fd.add_output(fd.ops.iota(columns, 1, 2))
    full, odd = fd.execute([2, 3])
    np.testing.assert_array_equal(full, np.full((2, 3), 23, np.int32))
    np.testing.assert_array_equal(odd, [1, 3, 5])
    assert fd.execute([0, 1])[0].shape == (0, 1)


def test_a_constant_is_held_in_its_dtype() -> None:
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1], dtype=DataType.Double)
        third = fd.define_scalar(1 / 3, dtype=DataType.Float)
        fd.add_output(fd.ops.add(x, third))
        fd.add_output(fd.ops.add(x, 1 / 3))
    rounded, exact = fd.execute([np.zeros(1)])
    assert rounded[0] == np.float64(np.float32(1 / 3)) != exact[0] == 1 / 3


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_precision_is_rounded_at_outputs_and_casts(dtype: Any) -> None:
    x = np.linspace(0.1, 3, 50).astype(dtype)
    with FusionDefinition() as fd:
        t0 = fd.from_numpy(x)
        t1 = fd.ops.mul(fd.ops.add(t0, 0.001), 3.0)
        t2 = fd.ops.mul(fd.ops.cast(fd.ops.cast(t1, DataType.Float), t0.dtype), t0)
        fd.add_output(t1)
        fd.add_output(t2)
    wide = x.astype(np.float32)
    once = ((wide + np.float32(0.001)) * np.float32(3)).astype(dtype)
    first, _ = fd.execute([x])
    assert first.dtype == dtype
    np.testing.assert_array_equal(first, once)


def test_outputs_share_memory_with_nothing() -> None:
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, -1])
        for output in (x, x, fd.ops.permute(x, [1, 0])):
            fd.add_output(output)
    inputs = {argument.result for argument in fd.fusion.arguments}
    assert len(inputs | set(fd.fusion.outputs)) == 4
    outputs = fd.execute([GRID])
    arrays = [GRID, *outputs]
    for k, one in enumerate(arrays):
        assert not any(np.shares_memory(one, other) for other in arrays[k + 1 :])
    np.testing.assert_array_equal(outputs[2], GRID.T)


def test_an_output_may_be_a_number() -> None:
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, -1])
        for output in (x.size(1), fd.define_scalar(2.5), *x.shape()):
            fd.add_output(output)
    assert fd.execute([GRID]) == [3, 2.5, 2, 3]


LAYOUTS: dict[str, Callable[[], Any]] = {
    "plain": lambda: GRID,
    "transposed": lambda: GRID.T,
    "sliced": lambda: np.ones((4, 6), np.float32)[::2, ::3],
    "reversed": lambda: GRID[::-1],
    "expanded": lambda: np.broadcast_to(_f32([1, 2, 3]), (2, 3)),
    "one": lambda: GRID[:, :1],
    "permuted": lambda: np.ones((2, 3, 4), np.float32).transpose(1, 2, 0),
    "empty": lambda: GRID[:0],
}


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_input_like_an_array_takes_that_array(layout: str, static: bool) -> None:
    x = LAYOUTS[layout]()
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.mul(fd.from_numpy(x, static_sizes=static), 2))
    np.testing.assert_array_equal(fd.execute([x])[0], x * 2)


def test_sizes_and_strides_stand_for_shape_and_contiguity() -> None:
    with FusionDefinition() as fd:
        fd.define_tensor(sizes=[4, 1, 3], strides=[3, 3, 1], dtype=DataType.Half)
        fd.define_tensor(sizes=[4, 5], strides=[1, 8], static_sizes=True)
    lines = [line.strip() for line in repr(fd).splitlines() if "define_t" in line]
    assert lines == [
        (
            "T0 = fd.define_tensor(shape=[-1, 1, -1], contiguity=[True, None, True], "
            "dtype=DataType.Half)"
        ),
        (
            "T1 = fd.define_tensor(shape=[4, 5], contiguity=[False, True], "
            "dtype=DataType.Float, stride_order=[0, 1])"
        ),
    ]


def test_an_array_without_axes_may_be_passed_by_value() -> None:
    with FusionDefinition() as fd:
        scale = fd.define_tensor(shape=[], dtype=DataType.Double, is_cpu=True)
        x = fd.define_tensor(shape=[-1], dtype=DataType.Float)
        fd.add_output(fd.ops.mul(scale, x))
    x = _f32([1, 2])
    for scale in (np.asarray(0.1), np.float64(0.1)):
        (found,) = fd.execute([scale, x])
        np.testing.assert_array_equal(found, scale * x)
        assert found.dtype == np.float64


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_tensors_of_torch_come_back_as_such(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    x = torch.arange(6).reshape(2, 3).to(getattr(torch, dtype))
    scale = torch.tensor(0.5, dtype=torch.float64)
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.mul(fd.from_pytorch(x.T), 2))
        by_value = fd.from_pytorch(scale)
        fd.add_output(fd.ops.mul(by_value, fd.define_tensor(shape=[-1, -1])))
    doubled, scaled = fd.execute([x.T, scale, np.ones((2, 2), np.float32)])
    assert torch.equal(doubled, x.T * 2)
    assert torch.equal(scaled, torch.full((2, 2), 0.5, dtype=torch.float64))


def test_the_text_of_a_definition() -> None:
    with FusionDefinition() as fd:
        t0 = fd.define_tensor(shape=[-1, 1], contiguity=[True, None])
        s1 = fd.define_scalar(2)
        v2 = fd.define_vector(1)
        t3 = fd.ops.clamp(t0, min=np.float32(-1), max=float("inf"))
        t4, t5 = fd.ops.var_mean(fd.ops.add(t3, s1), [0], keepdim=True)
        fd.add_output(fd.ops.expand(t5, [v2[0], t0.size(0)]))
        fd.add_output(t4)
    assert repr(fd) == (
        "import numpy as np\n\n"
        "from nfuser import DataType, FusionDefinition\n\n\n"
        "def nfuser_fusion(fd: FusionDefinition) -> None:\n"
        "    T0 = fd.define_tensor(shape=[-1, 1], contiguity=[True, None], "
        "dtype=DataType.Float)\n"
        "    S1 = fd.define_scalar(2, dtype=DataType.Int)\n"
        "    [S2] = fd.define_vector(1)\n"
        "    T3 = fd.ops.clamp(T0, min=np.float32(-1.0), max=float('inf'))\n"
        "    T4 = fd.ops.add(T3, S1)\n"
        "    [T5, T6] = fd.ops.var_mean(T4, [0], keepdim=True)\n"
        "    S7 = fd.ops.size(T0, 0)\n"
        "    T8 = fd.ops.expand(T6, [S2, S7])\n"
        "    fd.add_output(T8)\n"
        "    fd.add_output(T5)\n\n\n"
        "with FusionDefinition() as fd:\n"
        "    nfuser_fusion(fd)\n"
    )


def test_new_tensors_carry_the_users_line() -> None:
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1])
        fd.add_output(fd.ops.exp(x))
    (line,) = [text for text in str(fd).splitlines() if "exp(" in text]
    assert "# test_definition.py:" in line


def test_a_dtype_is_printed_by_its_name_and_lists_as_they_were() -> None:
    axes = [0]
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1], dtype=np.float64)
        fd.add_output(fd.ops.sum(x, dims=axes, dtype=np.dtype("float32")))
    axes.append(1)
    assert "dtype=DataType.Double)" in repr(fd)
    assert "fd.ops.sum(T0, dims=[0], dtype=DataType.Float)" in repr(fd)


def test_a_numpy_scalar_is_an_array_without_axes() -> None:
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[], dtype=DataType.Float)
        fd.add_output(fd.ops.mul(x, x))
    assert fd.execute([np.float32(3)]) == fd.execute([np.asarray(3, np.float32)]) == [9]


def test_a_definition_tells_whether_it_is_valid() -> None:
    fd = FusionDefinition()
    assert fd.validate_definition() == (False, "Fusion is empty!")
    x = fd.define_tensor(shape=[-1])
    assert not fd.validate_definition()[0]
    fd.add_output(x)
    assert fd.validate_definition() == (True, "")
    assert fd.fusion.outputs
