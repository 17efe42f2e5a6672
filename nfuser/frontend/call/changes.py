# SPDX-License-Identifier: Apache-2.0
"""Lists and dicts that a fused function is passed and changes: the caller's own."""

# What is in a nest has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nfuser.errors import MutationError
from nfuser.trace import tree as trees
from nfuser.trace.passed import found_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nfuser.trace.call import Changed, OutputLeaf


def check_passed_once(changed: Sequence[Changed], nest: Any, name: str) -> None:
    """Refuse a list or dict that is passed twice and changed, before anything is.

    A trace was given two of them.
    """
    there = [id(x) for x in _nests(nest)]
    for change in changed:
        item = found_at(nest, change.path)
        if there.count(id(item)) > 1:
            kind = type(item).__name__
            message = (
                f"{name}: pass a copy of the {kind} in one of its places: it is passed "
                "twice, and the function puts items into it; what it would then read "
                "in the other place is not known while tracing"
            )
            raise MutationError(message)


def change_all(
    changed: Sequence[Changed], nest: Any, finished: Callable[[OutputLeaf], Any]
) -> None:
    """Let the lists and dicts of the caller hold what the function left in them."""
    targets = [found_at(nest, change.path) for change in changed]
    contents = [
        trees.unflatten(change.tree, [finished(leaf) for leaf in change.leaves])
        for change in changed
    ]
    for target, items in zip(targets, contents, strict=True):
        if isinstance(target, list):
            target[:] = items
            continue
        for key in target.keys() - items.keys():
            del target[key]
        target.update(items)
        if list(target) != list(items):  # one was taken out and put in again
            target.clear()
            target.update(items)


def _nests(nest: Any) -> Iterator[Any]:
    """Yield all lists and dicts of a nest."""
    left = [nest]
    while left:
        item = left.pop()
        if isinstance(item, dict):
            yield item
            left += item.values()
        elif isinstance(item, (list, tuple)):
            if isinstance(item, list):
                yield item
            left += item
