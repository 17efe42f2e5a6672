# SPDX-License-Identifier: Apache-2.0
"""What a caller passed: which lists and dicts of it a function changed while traced.

A trace is given lists and dicts of its own. What the function puts into them is there
in the caller's once a call has run.
"""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import nfuser.compiler.trace.call.tree as tree
from nfuser.errors import MutationError

if TYPE_CHECKING:
    from collections.abc import Mapping

_DICTS = (dict, OrderedDict)


def found_at(nest: Any, path: tuple[Any, ...]) -> Any:
    """Return the part of a nest that these keys lead to.

    >>> found_at(({"a": [1, 2]},), (0, "a", 1))
    2
    """
    for key in path:
        nest = nest[key]
    return nest


class Passed:
    """The arguments of a call as a trace is given them, before it begins."""

    def __init__(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self.nests: dict[int, tuple[Any, ...]] = {}
        """Where each list and dict is, by its identity."""
        self._leaves: dict[int, tuple[Any, ...]] = {}
        self._before: list[tuple[Any, dict[Any, Any] | list[Any]]] = []
        self._labelled: list[tuple[Any, list[Any], Any]] = []
        for key, nest in enumerate((args, dict(kwargs))):
            for name, item in _items(nest):
                self._visit(item, (key, name))

    def _visit(self, nest: Any, path: tuple[Any, ...]) -> None:
        kind = type(nest)
        if kind in tree.NODES:
            self._labelled.append((nest, *tree.NODES[kind].apart(nest)))
            return
        if kind is list or kind in _DICTS:
            self.nests[id(nest)] = path
            self._before.append((nest, kind(nest)))
        elif not isinstance(nest, tuple):
            self._leaves[id(nest)] = path
            return
        for key, item in _items(nest):
            self._visit(item, (*path, key))

    def place_of(self, item: Any) -> tuple[Any, ...] | None:
        """Return where what was passed is, if ``item`` is such an array or number."""
        return self._leaves.get(id(item))

    def changed(self) -> list[tuple[tuple[Any, ...], Any]]:
        """Return where a list or dict was that holds other items now, and these."""
        return [
            (self.nests[id(nest)], type(nest)(nest))
            for nest, before in self._before
            if not is_as_before(nest, before)
        ]

    def refuse_relabelled(self) -> None:
        """Refuse changes of objects of xarray's, which callers do not see."""
        for item, parts, labels in self._labelled:
            now, told = tree.NODES[type(item)].apart(item)
            if told == labels and _are_same(now, parts):
                continue
            message = (
                "write y = x.copy() first, and change and return that: the function "
                "changes variables, attributes, names or coordinates of an argument of "
                "xarray's"
            )
            raise MutationError(message)

    def refuse_changes(self) -> None:
        """Refuse changes of lists and dicts that were made for a function alone."""
        for nest, before in self._before:
            if not is_as_before(nest, before):
                kind = type(nest).__name__
                message = (
                    f"return what is put into the {kind}: where a function is "
                    f"differentiated, or runs for each row, a {kind} of its arguments "
                    "is one of its own, and what it puts there would be lost"
                )
                raise MutationError(message)


def _items(nest: Any) -> Any:
    """Return the keys and items of what holds others."""
    return list(nest.items()) if isinstance(nest, dict) else list(enumerate(nest))


def is_as_before(nest: Any, before: Any) -> bool:
    """Tell whether a list or dict holds the very same items, in the same order."""
    if isinstance(nest, dict):
        return list(nest) == list(before) and _are_same(nest.values(), before.values())
    return _are_same(nest, before)


def _are_same(one: Any, other: Any) -> bool:
    """Tell whether two collections hold the very same objects."""
    return [id(x) for x in one] == [id(x) for x in other]
