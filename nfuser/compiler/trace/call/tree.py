# SPDX-License-Identifier: Apache-2.0
"""Nested tuples, lists, dicts, namedtuples and None, taken apart and put together.

Classes of other libraries take part once they are among ``NODES``.
"""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections import OrderedDict
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from nfuser.compiler.ir.base import value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence


@value
class Tree:
    """The shape of a nest: what it is made of, around ``children``.

    ``container`` is the class, None for a leaf; ``keys`` are those of a dict, and
    ``labels`` what an object of another library's holds beside its children.
    """

    container: type | None
    children: tuple[Tree, ...] = ()
    keys: tuple[Any, ...] = ()
    labels: Any = None

    def __hash__(self) -> int:
        # Each call looks for its tree: leaves and what is deeper are left to ``==``.
        return hash((self.container, self.keys, len(self.children)))


LEAF = Tree(None)
NOTHING = Tree(type(None))
_DICTS = (dict, OrderedDict)
_NONE: Mapping[int, object] = MappingProxyType({})
_NESTS = frozenset({type(None), tuple, list, *_DICTS})


class Node(NamedTuple):
    """How objects of a class are taken apart, and put together of the same."""

    apart: Callable[[Any], tuple[list[Any], Any]]
    together: Callable[[Any, list[Any]], Any]


NODES: dict[type, Node] = {}
"""The classes of other libraries that are nests, by exact class."""


def flatten(
    nest: object, whole: Mapping[int, object] = _NONE
) -> tuple[list[Any], Tree]:
    """Return the leaves of ``nest`` in order, and its shape.

    What has an identity among ``whole`` is a leaf.

    >>> leaves, tree = flatten({"a": (1, None), "b": [2]})
    >>> leaves, unflatten(tree, [10, 20])
    ([1, 2], {'a': (10, None), 'b': [20]})
    """
    leaves: list[Any] = []
    return leaves, _flatten(nest, leaves, whole)


def _flatten(nest: Any, leaves: list[Any], whole: Mapping[int, object]) -> Tree:
    kind = type(nest)
    if nest is None:
        return NOTHING
    if whole and id(nest) in whole:
        leaves.append(nest)
        return LEAF
    if kind in _DICTS:
        return Tree(kind, _children(nest.values(), leaves, whole), tuple(nest))
    if kind in (tuple, list) or is_namedtuple(nest):
        return Tree(kind, _children(nest, leaves, whole))
    if kind in NODES:
        parts, labels = NODES[kind].apart(nest)
        return Tree(kind, _children(parts, leaves, whole), labels=labels)
    leaves.append(nest)
    return LEAF


def _children(
    nests: Iterable[Any], leaves: list[Any], whole: Mapping[int, object]
) -> tuple[Tree, ...]:
    found: list[Tree] = []
    for nest in nests:
        kind = type(nest)
        if kind in _NESTS or kind in NODES or isinstance(nest, tuple):
            found.append(_flatten(nest, leaves, whole))
        else:  # most are
            leaves.append(nest)
            found.append(LEAF)
    return tuple(found)


def is_namedtuple(nest: object) -> bool:
    """Tell whether ``nest`` is an instance of a named tuple."""
    return isinstance(nest, tuple) and hasattr(type(nest), "_fields")


def unflatten(tree: Tree, leaves: Sequence[Any]) -> Any:
    """Return the nest of shape ``tree`` with ``leaves`` in order."""
    return _unflatten(tree, iter(leaves))


def _unflatten(tree: Tree, leaves: Iterator[Any]) -> Any:
    if tree.container is None:
        return next(leaves)
    if tree.container is type(None):
        return None
    children = [_unflatten(child, leaves) for child in tree.children]
    if tree.container in _DICTS:
        return tree.container(zip(tree.keys, children, strict=True))
    if tree.labels is not None:
        return NODES[tree.container].together(tree.labels, children)
    if hasattr(tree.container, "_fields"):
        return tree.container(*children)
    return tree.container(children)


def has_labels(tree: Tree) -> bool:
    """Tell whether there is an object of another library's in a nest."""
    return tree.labels is not None or any(map(has_labels, tree.children))


def parts(tree: Tree, path: str) -> Iterator[tuple[str, Tree]]:
    """Return ``tree`` and each nest and leaf in it, by how a caller would write it."""
    yield path, tree
    if tree.labels is not None:
        steps = list(tree.labels.steps)
    elif tree.keys:
        steps = [f"[{key!r}]" for key in tree.keys]
    elif fields := getattr(tree.container, "_fields", ()):
        steps = [f".{field}" for field in fields]
    else:
        steps = [f"[{k}]" for k in range(len(tree.children))]
    for step, child in zip(steps, tree.children, strict=True):
        yield from parts(child, path + step)
