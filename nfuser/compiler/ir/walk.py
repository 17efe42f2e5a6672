# SPDX-License-Identifier: Apache-2.0
"""Walks over a DAG; they keep their own stack, so depth is never a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

N = TypeVar("N")


def toposort(roots: Iterable[N], children: Callable[[N], Iterable[N]]) -> list[N]:
    """Return every node once, children first, in an order fixed by ``roots``."""
    order: dict[N, None] = {}
    stack = [(root, False) for root in reversed(list(roots))]
    while stack:
        item, ready = stack.pop()
        if item in order:
            continue
        if ready:
            order[item] = None
            continue
        stack.append((item, True))
        stack.extend((c, False) for c in reversed(list(children(item))))
    return list(order)
