# SPDX-License-Identifier: Apache-2.0
"""Permuted operands and results are NumPy's, whatever tiles they go through."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from tests.fuzz.arrays import build
from tests.fuzz.backends import from_torch, to_torch

if TYPE_CHECKING:
    from collections.abc import Callable

BACKENDS = ("cpu", "interpret", pytest.param("cuda", marks=pytest.mark.gpu))
DTYPES = (
    "bool",
    "int8",
    "uint16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
)
LONG = (33, 48, 63, 64, 65, 72, 96, 130)  # of the two axes of a tile
SHORT = (1, 2, 3, 5)
SEEDS = 4


class Turned:
    """A random permutation of an array with two long axes, and a second operand."""

    def __init__(self, seed: int, dtype: str) -> None:
        rng = np.random.default_rng([seed, DTYPES.index(dtype)])
        rank = int(rng.integers(2, 5))
        long = rng.choice(rank, 2, replace=False)
        shape = tuple(
            int(rng.choice(LONG if axis in long else SHORT)) for axis in range(rank)
        )
        self.order = tuple(map(int, rng.permutation(rank)))
        self.back = tuple(map(int, np.argsort(self.order)))
        turned = tuple(shape[k] for k in self.order)
        self.arrays = (
            build(dtype, shape, "small", seed=seed),
            build(dtype, turned, "small", seed=seed + 1),
            build(dtype, turned[-1:], "small", seed=seed + 2),
        )

    def __call__(self, x: Any, y: Any, b: Any) -> Any:
        turned = x.transpose(self.order)
        mixed = np.where(turned > b, turned, y)
        back = (x < y.transpose(self.back)).copy("C")
        return mixed, back, np.maximum(turned, b).copy("C")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_permutations(seed: int, dtype: str, backend: str) -> None:
    case = Turned(seed, dtype)
    for got, want in zip(_run(case, backend), case(*case.arrays), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


def _run(case: Turned, backend: str) -> list[Any]:
    if backend != "cuda":
        return list(nfuser.fuse(case, backend=backend)(*case.arrays))
    results = nfuser.fuse(case, dialect="numpy")(*map(to_torch, case.arrays))
    return [from_torch(x) for x in results]


KINDS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "operand": (lambda x, y: x + y.T, "transpose"),
    "result": (lambda x, y: (x * y.T).copy("F"), "transpose"),
    "rows of an operand": (lambda x, y: x[3:] - y.T[:-3], "transpose"),
    "every other row": (lambda x, y: x[::2] - y.T[::2], "transpose"),
    "no crossing": (lambda x, y: x.T * 2, "pointwise"),
    "joined": (lambda x, y: np.concatenate([x, y.T]), "pointwise"),
    "gathered": (lambda x, y: x + y.T[np.arange(96) // 2], "pointwise"),
    "mirrored": (lambda x, y: x + y.T[::-1, ::-1], "transpose"),
}


@pytest.mark.parametrize("name", KINDS)
def test_what_goes_through_tiles(name: str) -> None:
    function, kind = KINDS[name]
    x, y = build("float32", (96, 64)), build("float32", (64, 96))
    fused = nfuser.fuse(function, backend="interpret")
    np.testing.assert_array_equal(fused(x, y), function(x, y))
    (kernel,) = fused.kernels(x, y)
    assert kernel.schedule.startswith(kind)


def test_one_kernel_serves_all_sizes_of_a_layout() -> None:
    fused = nfuser.fuse(lambda x, y: x + y.T, backend="interpret")
    for rows, columns in ((64, 96), (192, 68), (48, 1000)):
        x, y = build("float32", (rows, columns)), build("float32", (columns, rows))
        np.testing.assert_array_equal(fused(x, y), x + y.T)
    info = fused.cache_info()
    assert (info.runtimes, info.compiled + info.reused) == (1, 1)
