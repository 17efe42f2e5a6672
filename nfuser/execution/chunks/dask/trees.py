# SPDX-License-Identifier: Apache-2.0
"""Trees that combine the parts of chunks, and passes that their last tasks run."""

from __future__ import annotations

from itertools import pairwise, product
from math import prod
from typing import TYPE_CHECKING, Any

from nfuser.compiler.ir.base import node
from nfuser.execution.chunks.axes.places import NONE, Along
from nfuser.execution.chunks.dask.graph import Module, part_key
from nfuser.execution.chunks.tasks.block import Combine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.execution.chunks.axes.chunkings import Chunks
    from nfuser.execution.chunks.axes.places import Read
    from nfuser.execution.chunks.dask.graph import Layers
    from nfuser.execution.chunks.folds import Fold
    from nfuser.execution.chunks.tasks.block import Tail

_spec: Any = Module("dask._task_spec")

SPLIT = 8
"""How many parts one task of a tree combines, at least."""
_MOST_SPLIT = 64
_SPLIT_BYTES = 1 << 12


def split_of(part_bytes: int) -> int:
    """Return how many parts one task of a tree combines: more of few numbers.

    >>> split_of(24), split_of(100), split_of(1_000_000)
    (64, 40, 8)
    """
    return min(max(SPLIT, _SPLIT_BYTES // max(part_bytes, 1)), _MOST_SPLIT)


@node
class CombiningTree:
    """How parts that layer ``source`` gives are combined along the labels ``folded``.

    ``blocks`` count the chunks of each label, ``picks`` say which results of a task are
    the parts. ``ends`` are what comes of it, with the label of each axis.
    """

    layers: Layers
    source: str
    blocks: tuple[int, ...]
    folded: tuple[int, ...]
    folds: tuple[Fold, ...]
    picks: tuple[int | None, ...]
    split: int
    ends: Mapping[TensorView, tuple[int | None, ...]]

    @property
    def kept(self) -> tuple[int, ...]:
        """The labels along which there is a tree for each chunk."""
        return tuple(k for k in range(len(self.blocks)) if k not in self.folded)

    @property
    def lengths(self) -> list[int]:
        """How many parts there are at each level, down to the one that is left."""
        found = [prod(self.blocks[k] for k in self.folded)]
        while found[-1] > self.split:
            found.append(-(-found[-1] // self.split))
        return [*found, 1]

    @property
    def tasks(self) -> int:
        """How many tasks the tree takes."""
        return sum(self.lengths[1:]) * prod(self.blocks[k] for k in self.kept)


def add_tree(name: str, tree: CombiningTree, tail: Tail | None = None) -> None:
    """Add the layer that combines parts in their order, and runs ``tail`` of them."""
    kept, folded, split = tree.kept, tree.folded, tree.split
    order = list(product(*(range(tree.blocks[k]) for k in folded)))
    last = len(tree.lengths) - 2
    tasks: dict[Any, Any] = {}

    def read(base: Sequence[int], level: int, i: int) -> Any:
        if level == 0:
            return part_key(tree.source, order[i], base, kept, folded)
        return (f"{name}-{level}", *base, i)

    def given(base: Sequence[int], level: int, group: int) -> Any:
        if level < last:
            return (f"{name}-{level + 1}", *base, group)
        places = range(len(base)) if tail is None else tail.keys
        return (name, *(0 if k is None else base[k] for k in places))

    for level, (length, following) in enumerate(pairwise(tree.lengths)):
        picks = tree.picks if level == 0 else None
        run = Combine(tree.folds, picks, tail, is_last=level == last)
        for base in product(*(range(tree.blocks[k]) for k in kept)):
            for group in range(following):
                stop = min((group + 1) * split, length) if level < last else length
                found = range(group * split, stop)
                refs = [_spec.TaskRef(read(base, level, i)) for i in found]
                key = given(base, level, group)
                tasks[key] = _spec.Task(key, run, _spec.List(*refs))
    tree.layers.add(name, tasks, tree.source)


def order_of_tail(
    tree: CombiningTree,
    reads: Sequence[Read],
    arrays: Sequence[Any],
    grid: Sequence[Chunks],
) -> tuple[int, ...] | None:
    """Return along which kept label of the tree each label of a pass lies.

    None where tasks of the pass do not read just what one task of the tree gives.
    """
    pairs = zip(reads, arrays, strict=True)
    found = {_labels_read(tree, what, array, grid) for what, array in pairs}
    if len(found) != 1 or (met := found.pop()) is None:
        return None
    by, labels = dict(met), len(grid)
    cut = [k for k, label in enumerate(tree.kept) if tree.blocks[label] > 1]
    if sorted(by) != list(range(labels)) or sorted(by.values()) != cut:
        return None
    return tuple(by[k] for k in range(labels))


def _labels_read(
    tree: CombiningTree, what: Read, array: Any, grid: Sequence[Chunks]
) -> tuple[tuple[int, int], ...] | None:
    """Return the labels of a pass, each with the kept one of the tree, if they meet."""
    if what.tensor not in tree.ends or any(m != NONE for m in what.margins):
        return None
    pairs: list[tuple[int, int]] = []
    labels = tree.ends[what.tensor]
    for along, label, chunks in zip(what.place, labels, array.chunks, strict=True):
        is_cut = label is not None and tree.blocks[label] > 1
        if along is None and not is_cut:
            continue
        if along is None or label is None or along != Along(along.label):
            return None
        if chunks != grid[along.label]:
            return None
        pairs.append((along.label, tree.kept.index(label)))
    return tuple(sorted(pairs))
