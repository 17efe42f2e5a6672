# SPDX-License-Identifier: Apache-2.0
"""Arrays of 8-bit floats: moved as they are, cast as ml_dtypes casts."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nfuser import DataType, FusionDefinition
from nfuser.errors import DTypeError

KINDS: dict[DataType, Any] = {
    DataType.Float8_e4m3fn: ml_dtypes.float8_e4m3fn,
    DataType.Float8_e5m2: ml_dtypes.float8_e5m2,
}
BACKENDS = pytest.mark.parametrize("backend", ["cpu", "interpret"])


def _numbers(dtype: Any, count: int) -> Any:
    """Return numbers of all sizes, ties, both infinities, zeros and NaN."""
    rng = np.random.default_rng(0)
    spread = rng.normal(size=count) * 10.0 ** rng.uniform(-8, 6, count)
    ties = np.arange(-500, 500, 0.25)[:: max(1, 4000 // count)]
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, 448, 464, 465, 57344, 61439, 61440]
    with np.errstate(all="ignore"):
        return np.concatenate([spread, ties, edges]).astype(dtype)


@BACKENDS
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_cast_rounds_once_as_ml_dtypes_does(
    dtype: Any, kind: DataType, backend: str
) -> None:
    x = _numbers(dtype, 20000 if backend == "cpu" else 200)
    with FusionDefinition(backend=backend) as fd:
        fd.add_output(fd.ops.cast(fd.from_numpy(x), kind))
    (found,) = fd.execute([x])
    with np.errstate(all="ignore"):
        wanted = x.astype(KINDS[kind])
    assert found.dtype == wanted.dtype
    same = (found.view(np.uint8) == wanted.view(np.uint8)) | np.isnan(x)
    assert same.all()
    assert np.isnan(found.astype(np.float32)[np.isnan(x)]).all()


@BACKENDS
@pytest.mark.parametrize("kind", KINDS)
def test_every_byte_is_read_as_the_number_it_stands_for(
    kind: DataType, backend: str
) -> None:
    stored = np.arange(256, dtype=np.uint8).view(KINDS[kind])
    with FusionDefinition(backend=backend) as fd:
        t = fd.from_numpy(stored)
        assert t.dtype is kind
        fd.add_output(fd.ops.cast(t, DataType.Float))
        fd.add_output(fd.ops.sum(fd.ops.cast(t, DataType.Half)))
    found, total = fd.execute([stored])
    np.testing.assert_array_equal(found, stored.astype(np.float32))
    assert np.isnan(total)


def test_what_moves_elements_moves_them_as_they_are() -> None:
    x = np.arange(24, dtype=np.uint8).view(ml_dtypes.float8_e5m2).reshape(2, 3, 4)
    with FusionDefinition() as fd:
        t = fd.define_tensor(shape=[-1, -1, -1], dtype=DataType.Float8_e5m2)
        turned = fd.ops.permute(t, [2, 0, 1])
        joined = fd.ops.cat([turned, turned], 1)
        fd.add_output(joined)
        fd.add_output(t)
        fd.add_output(fd.ops.select(fd.ops.reshape(t, [6, -1]), 1, 0))
    joined, same, row = fd.execute([x])
    turned = x.transpose(2, 0, 1)
    for found, wanted in (
        (joined, np.concatenate([turned, turned], 1)),
        (same, x),
        (row, x.reshape(6, 4)[1]),
    ):
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(found.view(np.uint8), wanted.view(np.uint8))


def test_a_definition_that_follows_another_has_the_same_types() -> None:
    x = np.ones(3, np.float32)

    def made() -> FusionDefinition:
        with FusionDefinition() as fd:
            t = fd.define_tensor(shape=[-1], contiguity=[True])
            small = fd.ops.cast(t, DataType.Float8_e4m3fn)
            assert small.dtype is DataType.Float8_e4m3fn
            fd.add_output(small)
        assert fd.execute([x])[0].dtype == ml_dtypes.float8_e4m3fn
        return fd

    assert made().fusion is made().fusion
    names: dict[str, Any] = {}
    exec(made().repro_script_for([x]), names)  # noqa: S102 (a program is what it is)
    assert names["fd"].execute([x])[0].dtype == ml_dtypes.float8_e4m3fn


def test_an_input_of_8_bit_floats_is_written() -> None:
    x = np.asarray([1, 2, 3], ml_dtypes.float8_e4m3fn)
    with FusionDefinition() as fd:
        t = fd.define_tensor(shape=[-1], dtype=DataType.Float8_e4m3fn)
        doubled = fd.ops.mul(fd.ops.cast(t, DataType.Float), 2.0)
        fd.add_output(fd.ops.cast(doubled, DataType.Float8_e4m3fn), t)
        with pytest.raises(DTypeError, match="the input takes its own type"):
            fd.add_output(doubled, t)
    script = fd.repro_script_for([x])
    assert "float8_e4m3fn" in script
    exec(script, {})  # noqa: S102 (a program is what it is)
    assert fd.execute([x]) == []
    np.testing.assert_array_equal(x.astype(np.float32), [2, 4, 6])
    fd.validate([x])


@pytest.mark.parametrize(
    "build",
    [
        lambda fd, t: fd.ops.add(t, 1.0),
        lambda fd, t: fd.ops.sum(t),
        lambda fd, t: -t,
        lambda fd, t: fd.ops.pad(t, [1, 1], 2.0),
        lambda fd, t: fd.ops.take(fd.ops.iota(3), t),
        lambda fd, t: fd.ops.cat([t, fd.ops.cast(t, DataType.UInt8)]),
    ],
)
def test_arithmetic_is_refused_with_what_to_write(build: Any) -> None:
    with FusionDefinition() as fd:
        t = fd.define_tensor(shape=[-1], dtype=DataType.Float8_e4m3fn)
        with pytest.raises(DTypeError, match=r"write fd\.ops\.cast\(x, DataType.Float"):
            build(fd, t)


def test_other_arrays_and_scalars_of_8_bits_are_refused() -> None:
    with FusionDefinition() as fd:
        t = fd.define_tensor(shape=[-1], dtype=DataType.Float8_e5m2)
        with pytest.raises(DTypeError, match="no operation computes in 8-bit floats"):
            fd.define_scalar(dtype=DataType.Float8_e5m2)
        fd.add_output(t)
    with pytest.raises(DTypeError, match="expected an array of float8_e5m2"):
        fd.execute([np.ones(3, np.uint8)])


def test_tensors_of_torch_are_taken_and_given() -> None:
    torch: Any = pytest.importorskip("torch")
    x = torch.linspace(-500, 500, 101)
    with FusionDefinition() as fd:
        small = fd.ops.cast(fd.from_pytorch(x), DataType.Float8_e4m3fn)
        fd.add_output(small)
        fd.add_output(fd.ops.cast(small, DataType.Float))
    small, wide = fd.execute([x])
    assert small.dtype is torch.float8_e4m3fn
    inside = x.abs() <= 448
    wanted = x.to(torch.float8_e4m3fn).float()
    torch.testing.assert_close(wide[inside], wanted[inside], rtol=0, atol=0)
