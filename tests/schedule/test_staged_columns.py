# SPDX-License-Identifier: Apache-2.0
"""What many rows share, across the vectors of a CPU, is copied to the stack once."""
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pytest

import nfuser
from nfuser.compiler.schedule.facts.target import CPU
from nfuser.compiler.schedule.heuristics.cpu import CpuReduction
from nfuser.compiler.schedule.heuristics.cuda import CudaReduction
from nfuser.config import override
from tests.schedule.run_schedule import Call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Size: TypeAlias = tuple[int, int, int]

SMALL = ((0, 300, 8), (5, 0, 8), (5, 300, 0), (1, 1, 1), (1, 300, 8), (9, 1, 2))
FITTING = ((12, 90, 2), (20, 255, 5), (11, 256, 3), (90, 257, 16), (130, 515, 7))
FEW = ((8, 32, 32), (10, 500, 16), (50, 40, 31))
NARROWED = {(90, 600, 64): 256, (140, 200, 65): 128, (300, 400, 129): 64}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "distance": lambda x, y: ((x[:, None] - y) ** 2).sum(-1),
    "product": lambda x, y: (x[:, None] * y).sum(-1),
    "variance": lambda x, y: (x[:, None] - y).var(-1),
    "twice": lambda x, y: (x[:, None] + y * (y[::-1] > 1)).sum(-1),
}


def pair(n0: int, n2: int, n1: int, dtype: str = "f8") -> tuple[Any, Any]:
    rng = np.random.default_rng(n0 + n1 + n2)
    x, y = rng.standard_normal((n0, n1)), rng.standard_normal((n2, n1))
    return (x * 4).astype(dtype), (y * 4).astype(dtype)


def chosen(function: Any, *arrays: Any) -> CpuReduction:
    call = Call(function, *arrays, computes=False)
    facts = replace(call.facts, target=CPU)
    found = call.scheduler.heuristic(call.fusion, facts)
    assert isinstance(found, CpuReduction)
    return found


def is_staged(function: Any, *arrays: Any) -> bool:
    return "staged=" in str(chosen(function, *arrays))


def check(function: Callable[..., Any], sizes: Iterable[Size], dtype: str) -> None:
    fused = nfuser.fuse(function)
    for size in sizes:
        x, y = pair(*size, dtype)
        found, wanted = fused(x, y), function(x, y)
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-3)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_sizes_that_fill_tiles_or_do_not(name: str, dtype: str) -> None:
    assert all(is_staged(FUNCTIONS[name], *pair(*x, dtype)) for x in FITTING)
    check(FUNCTIONS[name], FITTING, dtype)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_short_rows_that_lie_in_memory_as_they_are_folded(dtype: str) -> None:
    function = FUNCTIONS["distance"]
    assert all(is_staged(function, *pair(*x, dtype)) for x in FEW)
    check(function, FEW, dtype)
    for size in ((7, 32, 32), (8, 31, 31), (10, 500, 33)):
        assert chosen(function, *pair(*size, dtype)).inner


def test_no_elements_and_single_ones() -> None:
    check(FUNCTIONS["distance"], SMALL, "f4")


def test_long_rows_have_narrower_tiles() -> None:
    function = FUNCTIONS["distance"]
    for size, columns in NARROWED.items():
        assert chosen(function, *pair(*size, "f4")).columns == columns
    check(function, NARROWED, "f4")


@pytest.mark.parametrize("dtype", ["f2", "i1", "i4", "?"])
@pytest.mark.parametrize("name", ["any", "max", "argmin"])
def test_other_kinds(name: str, dtype: str) -> None:
    x, y = pair(37, 300, 5, dtype)
    function = {
        "any": lambda x, y: (x[:, None] > y).any(-1),
        "max": lambda x, y: np.maximum(x[:, None], y).max(-1),
        "argmin": lambda x, y: np.minimum(x[:, None], y).argmin(-1),
    }[name]
    assert is_staged(function, x, y)
    np.testing.assert_array_equal(nfuser.fuse(function)(x, y), function(x, y))


def test_rows_that_share_lie_inside_batches_or_around_them() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random((3, 20, 8)), rng.random((3, 300, 8))
    inside: Any = lambda x, y: (x[:, :, None] * y[:, None]).sum(-1)  # noqa: E731
    assert is_staged(inside, x, y)
    np.testing.assert_allclose(nfuser.fuse(inside)(x, y), inside(x, y))
    around: Any = lambda x, y: (x[:, :, None, None] - y).max(-1)  # noqa: E731
    x = rng.random((20, 3, 1))[..., 0]
    assert is_staged(around, x, y)
    np.testing.assert_array_equal(nfuser.fuse(around)(x, y), around(x, y))


def test_two_axes_are_folded_and_strides_are_any() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.random((20, 4, 6)), rng.random((600, 6, 8)).transpose(0, 2, 1)[::2, ::2]
    function: Any = lambda x, y: (x[:, None] * y).sum((-2, -1))  # noqa: E731
    assert is_staged(function, x, y)
    np.testing.assert_allclose(nfuser.fuse(function)(x, y), function(x, y))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_threads_do_not_change_a_bit(dtype: str) -> None:
    x, y = pair(301, 1100, 9, dtype)
    fused = nfuser.fuse(FUNCTIONS["distance"])
    assert is_staged(FUNCTIONS["distance"], x, y)
    made: list[Any] = []
    for threads in (1, 2, 8):
        with override(num_threads=threads):
            made.append(fused(x, y))
    np.testing.assert_array_equal(made[0], made[1])
    np.testing.assert_array_equal(made[0], made[2])


def test_one_kernel_serves_all_sizes_that_fit() -> None:
    fused = nfuser.fuse(FUNCTIONS["product"])
    for size in ((10, 300, 2), (1000, 257, 32), (129, 30, 16), (20, 5000, 9)):
        fused(*pair(*size))
    assert fused.cache_info().runtimes == 1


def test_few_rows_make_pieces_for_all_threads() -> None:
    # 4 parts by 20 tiles of columns; 13 by a single one, of 8 rows at least.
    for columns, rounds in ((5000, 25), (200, 8)):
        found = chosen(FUNCTIONS["product"], *pair(100, columns, 8))
        assert found.staged is not None
        assert found.staged.rounds == rounds


def test_what_gains_nothing_stays_as_it_was() -> None:
    function = FUNCTIONS["product"]
    assert is_staged(function, *pair(64, 64, 8))
    assert not is_staged(function, *pair(64, 7, 8)), "no vector is full"
    assert not is_staged(function, *pair(1, 64, 8)), "no rows to share it"
    assert not is_staged(function, *pair(700, 700, 257)), "no room"
    x, y = pair(64, 64, 8)
    assert not is_staged(function, x, np.asfortranarray(y))
    assert not is_staged(lambda x: x.sum(0), x)
    assert not is_staged(lambda x: x.sum(1), x)
    strided = np.ones((64, 8, 300)).transpose(0, 2, 1)
    assert is_staged(lambda a, y: (a * y).sum(-1), strided, pair(1, 300, 8)[1])
    rows = np.ones((64, 600, 8))[:, ::2]
    assert not is_staged(lambda a, y: (a * y).sum(-1), rows, pair(1, 300, 8)[1])


def test_a_gpu_stages_nothing() -> None:
    found = Call(FUNCTIONS["product"], *pair(64, 64, 8)).heuristic()
    assert isinstance(found, CudaReduction)


def test_the_kernel(golden: Callable[[str], None]) -> None:
    def distance(x: Any, y: Any) -> Any:
        return ((x[:, None] - y) ** 2).sum(-1)

    (kernel,) = nfuser.fuse(distance).kernels(*pair(64, 500, 8, "f4"))
    golden(kernel.source[kernel.source.index("# schedule") :])
