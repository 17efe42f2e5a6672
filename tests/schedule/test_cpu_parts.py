# SPDX-License-Identifier: Apache-2.0
"""Few long rows are cut into parts on the CPU, and joined in a fixed order."""
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser.config import override

SIZES = ((1 << 20,), (3, 700_001), (1 << 19, 2, 1), (1023, 1025), (2, 524_289 + 1024))
FUNCTIONS: dict[str, Any] = {
    "sum": lambda x: x.sum(-1) if x.shape[-1] > 1 else x.sum(),
    "all": lambda x: x.sum(),
    "max": lambda x: (x.max(), x.argmin()),
    "mean": lambda x: np.sqrt((x * x).mean()),
    "any": lambda x: (x > 3).any(),
}


def made_by(function: Any, x: Any, threads: int) -> Any:
    with override(num_threads=threads):
        return nfuser.fuse(function)(x)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shape", SIZES)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
def test_threads_do_not_change_a_bit(name: str, shape: Any, dtype: str) -> None:
    x = (np.random.default_rng(7).random(shape) * 9 - 4).astype(dtype)
    function = FUNCTIONS[name]
    made = [made_by(function, x, threads) for threads in (1, 2, 8)]
    for other in made[1:]:
        np.testing.assert_array_equal(made[0], other)
    np.testing.assert_allclose(made[0], function(x), rtol=2e-6)


@pytest.mark.parametrize("n", [272, 4096])
def test_sums_beside_scattered_stores_are_as_good_as_pairwise(n: int) -> None:
    # No vector adds up what a loop stores here and there; equal numbers err one way.
    x = np.broadcast_to(np.float64(-0.13), (16, n // 16))
    _, total = nfuser.fuse(lambda x: (x * (1 + 0.5j), x.sum()))(x)
    exact = math.fsum(x.ravel())
    assert abs(total - exact) <= 40 * np.spacing(abs(exact))


@pytest.mark.parametrize("dtype", ["f8", "i2"])
def test_sums_of_what_lies_backwards_are_as_good(dtype: str) -> None:
    x = np.full((17, 7, 33), 7, dtype)[::-1, ::-1, ::-1]
    thirteenths = lambda x: ((x * 0.13).sum(), x * 2)  # noqa: E731
    total, _ = nfuser.fuse(thirteenths)(x)
    exact = math.fsum(np.ravel(x * 0.13))
    assert abs(total - exact) <= 40 * np.spacing(abs(exact))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x.sum(-1), x.argmax(-1)),
        lambda x: (((x * 1000).astype("i8") // 7 * 0.1).sum(-1),),
    ],
)
def test_sums_beside_what_vectors_cannot_do_are_as_good(function: Any) -> None:
    x = np.full((2, 4096), 0.13)
    total, wanted = nfuser.fuse(function)(x)[0], function(x)[0]
    assert (abs(total - wanted) <= 45 * np.spacing(wanted)).all()


@pytest.mark.filterwarnings("ignore:fuse the body of this loop:RuntimeWarning")
def test_sums_of_many_columns_fit_the_stack() -> None:
    def function(x: Any) -> Any:
        return tuple((x + k).sum(0) for k in range(300))

    text = nfuser.fuse(function).lower(np.ones((40, 4096))).as_text()
    sizes = [int(n) for n in re.findall(r"stack_f64\((\d+)\)", text)]
    assert len(sizes) >= 300
    assert 8 * sum(sizes) <= 1 << 20


@pytest.mark.parametrize("rows", [0, 1, 33, 127, 128, 129, 1000, 70_001])
def test_sums_of_columns_lose_no_more_than_128_numbers_do(rows: int) -> None:
    x = np.full((rows, 5), -0.13)
    x[rows // 2 :, 1] *= np.pi
    x[:2, 2] = 1e20  # what is lost beside them comes back when they are gone
    x[1:2, 2] = -1e20
    x[-1:, 3:] = np.inf, np.nan
    total, spread = nfuser.fuse(lambda x: (x.sum(0), ((x - x.mean(0)) ** 2).sum(0)))(x)
    exact = np.array([math.fsum(x[:, k]) for k in range(5)])
    np.testing.assert_allclose(total, exact, rtol=5e-15, atol=1e-300)
    wanted = x[:, :2].var(0) * rows if rows else 0
    np.testing.assert_allclose(spread[:2], wanted, atol=1e-20)


def test_long_sums_are_as_good_as_pairwise() -> None:
    x = np.random.default_rng(1).random(3_000_000) - 0.5
    wanted = float(np.sum(x.astype(np.longdouble)))
    made = nfuser.fuse(lambda x: x.sum())(x)
    assert abs(made - wanted) <= max(abs(float(x.sum()) - wanted), 1e-10)


def test_repeated_calls_give_the_same_bits() -> None:
    x = np.random.default_rng(2).random((1500, 1001), np.float32)
    f = nfuser.fuse(lambda x: (x.sum(), x.max()))
    with override(num_threads=8):
        first = f(x)
        assert all(f(x) == first for _ in range(50))


def test_short_rows_stay_whole() -> None:
    long, short = np.ones(1 << 20), np.ones((64, 1 << 14))
    f = nfuser.fuse(lambda x: x.sum(-1))
    assert "parts=32" in f.kernels(long)[0].schedule
    assert "parts" not in f.kernels(short)[0].schedule


_TALL: Any = pytest.mark.parametrize("width", [8, 64, 67])


@_TALL
def test_tall_columns_are_folded_in_parts(width: int) -> None:
    x = np.random.default_rng(3).standard_normal((1 << 16, width), np.float32)
    f = nfuser.fuse(lambda x: (x.sum(0), x.max(0), x.argmin(0)))
    assert "parts=32" in f.kernels(x)[0].schedule
    total, most, place = f(x)
    np.testing.assert_allclose(total, x.sum(0, np.float64), rtol=1e-6, atol=1e-4)
    assert (most == x.max(0)).all()
    assert (place == x.argmin(0)).all()


@_TALL
def test_what_needs_the_folded_columns_follows_in_a_phase_of_its_own(
    width: int,
) -> None:
    x = np.random.default_rng(4).standard_normal((1 << 16, width))
    f = nfuser.fuse(lambda x: ((x - x.mean(0)) / x.std(0), x.mean(0)))
    (kernel,) = f.kernels(x)
    assert "parts=32 in phases" in kernel.schedule
    for made, wanted in zip(f(x), ((x - x.mean(0)) / x.std(0), x.mean(0)), strict=True):
        np.testing.assert_allclose(made, wanted, atol=1e-13)


def test_few_long_rows_are_normalized_in_phases() -> None:
    def softmax(x: Any) -> Any:
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)

    x = np.random.default_rng(5).standard_normal((2, 600_001))
    f = nfuser.fuse(softmax)
    assert "parts=32 in phases" in f.kernels(x)[0].schedule
    np.testing.assert_allclose(f(x), softmax(x), rtol=1e-12)


def test_parts_of_columns_do_not_depend_on_the_threads() -> None:
    x = np.random.default_rng(6).standard_normal((1 << 16, 24), np.float32)
    f = nfuser.fuse(lambda x: ((x - x.mean(0)) / x.std(0), x.sum(0)))
    with override(num_threads=1):
        alone = f(x)
    with override(num_threads=8):
        for _ in range(20):
            assert all(map(np.array_equal, f(x), alone))


def test_short_or_wide_columns_stay_whole() -> None:
    f = nfuser.fuse(lambda x: x.sum(0))
    for shape in ((1 << 10, 64), (128, 1 << 13), (1 << 11, 1 << 15)):
        assert "parts" not in f.kernels(np.ones(shape, np.float32))[0].schedule


def test_columns_in_parts_are_read_in_whole_rows() -> None:
    f = nfuser.fuse(lambda x: x.sum(0))
    for rows, width in ((1 << 12, 1 << 12), (1 << 14, 512), (1 << 16, 64)):
        x = np.ones((rows, width), np.float32)
        schedule = f.kernels(x)[0].schedule
        assert f"columns={width}," in schedule
        assert "parts=32" in schedule
        assert (f(x) == rows).all()
    assert "parts" not in f.kernels(np.ones((1 << 10, 1 << 14), "f4"))[0].schedule


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        *((1999, 300), (2049, 300), (2100, 300), (3000, 300), (100_003, 24)),
        *((8196, 100), (4097, 257)),  # the last part has a chunk less than the others
    ],
)
def test_parts_of_tall_columns_in_chunks_end_where_rows_do(
    rows: int, columns: int
) -> None:
    """What lies behind the rows is of the same array, and would be added."""
    base, sums = np.ones((rows + 64, columns)), np.full(columns, float(rows))
    x = base[:rows]
    np.testing.assert_array_equal(nfuser.fuse(_column_sums)(x), sums)
    np.testing.assert_array_equal(nfuser.fuse(_row_sums)(x.T[:, ::-1]), sums)
    planes = x.reshape(1, rows, columns)
    np.testing.assert_array_equal(nfuser.fuse(_row_sums)(planes), sums[None])
    means = nfuser.fuse(_column_means)(x.astype(np.int8))
    np.testing.assert_array_equal(means, np.ones(columns))


def _column_sums(x: Any) -> Any:
    return x.sum(axis=0)


def _row_sums(x: Any) -> Any:
    return x.sum(axis=1)


def _column_means(x: Any) -> Any:
    return x.mean(axis=0)
