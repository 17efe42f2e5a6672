# SPDX-License-Identifier: Apache-2.0
"""What was defined before: a tree of recorded calls whose leaves own what can run.

A definition follows the tree as it is recorded. As long as the calls are those of an
earlier one, nothing is built: the results are known. A definition that arrives at a
leaf runs what is there, with all its concretizations and kernels.
"""

# What users pass to operations has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections import OrderedDict
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

import nfuser.config as config
from nfuser.base.locks import ForkSafeLock
from nfuser.frontend.definition.types import Scalar, Tensor

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from nfuser.frontend.definition.operators import Owner
    from nfuser.frontend.definition.types import CallRecord

L = TypeVar("L")
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_TYPES: tuple[type, ...] = (type, np.dtype, Enum)


class TrieNode(Generic[L]):
    """One call after those above it; ``result`` is what it gave, owned by nobody."""

    __slots__ = ("children", "key", "leaf", "parent", "result")

    def __init__(
        self, parent: TrieNode[L] | None, key: Hashable, result: object
    ) -> None:
        self.parent = parent
        self.key = key
        self.result = result
        self.children: dict[Hashable, TrieNode[L]] = {}
        self.leaf: L | None = None


class Trie(Generic[L]):
    """Definitions by their calls, at most ``NFUSER_CACHE_SIZE`` of them."""

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self._root: TrieNode[L] = TrieNode(None, None, None)
        self._leaves: OrderedDict[TrieNode[L], None] = OrderedDict()

    def root(self, kind: Hashable) -> TrieNode[L] | None:
        """Return where definitions of a kind begin; None before the first."""
        return self._root.children.get(kind)

    def leaf(self, node: TrieNode[L]) -> L | None:
        """Return what runs the definition that ends at ``node``, if one ended there."""
        with self._lock:
            if node in self._leaves:
                self._leaves.move_to_end(node)
            return node.leaf

    def add(self, kind: Hashable, records: Sequence[CallRecord], made: L) -> L:
        """Keep ``made`` for definitions with equal records; return the first such."""
        keys = [record_key(record) for record in records]
        if None in keys:
            return made
        with self._lock:
            node = self._child(self._root, kind, None)
            for key, record in zip(keys, records, strict=True):
                node = self._child(node, key, handed(record.result, None))
            node.leaf = node.leaf or made
            self._leaves[node] = None
            while len(self._leaves) > config.current().cache_size:
                self._prune(self._leaves.popitem(last=False)[0])
            return node.leaf

    def clear(self) -> None:
        """Forget all definitions; those that exist keep what they use."""
        with self._lock:
            self._root.children.clear()
            self._leaves.clear()

    def __len__(self) -> int:
        return len(self._leaves)

    def _child(self, node: TrieNode[L], key: Hashable, result: object) -> TrieNode[L]:
        return node.children.setdefault(key, TrieNode(node, key, result))

    def _prune(self, node: TrieNode[L]) -> None:
        node.leaf = None
        while node.parent is not None and not node.children and node.leaf is None:
            node.parent.children.pop(node.key, None)
            node = node.parent


def record_key(record: CallRecord) -> Hashable | None:
    """Return a key that equal calls have; None where an argument has no equal."""
    args = tuple([_key(x) for x in record.args])
    named = tuple([(name, _key(x)) for name, x in sorted(record.options.items())])
    found = (record.name, args, named)
    return None if _has_gap(found) else found


class _Gap(Enum):
    """Stands for an argument that no other call can be known to have."""

    GAP = 0


def _key(x: Any) -> Hashable:
    if isinstance(x, Tensor | Scalar):
        return "handle", x.name
    if isinstance(x, np.generic):
        return type(x), x.tobytes()
    if isinstance(x, _TYPES):
        return x
    if isinstance(x, _PLAIN):
        return type(x), repr(x)  # 0.0 and -0.0 differ, and so do 1 and True
    if isinstance(x, list | tuple):
        return type(x), *[_key(item) for item in x]
    return _Gap.GAP


def _has_gap(key: Any) -> bool:
    if isinstance(key, tuple):
        return any(_has_gap(item) for item in key)
    return key is _Gap.GAP


def handed(result: Any, owner: Owner | None) -> Any:
    """Return ``result`` with all handles in it those of ``owner``."""
    if isinstance(result, Tensor):
        return Tensor(owner, result.view, result.name, result.stored)
    if isinstance(result, Scalar):
        return Scalar(owner, result.value, result.name)
    if isinstance(result, list | tuple):
        return type(result)(handed(x, owner) for x in result)
    return result
