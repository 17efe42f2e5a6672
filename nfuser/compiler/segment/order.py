# SPDX-License-Identifier: Apache-2.0
"""A topological order of a graph that is kept while its nodes merge.

Two nodes may merge where no path between them leads through a third, which the order
answers by a search of what lies between the two alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


Node = TypeVar("Node")


class Order(Generic[Node]):
    """Nodes, each behind those that it follows in the graph."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        nodes = list(nodes)
        self._nodes: list[Node | None] = [*nodes]  # None: it has merged
        self._place = {node: k for k, node in enumerate(nodes)}

    def is_behind(self, node: Node, other: Node) -> bool:
        """Tell whether ``node`` comes later than ``other``."""
        return self._place[node] > self._place[other]

    def between(
        self, start: Node, goal: Node, step: Callable[[Node], Iterable[Node]]
    ) -> set[Node] | None:
        """Return what ``step`` leads to from ``start`` before it passes ``goal``.

        None if a path leads on to ``goal``. ``step`` leads towards ``goal``: to what a
        node follows if ``start`` is behind, to what follows it if not.
        """
        low, high = sorted((self._place[start], self._place[goal]))
        stack = [node for node in step(start) if node is not goal]
        seen: set[Node] = set()
        while stack:
            node = stack.pop()
            if node is goal:
                return None
            if node not in seen and low < self._place[node] < high:
                seen.add(node)
                stack.extend(step(node))
        return seen

    def merge(self, start: Node, goal: Node, found: set[Node]) -> None:
        """Let ``goal`` stand for both; ``found`` is what lies `between` them."""
        begin, end = self._place[start], self._place[goal]
        self._nodes[begin] = None
        del self._place[start]
        if not found:
            return  # what follows either is behind both, or the other way round
        low, high = sorted((begin, end))
        span = [x for x in self._nodes[low : high + 1] if x is not None]
        span.remove(goal)
        near = [x for x in span if x in found]
        far = [x for x in span if x not in found]
        moved = [*near, goal, *far] if begin > end else [*far, goal, *near]
        gone = [None] * (high + 1 - low - len(moved))
        self._nodes[low : high + 1] = [*moved, *gone]
        self._place.update((x, low + k) for k, x in enumerate(moved))
