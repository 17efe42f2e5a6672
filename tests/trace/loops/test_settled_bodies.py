# SPDX-License-Identifier: Apache-2.0
"""A branch in a branch runs a few times more while tracing, not twice as often."""

# What a traced function is given, and gives, has no static type.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
import nfuser.compiler.trace.loops.python.turns as turns

if TYPE_CHECKING:
    from collections.abc import Callable


def _assigning(x: Any, n: int) -> Any:
    v = u = 1.0
    for i in range(n):
        if x[0] > v:
            x[0] = x.sum() + i
            v = (v + x[0]) % 7
            if x[1] < v:
                x[1] = x.sum() + 1
                v = (v + x[1]) % 7
                if x[2] != v:
                    x[2] = x.sum() + 2
                    v = (v + x[2]) % 7
                    if x[0] > v:
                        x[0] = x.sum() + 3
                        v = (v + x[0]) % 7
                        if x[1] > v:
                            x[1] = x.sum() % 5
                            u = v + 1
        x[3] += i
    return x, v, u


def _binding(x: Any, n: int) -> Any:
    v = u = 1.0
    for i in range(n):
        y = x * i
        if y[0] > v:
            y[0] = y.sum()
        else:
            p = (v + y.sum()) % 7
            v = p + u
            if y[1] > v:
                y[1] = y.sum()
            else:
                q = (v + y.sum()) % 7
                v = q + p
                if y[2] > v:
                    y[2] = y.sum() + u
                else:
                    r = (v + y.sum()) % 7
                    v = q + r
                    if y[3] > r:
                        y[3] = y.sum()
                    else:
                        u = (r + y.sum()) % 7
        x = (x + y) % 11
    return x, v, u


def _chosen(x: Any, n: int) -> Any:
    v, w = x[0], x
    for i in range(n):
        if v > 1:
            v = v - 1
            if v > 2:
                w = x
                if w[0] > 3:
                    v, w = v + i, w * 2
                    if w[1] > 5:
                        v = v % 3
                        if v == 1:
                            w = w % 4
    return v, w


def _count_steps(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list that grows with each run of a body, unseen by what is traced."""
    source = "def counted(*args):\n    runs.append(None)\n    return step(*args)\n"
    names: dict[str, Any] = {"runs": [], "step": turns.Turning._step}
    exec(compile(source, turns.__file__, "exec"), names)  # noqa: S102 (as if it was there)
    monkeypatch.setattr(turns.Turning, "_step", names["counted"])
    return names["runs"]


@pytest.mark.parametrize("function", [_assigning, _binding, _chosen])
def test_branches_in_each_other_are_settled_once(
    function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    fused = nfuser.fuse(function, backend="interpret")
    for first in range(4):
        given = np.array([3.0, 2.0, 5.0, 1.0]) + first
        wanted = function(given.copy(), 9)
        with monkeypatch.context() as patched:
            runs = _count_steps(patched)
            found = fused(given, 9)
        assert len(runs) < 160
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-13)


def test_a_helper_is_settled_for_each_of_its_calls() -> None:
    def held(x: Any, v: Any) -> Any:
        if x.sum() > v:
            x[0] = v
            if x[1] > v:
                v = v + x.sum()
        return v

    def plain(x: Any, y: Any, n: int) -> Any:
        v = 1
        for _ in range(n):
            v = held(x, v) % 7
            v = held(y, v) % 5
            if v > 2:
                v = held(y, x[1]) - held(x, 2)
        return x, y, v

    fused = nfuser.fuse(plain, backend="interpret")

    for first in range(5):
        x, y = np.array([3.0, 2.0 + first]), np.array([1.0, 4.0, 2.0]) - first
        wanted = plain(x.copy(), y.copy(), 6)
        for one, other in zip(fused(x, y, 6), wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-13)
