# SPDX-License-Identifier: Apache-2.0
"""Lists and dicts that a fused function is passed and changes: the caller's own."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from nfuser.compiler.trace.call import tree as trees
from nfuser.compiler.trace.call.passed import found_at, is_as_before
from nfuser.errors import MutationError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from nfuser.compiler.trace.call.call import Changed, OutputLeaf
    from nfuser.compiler.trace.captures.captured import Captured


@contextmanager
def unchanged_by_tracing(nest: Any, name: str) -> Generator[None]:
    """Refuse what changes the caller's own lists and dicts under another name.

    A trace is given others. What was changed is put back.
    """
    before = [(item, type(item)(item)) for item in _nests(nest)]
    try:
        yield
    finally:
        changed = [(x, held) for x, held in before if not is_as_before(x, held)]
        for item, held in changed:
            item.clear()
            _put(item, held)
    if changed:
        kind = type(changed[0][0]).__name__
        message = (
            f"{name}: change a {kind} that is passed under the name of the argument: "
            "it is changed under a name from outside, once, while the function is "
            "traced, and would not be in later calls"
        )
        raise MutationError(message)


def check_passed_once(
    changed: Sequence[Changed], nest: Any, captured: Captured, name: str
) -> None:
    """Refuse a list or dict that is in two places and changed, before anything is.

    A trace was given two of them: another argument, or what is ``captured``.
    """
    there = Counter(id(x) for x in _nests(nest))
    there.update({id(x) for x in captured.holders(*nest)})
    for change in changed:
        item = found_at(nest, change.path)
        if there[id(item)] > 1:
            kind = type(item).__name__
            message = (
                f"{name}: pass a copy of the {kind}, or leave it to one of its places: "
                "it is passed twice, or known by a name from outside as well, and the "
                "function puts items into it; what it would then read in the other "
                "place is not known while tracing"
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
        _put(target, items)


def _put(target: Any, items: Any) -> None:
    """Let a list or dict hold these items."""
    if isinstance(target, list):
        target[:] = items
        return
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
