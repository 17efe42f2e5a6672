# SPDX-License-Identifier: Apache-2.0
"""Emitted sources assign a name twice only where a loop or a branch asks for it."""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser

if TYPE_CHECKING:
    from collections.abc import Callable


def _steps_of_sines(count: int) -> Callable[..., Any]:
    def steps(u: Any, k: Any) -> Any:
        for _ in range(count):
            u = u + k * np.sin(u)
        return u

    return steps


def _weighted_sum(count: int) -> Callable[..., Any]:
    def steps(u: Any, k: Any) -> Any:
        v = u
        for _ in range(count):
            v = v * u + k
        return v.sum(axis=-1)

    return steps


def _assigned_again(steps: Callable[..., Any]) -> int:
    """Return how many names the kernels of ``steps`` assign more than once."""
    fused = nfuser.fuse(steps)
    again = 0
    for kernel in fused.kernels(np.ones((4, 3000)), 0.5):
        targets = [x for x in ast.walk(ast.parse(kernel.source)) if _is_target(x)]
        counts = Counter(x.id for x in targets if isinstance(x, ast.Name))
        again += sum(count > 1 for count in counts.values())
    return again


def _is_target(x: ast.AST) -> bool:
    return isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)


@pytest.mark.parametrize("steps", [_steps_of_sines, _weighted_sum])
def test_a_longer_function_assigns_no_more_names_twice(
    steps: Callable[[int], Callable[..., Any]],
) -> None:
    assert _assigned_again(steps(8)) <= _assigned_again(steps(2)) <= 6
