# SPDX-License-Identifier: Apache-2.0
"""Loops inside of loops over single elements that give an array new elements."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfuser

P = np.random.default_rng(1).permutation(30)
X, W = np.random.default_rng(2).random((2, 30))
M = np.random.default_rng(3).random((30, 30))


def shortest(m: Any) -> Any:
    n = len(m)
    distance, done = np.full(n, np.inf), np.zeros(n, np.bool_)
    distance[0] = 0
    for _ in range(n):
        u, least = -1, np.inf
        for v in range(n):
            if not done[v] and distance[v] < least:
                u, least = v, distance[v]
        done[u] = True
        for v in range(n):
            distance[v] = min(distance[v], least + m[u, v])
    return distance


def marked(p: Any, x: Any, w: Any) -> Any:
    """The caller's array is written."""
    done = np.zeros(len(p))
    for k in range(len(p)):
        done[p[k]] = k
        for v in range(len(x)):
            x[v] = min(x[v], w[v] + done[0])
    return done


def part(p: Any, x: Any, w: Any) -> Any:
    """Every second element, and the last ones are left."""
    done, x = np.zeros(len(p)), x.copy()
    for k in range(len(p)):
        for v in range(10):
            x[3 + 2 * v] = x[3 + 2 * v] * 0.5 + w[v]
        done[p[k]] = x[k]
    return x, done


def neighbours(p: Any, x: Any, w: Any) -> Any:
    """A turn reads elements that others write: as they were, or as they are."""
    done, x = np.zeros(len(p)), x.copy()
    for k in range(len(p)):
        done[p[k]] = x[p[k]]
        for v in range(1, len(x)):
            x[v] = 0.5 * x[v - 1] + w[v]
        for v in range(len(x) - 1):
            x[v] = 0.5 * x[v + 1] + w[v]
    return x, done


def read_after(p: Any, x: Any, w: Any) -> Any:
    done, x, s = np.zeros(len(p)), x.copy(), 0.0
    for k in range(len(p)):
        before = x[p[k]]
        for v in range(len(x)):
            x[v] = x[v] * w[v] + 1
        s += before - x[p[k]]
        done[p[k]] = s
    return x, done


def swapped(p: Any, x: Any, w: Any) -> Any:
    done, x, y = np.zeros(len(p)), x.copy(), w.copy()
    for k in range(len(p)):
        done[p[k]] = y[k]
        for v in range(len(x)):
            y[v] = x[v] * 0.5
        for v in range(len(x)):
            x[v] = y[len(y) - 1 - v] + 1
    return x, y, done


def counted(p: Any, x: Any, w: Any) -> Any:
    """A loop that may end early."""
    done, x = np.zeros(len(p)), x.copy()
    for k in range(len(p)):
        done[p[k]] += 1
        for v in range(len(x)):
            if w[v] > 0.9:
                break
            x[v] = x[v] + 1
    return x, done


def beyond(p: Any, x: Any, w: Any) -> Any:
    """The last turns but three mark a place that is not there."""
    for k in range(len(p)):
        for v in range(20):
            x[v + 2] = x[v + 2] * 0.5 + 1
        w[p[k] + (k > 26) * 40] = x[k]
        for v in range(20):
            x[v] = x[v] * 0.5 + w[v]


def shifted(p: Any, x: Any, w: Any) -> Any:
    """A turn reads an element as it was, which the turn before has written."""
    done, x = np.zeros(len(p)), x.copy()
    for k in range(len(p)):
        done[p[k]] = x[k]
        old = x.copy()
        for v in range(20):
            x[v + 1] = old[v] + w[v]
    return x, done


def turned(p: Any, x: Any, w: Any) -> Any:
    done, x = np.zeros(len(p)), x.copy()
    for k in range(len(p)):
        done[p[k]] = x[k]
        old = x.copy()
        for v in range(len(x)):
            x[v] = old[len(x) - 1 - v] * w[v]
    return x, done


ONE_KERNEL = (part, read_after, swapped, counted, shifted)
PROGRAMS = (*ONE_KERNEL, marked, neighbours, turned)


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_results_are_those_of_python(program: Any, backend: str) -> None:
    fused = nfuser.fuse(program, backend=backend)
    for turn in range(3):
        ours = (P, X * (turn + 1), W.copy())
        theirs = (P, X * (turn + 1), W.copy())
        found, wanted = fused(*ours), program(*theirs)
        pairs = (found, wanted) if isinstance(found, tuple) else ((found,), (wanted,))
        for one, other in zip(*pairs, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-13)
        np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-13)
    schedules = [str(k.schedule) for k in fused.kernels(P, X.copy(), W.copy())]
    assert ("serial()" in schedules) == (program in ONE_KERNEL)


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
def test_shortest_paths_are_one_kernel(backend: str) -> None:
    fused = nfuser.fuse(shortest, backend=backend)
    np.testing.assert_allclose(fused(M), shortest(M), rtol=1e-13)
    schedules = [str(k.schedule) for k in fused.kernels(M)]
    assert "serial()" in schedules
    assert not any("sweep" in schedule for schedule in schedules)


def test_after_a_place_that_is_not_there_nothing_is_written() -> None:
    fused = nfuser.fuse(beyond)
    schedules = [str(k.schedule) for k in fused.kernels(P, X.copy(), W.copy())]
    assert "serial()" in schedules
    ours, theirs = (P, X.copy(), W.copy()), (P, X.copy(), W.copy())
    with pytest.raises(IndexError):
        fused(*ours)
    with pytest.raises(IndexError):
        beyond(*theirs)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)
