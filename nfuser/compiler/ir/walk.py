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
    begun: list[N] = []
    stack = [iter(roots)]
    while stack:
        for item in stack[-1]:
            if item in order:
                continue
            below = children(item)
            if not below:
                order[item] = None
                continue
            begun.append(item)
            stack.append(iter(below))
            break
        else:
            stack.pop()
            if begun:
                order[begun.pop()] = None
    return list(order)
