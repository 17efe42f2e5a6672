# SPDX-License-Identifier: Apache-2.0
"""The order of a graph whose nodes merge, against a search of the whole graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser.compiler.segment.order import Order

Graph = dict[int, set[int]]


def _reached(graph: Graph, start: int) -> set[int]:
    seen: set[int] = set()
    stack = [*graph[start]]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack += graph[node]
    return seen


def _has_detour(below: Graph, first: int, second: int) -> bool:
    """Tell whether a path from one to the other leads through a third."""
    return any(
        goal in _reached(below, node)
        for start, goal in ((first, second), (second, first))
        for node in below[start] - {goal}
    )


def _merge(graph: Graph, gone: int, kept: int) -> None:
    graph[kept] |= graph.pop(gone)
    for found in graph.values():
        if gone in found:
            found.remove(gone)
            found.add(kept)
    graph[kept].discard(kept)


@pytest.mark.parametrize("seed", range(60))
def test_two_nodes_merge_where_no_path_leads_through_a_third(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(3, 40))
    below: Graph = {k: set() for k in range(count)}
    above: Graph = {k: set() for k in range(count)}
    for _ in range(int(rng.integers(count, 3 * count))):
        a, b = sorted(rng.choice(count, 2, replace=False).tolist())
        below[a].add(b)
        above[b].add(a)
    order = Order(range(count))
    merges = 0
    for _ in range(6 * count):
        if len(below) < 2:
            break
        start, goal = rng.choice([*below], 2, replace=False).tolist()
        step = above if order.is_behind(start, goal) else below
        found = order.between(start, goal, step.__getitem__)
        assert (found is None) == _has_detour(below, start, goal)
        if found is None:
            continue
        order.merge(start, goal, found)
        _merge(below, start, goal)
        _merge(above, start, goal)
        merges += 1
        for node, found in below.items():
            assert all(order.is_behind(other, node) for other in found)
    assert merges


def test_groups_that_reach_far_back_and_forth_form_no_cycle() -> None:
    # A cotangent that is 1 begins late in the program, and what reads it joins a group
    # that begins early: the product lies between the two in the graph, before both in
    # the program.
    def loss(x: Any, y: Any) -> Any:
        squared = x * y
        value = np.log(squared * squared + 0.5)
        product = value @ value.T
        return sum(np.sum(np.sin(t + 0.1)) for t in (product, value, np.sin(value)))

    x, y = np.array([0.3, 0.7]), np.array([[0.9, 0.4]])
    found, _ = nfuser.grad(nfuser.fuse(loss), argnums=(0, 1))(x, y)
    step = 1e-6
    for k in range(2):
        moved = np.zeros(2)
        moved[k] = step
        wanted = (loss(x + moved, y) - loss(x - moved, y)) / (2 * step)
        np.testing.assert_allclose(found[k], wanted, rtol=1e-6)
