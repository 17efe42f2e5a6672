# SPDX-License-Identifier: Apache-2.0
"""The CPU backend under its callers: threads, children, read-only and mapped memory."""
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import os
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.config import override
from nfuser.execution.device.reuse import POOL, size_class

if TYPE_CHECKING:
    from pathlib import Path


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def standardise(x: Any) -> Any:
    return (x - x.mean(0)) / x.std(0)


FUNCTIONS: dict[str, Any] = {
    "chain": lambda x: np.tanh(x) * np.sin(x) + np.sqrt(abs(x)) / 3,
    "softmax": softmax,
    "standardise": standardise,
    "turned": lambda x: x[:500, :500] + x[:500, :500].T,
    "stencil": lambda x: x[1:, 1:] - x[:-1, :-1],
    "sums": lambda x: (x.sum(), x.sum(0), x.sum(1), x.max(0)),
}


def data(dtype: str = "f4") -> Any:
    return np.random.default_rng(11).standard_normal((1100, 1203)).astype(dtype)


def parts(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple) else [result]


def assert_same(got: Any, wanted: Any) -> None:
    for g, w in zip(parts(got), parts(wanted), strict=True):
        np.testing.assert_array_equal(g, w)


def assert_right(name: str, got: Any, x: Any) -> None:
    tolerance = 1e-9 if x.dtype == np.float64 else 3e-5
    for g, w in zip(parts(got), parts(FUNCTIONS[name](x.astype("f8"))), strict=True):
        np.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance * abs(w).max())


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_any_number_of_threads_gives_the_same_bits(name: str, dtype: str) -> None:
    x = data(dtype)
    fused = nfuser.fuse(FUNCTIONS[name])
    made: list[Any] = []
    for threads in (1, 2, 8):
        with override(num_threads=threads):
            made.append(fused(x))
    assert_right(name, made[0], x)
    assert_same(made[1], made[0])
    assert_same(made[2], made[0])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_threads_of_the_caller_may_call_at_once(name: str) -> None:
    fused = nfuser.fuse(FUNCTIONS[name])
    inputs = [data() * (k + 1) for k in range(8)]
    with override(num_threads=2):
        wanted = [fused(x) for x in inputs]
        with ThreadPoolExecutor(8) as pool:
            for _ in range(2):
                for got, right in zip(pool.map(fused, inputs), wanted, strict=True):
                    assert_same(got, right)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_children_call_what_the_parent_compiled(name: str) -> None:
    x = data()
    fused = nfuser.fuse(FUNCTIONS[name])
    with override(num_threads=4):
        wanted = fused(x)  # the parent has threads and used memory by now
        children: list[int] = []
        for _ in range(3):
            child = os.fork()
            if child == 0:
                try:
                    assert_same(fused(x), wanted)
                    os._exit(0)
                finally:
                    os._exit(1)
            children.append(child)
        statuses = [os.waitpid(child, 0)[1] for child in children]
    assert statuses == [0] * 3
    assert_same(fused(x), wanted)


def test_read_only_inputs() -> None:
    x = data()
    wanted = nfuser.fuse(softmax)(x)
    x.flags.writeable = False
    made = nfuser.fuse(softmax)(x)
    np.testing.assert_array_equal(made, wanted)
    assert made.flags.writeable


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_mapped_inputs_are_read_and_left_alone(mode: str, tmp_path: Path) -> None:
    x = data()
    path = tmp_path / "x.npy"
    np.save(path, x)
    mapped = np.load(path, mmap_mode=mode)  # pyright: ignore[reportArgumentType]
    np.testing.assert_array_equal(nfuser.fuse(softmax)(mapped), nfuser.fuse(softmax)(x))
    np.testing.assert_array_equal(np.load(path), x)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_chain_takes_its_output_and_little_else(threads: int) -> None:
    def chain(x: Any, y: Any) -> Any:
        for _ in range(8):
            x = x * y + np.abs(x)
        return np.tanh(x) - softmax(y)

    x, y = (np.random.default_rng(k).random((1000, 1000)) for k in range(2))
    with override(num_threads=threads):
        f = nfuser.fuse(chain)
        f(x, y)
        POOL.clear()
        tracemalloc.start()
        try:
            result = f(x, y)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    # The memory of an output is up to an eighth larger than the output.
    assert result.nbytes <= peak <= size_class(result.nbytes) + (1 << 20) * threads
