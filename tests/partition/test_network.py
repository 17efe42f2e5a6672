# SPDX-License-Identifier: Apache-2.0
"""The cut that a flow finds is the smallest of all."""

from __future__ import annotations

from itertools import pairwise, product
from random import Random

from nfuser.compiler.transforms.partition.network import ENDLESS, FlowNetwork


def _smallest(count: int, edges: list[tuple[int, int, int]]) -> int:
    """Try every set of nodes on the source's side."""
    least = ENDLESS
    for sides in product((True, False), repeat=count - 2):
        near = (True, False, *sides)
        crossing = (c for a, b, c in edges if near[a] and not near[b])
        least = min(least, sum(crossing))
    return least


def test_no_cut_is_smaller() -> None:
    random = Random(0)
    for _ in range(300):
        count = random.randint(2, 8)
        edges = [
            (random.randrange(count), random.randrange(count), random.randint(0, 9))
            for _ in range(random.randint(1, 20))
        ]
        edges = [edge for edge in edges if edge[0] != edge[1]]
        graph = FlowNetwork()
        for _ in range(count - 2):
            graph.node()
        for edge in edges:
            graph.edge(*edge)
        near = graph.reached()
        assert 0 in near
        assert 1 not in near
        found = sum(c for a, b, c in edges if a in near and b not in near)
        assert found == _smallest(count, edges)


def test_long_chains_are_quick_and_cut_at_the_thinnest_place() -> None:
    graph, length = FlowNetwork(), 20_000
    nodes = [0, *(graph.node() for _ in range(length)), 1]
    for k, (begin, end) in enumerate(pairwise(nodes)):
        graph.edge(begin, end, 5 if k != 777 else 3)
    assert len(graph.reached()) == 778


def test_what_flows_in_vain_can_be_taken_back() -> None:
    graph = FlowNetwork()
    short, end, first, second = (graph.node() for _ in range(4))
    for begin, to in ((0, short), (short, end), (0, first), (first, second)):
        graph.edge(begin, to, 1)
    graph.edge(second, end, 1)  # the longer way to where the short one leads
    graph.edge(end, 1, 1)
    assert graph.reached() == {0, short, end, first, second}
