# SPDX-License-Identifier: Apache-2.0
"""The smallest cut of a graph, by the largest flow through it (Dinic, 1970)."""

from __future__ import annotations

from collections import deque

ENDLESS = 1 << 62  # the capacity of an edge that no cut takes


class FlowNetwork:
    """Nodes 0, 1, ... and edges with capacities; 0 is the source, 1 the sink."""

    def __init__(self) -> None:
        self._edges: list[list[int]] = [[], []]  # of each node, by number
        self._to: list[int] = []
        self._left: list[int] = []  # of the edge, and after it of its way back

    def node(self) -> int:
        """Add a node."""
        self._edges.append([])
        return len(self._edges) - 1

    def edge(self, begin: int, end: int, capacity: int) -> None:
        """Add an edge."""
        for at, to, left in ((begin, end, capacity), (end, begin, 0)):
            self._edges[at].append(len(self._to))
            self._to.append(to)
            self._left.append(left)

    def reached(self) -> set[int]:
        """Return the nodes on the source's side of a smallest cut."""
        while True:
            levels = self._levels()
            if levels[1] < 0:
                return {k for k, level in enumerate(levels) if level >= 0}
            self._push_all(levels)

    def _levels(self) -> list[int]:
        """Return how far each node is from the source, -1 where nothing flows to."""
        levels = [-1] * len(self._edges)
        levels[0] = 0
        queue = deque([0])
        while queue:
            node = queue.popleft()
            for edge in self._edges[node]:
                end = self._to[edge]
                if self._left[edge] and levels[end] < 0:
                    levels[end] = levels[node] + 1
                    queue.append(end)
        return levels

    def _push_all(self, levels: list[int]) -> None:
        """Let flow what can along shortest ways; no edge is looked at twice in vain."""
        following = [0] * len(self._edges)
        way: list[int] = []
        node = 0
        while True:
            if node == 1:
                self._push(way)
                way, node = [], 0
            edges = self._edges[node]
            if following[node] < len(edges):
                edge = edges[following[node]]
                end = self._to[edge]
                if self._left[edge] and levels[end] == levels[node] + 1:
                    way.append(edge)
                    node = end
                else:
                    following[node] += 1
            elif not way:
                return
            else:
                node = self._to[way.pop() ^ 1]
                following[node] += 1

    def _push(self, way: list[int]) -> None:
        amount = min(self._left[edge] for edge in way)
        for edge in way:
            self._left[edge] -= amount
            self._left[edge ^ 1] += amount
