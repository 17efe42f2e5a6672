# SPDX-License-Identifier: Apache-2.0
"""Dask's side: arrays, layers, windows, trees. Dask is imported at its first use."""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.execution.chunks.axes.chunkings import boundaries
from nfuser.execution.chunks.tasks.block import assemble, part_of, pick

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nfuser.execution.chunks.axes.chunkings import Chunks
    from nfuser.execution.chunks.axes.places import Along, Read
    from nfuser.execution.chunks.tasks.block import Carry


class Module:
    """A module of Dask's, which is imported when something of it is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # doctest asks what is wrapped
            raise AttributeError(name)
        return getattr(import_module(self._name), name)


da: Any = Module("dask.array")
_blocks: Any = Module("dask.blockwise")
_graphs: Any = Module("dask.highlevelgraph")
_layers: Any = Module("dask.layers")
_spec: Any = Module("dask._task_spec")


class Layers:
    """A graph that grows by layers."""

    def __init__(self, arrays: Sequence[Any]) -> None:
        merged = _graphs.HighLevelGraph.merge(*(a.__dask_graph__() for a in arrays))
        self.layers = dict(merged.layers)
        self.dependencies = dict(merged.dependencies)

    def add(self, name: str, layer: Any, *read: str) -> None:
        """Add a layer that reads others."""
        self.layers[name] = layer
        self.dependencies[name] = set(read)

    def array(self, name: str, chunks: Any, dtype: Any) -> Any:
        """Return the array that layer ``name`` gives."""
        wanted, stack = set[str](), [name]
        while stack:
            if (one := stack.pop()) not in wanted:
                wanted.add(one)
                stack += self.dependencies[one]
        graph = _graphs.HighLevelGraph(
            {n: self.layers[n] for n in self.layers if n in wanted},
            {n: self.dependencies[n] for n in self.layers if n in wanted},
        )
        meta = np.empty((0,) * len(chunks), dtype)
        return da.Array(graph, name, chunks=chunks, dtype=dtype, meta=meta)


def layer_of(array: Any) -> str:
    """Return the name of the layer that gives ``array``."""
    return array.__dask_layers__()[0]


def as_root(layer: Any, run: Callable[..., Any], io_deps: Mapping[Any, Any]) -> Any:
    """Return a layer of blocks whose tasks are where data comes from, and ``run``."""
    task = layer.task
    root = _spec.Task(task.key, run, *task.args, _data_producer=True, **task.kwargs)
    return _blocks.Blockwise(
        layer.output,
        layer.output_indices,
        root,
        layer.indices,
        layer.numblocks,
        concatenate=layer.concatenate,
        new_axes=layer.new_axes,
        output_blocks=layer.output_blocks,
        annotations=layer.annotations,
        io_deps=io_deps,
    )


# -- reading -------------------------------------------------------------------


def ranges(
    size: int, along: Along | None, margin: tuple[int, int], grid: Sequence[Chunks]
) -> list[tuple[int, int]]:
    """Return from where to where each chunk of a label reads an axis."""
    if along is None:
        return [(0, size)]
    if along.each:
        return [(k, k + 1) for k in range(len(grid[along.label]))]
    edges = [e * along.times // along.over for e in boundaries(grid[along.label])]
    low, high = margin
    return [(a + low, b + high) for a, b in pairwise(edges)]


def read(array: Any, what: Read, grid: Sequence[Chunks], name: str) -> Any:
    """Return the array whose chunks are what the tasks of a stage read."""
    found = [
        ranges(n, along, margin, grid)
        for n, along, margin in zip(array.shape, what.place, what.margins, strict=True)
    ]
    chunks = tuple(tuple(b - a for a, b in axis) for axis in found)
    apart = all(b == c for axis in found for (_, b), (c, _) in pairwise(axis))
    if not apart:
        return _windows(array, found, chunks, name)
    part = tuple(slice(axis[0][0], axis[-1][1]) for axis in found)
    whole = tuple(slice(0, n) for n in array.shape)
    taken = array if part == whole else array[part]
    return taken if taken.chunks == chunks else taken.rechunk(chunks)


def _windows(
    array: Any, found: Sequence[list[tuple[int, int]]], chunks: Any, name: str
) -> Any:
    """Return an array of chunks that overlap, made of pieces of others."""
    pieces = [
        [_overlaps(edges, low, high) for low, high in axis]
        for axis, edges in zip(found, map(boundaries, array.chunks), strict=True)
    ]
    name = f"{name}-halo-{da.core.tokenize(array.name, found)}"
    tasks: dict[Any, Any] = {}
    for block in product(*(range(len(axis)) for axis in found)):
        own = [axis[k] for axis, k in zip(pieces, block, strict=True)]
        taken: list[Any] = []
        places: list[Any] = []
        for combination in product(*own):
            at = tuple(c[0] for c in combination)
            inside = tuple(slice(c[1], c[2]) for c in combination)
            places.append(tuple(slice(c[3], c[3] + c[2] - c[1]) for c in combination))
            key: tuple[Any, ...] = (array.name, *at)
            is_whole = all(
                (c[1], c[2]) == (0, sizes[c[0]])
                for c, sizes in zip(combination, array.chunks, strict=True)
            )
            if not is_whole:
                bounds = tuple(x for c in combination for x in c[1:3])
                part = (f"{name}-part", *at, *bounds)
                if part not in tasks:
                    ref = _spec.TaskRef(key)
                    tasks[part] = _spec.Task(part, part_of, ref, inside)
                key = part
            taken.append(_spec.TaskRef(key))
        shape = tuple(sizes[k] for sizes, k in zip(chunks, block, strict=True))
        key = (name, *block)
        tasks[key] = _spec.Task(key, assemble, _spec.List(*taken), places, shape)
    layers = Layers([array])
    layers.add(name, tasks, layer_of(array))
    return layers.array(name, chunks, array.dtype)


def _overlaps(edges: list[int], low: int, high: int) -> list[tuple[int, int, int, int]]:
    """Return the chunks that meet a range: which, from, to, and its place."""
    found: list[tuple[int, int, int, int]] = []
    for k, (a, b) in enumerate(pairwise(edges)):
        first, last = max(a, low), min(b, high)
        if first < last:
            found.append((k, first - a, last - a, first - low))
    return found or [(0, 0, 0, 0)]


# -- passes --------------------------------------------------------------------


def add_pass(
    layers: Layers,
    name: str,
    block: Any,
    out: Sequence[str],
    inputs: Sequence[tuple[Any, Read]],
    grid: Sequence[Chunks],
    *,
    needs_places: bool,
) -> None:
    """Add the layer in which each task runs ``block`` on what it reads.

    An axis that is not cut has one block, whichever letter it has. It has one of the
    results: Dask fuses no layer with those that its tasks read if a letter ends there.
    """
    pairs: list[Any] = []
    numblocks: dict[str, tuple[int, ...]] = {}
    whole = next(iter(out), "whole")
    for array, what in inputs:
        letters = [
            whole if along is None else f"l{along.label}" for along in what.place
        ]
        pairs += [array.name, tuple(letters)]
        numblocks[array.name] = array.numblocks
    if needs_places:
        pairs += [
            _layers.ArraySliceDep(tuple(grid)),
            tuple(f"l{k}" for k in range(len(grid))),
        ]
    one: dict[str, Any] = {letter: 1 for letter in out if letter[0] == "o"}
    cut = {along.label for _, what in inputs for along in what.place if along}
    for k, chunks in enumerate(grid):
        if k not in cut and not needs_places:  # a grid that no input has all of
            one[f"l{k}"] = tuple(chunks)
    layer = _blocks.blockwise(
        block,
        name,
        tuple(out),
        *pairs,
        numblocks=numblocks,
        concatenate=None,
        new_axes=one,
    )
    layers.add(name, layer, *{layer_of(array) for array, _ in inputs})


def add_pick(
    layers: Layers, name: str, source: str, which: int, out: Sequence[str], blocks: Any
) -> None:
    """Add the layer of one of several results; ``blocks`` counts those of a label."""
    labels = tuple(f"l{k}" for k in range(len(blocks)))
    layer = _blocks.blockwise(
        pick,
        name,
        tuple(out),
        source,
        labels,
        which,
        None,
        numblocks={source: tuple(blocks)},
        concatenate=None,
        new_axes={letter: 1 for letter in out if letter[0] == "o"},
    )
    layers.add(name, layer, source)


# -- what follows a pass -------------------------------------------------------


def part_key(
    source: str,
    at: Sequence[int],
    base: Sequence[int],
    kept: Sequence[int],
    folded: Sequence[int],
) -> tuple[Any, ...]:
    """Return the key of a part of ``source``: ``at`` along the labels ``folded``."""
    index = dict(zip(kept, base, strict=True)) | dict(zip(folded, at, strict=True))
    return (source, *(index[k] for k in range(len(index))))


def add_carries(
    layers: Layers,
    name: str,
    source: str,
    blocks: Sequence[int],
    label: int,
    run: Carry,
    axes: Sequence[int | None],
) -> None:
    """Add what comes before each chunk along ``label``; ``axes`` are labels."""
    kept = [k for k in range(len(blocks)) if k != label]
    tasks: dict[Any, Any] = {}
    for base in product(*(range(blocks[k]) for k in kept)):
        refs = [
            _spec.TaskRef(part_key(source, (i,), base, kept, (label,)))
            for i in range(blocks[label])
        ]
        row = (f"{name}-row", *base)
        tasks[row] = _spec.Task(row, run, _spec.List(*refs))
        for i in range(blocks[label]):
            index = dict(zip(kept, base, strict=True)) | {label: i}
            key = (name, *(0 if k is None else index[k] for k in axes))
            tasks[key] = _spec.Task(key, pick, _spec.TaskRef(row), i)
    layers.add(name, tasks, source)


def add_result(
    layers: Layers,
    name: str,
    source: str,
    labels: Sequence[int | None],
    kept: Sequence[int],
    blocks: Sequence[int],
    which: int | None,
) -> None:
    """Add the layer that gives one result of a tree the keys of its own axes."""
    tasks: dict[Any, Any] = {}
    for base in product(*(range(blocks[k]) for k in kept)):
        index = dict(zip(kept, base, strict=True))
        key = (name, *(0 if k is None else index[k] for k in labels))
        ref = _spec.TaskRef((source, *base))
        tasks[key] = (
            _spec.Alias(key, ref.key)
            if which is None
            else _spec.Task(key, pick, ref, which)
        )
    layers.add(name, tasks, source)
