# SPDX-License-Identifier: Apache-2.0
"""Kernels of very many functions call them, and compute what they would inside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
import nfuser.compiler.lower.cpu.vectors.lanes as lanes
import nfuser.config as config
from nfuser.codegen.numba.compile_cpu import compile_cpu
from nfuser.codegen.primitives.cpu.features import vector_bits
from nfuser.execution.runtime.caches.shared_cache import forget_all

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_APART = "functions_apart()"
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "angles": lambda x: np.sin(x) + np.cos(x * 1e8) * np.tan(x),
    "exponentials": lambda x: np.exp(-x * x) + np.tanh(x) - np.expm1(x),
    "powers": lambda x: np.abs(x) ** 1.37 + np.hypot(x, x + 1.0),
    "inverses": lambda x: np.arctan2(x, x - 0.5) + np.log1p(np.abs(x)),
}


def _steps_of_sines(count: int) -> Callable[..., Any]:
    def steps(u: Any) -> Any:
        for _ in range(count):
            u = u + 0.5 * np.sin(u)
        return u

    return steps


def _run(function: Callable[[Any], Any], x: NDArray[Any]) -> tuple[str, NDArray[Any]]:
    forget_all()

    def called(u: Any) -> Any:
        return function(u)

    fused = nfuser.fuse(called)
    with config.override(disable=frozenset({"disk_cache"})):
        result: NDArray[Any] = fused(x)
    return fused.kernels(x)[0].source, result


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", _FUNCTIONS)
def test_a_function_apart_gives_the_same_bits(
    name: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.random.default_rng(0).normal(size=203).astype(dtype)
    x[:4] = [0.0, -0.0, np.inf, np.nan]
    inside, expected = _run(_FUNCTIONS[name], x)
    monkeypatch.setattr(lanes, "_MOST_INSIDE", 0)
    apart, found = _run(_FUNCTIONS[name], x)
    assert (_APART in inside, _APART in apart) == (False, True)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.skipif(not vector_bits(), reason="no vectors that LLVM is asked to fill")
def test_machine_code_hardly_grows_with_the_sines_of_a_long_function() -> None:
    def size(count: int) -> int:
        fused = nfuser.fuse(_steps_of_sines(count))
        (kernel,) = fused.kernels(np.ones(9))
        types = "void(int64, int64, CPointer(float64), CPointer(float64), int64)"
        return len(compile_cpu(kernel.source, kernel.name, types).code)

    assert size(60) < 1.5 * size(30)


def test_a_short_function_holds_its_sines() -> None:
    (kernel,) = nfuser.fuse(_steps_of_sines(4)).kernels(np.ones(9))
    assert _APART not in kernel.source
