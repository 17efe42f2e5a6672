# SPDX-License-Identifier: Apache-2.0
"""Chunks that lie in memory already become part of the one task that reads them.

Dask would join the two when it optimises a call: into a graph within each task, which
is put in order whenever the task runs, and a second task that gives it its name again.
"""

# Dask has no static types that a strict checker could use.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.execution.chunks.dask.graph import Layers, Module, as_root, layer_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_blocks: Any = Module("dask.blockwise")
_graphs: Any = Module("dask.highlevelgraph")


class Chunks:
    """The chunks of array ``name``, as a layer of Dask's asks for what is no task."""

    produces_tasks = produces_keys = False

    def __init__(
        self, name: str, numblocks: tuple[int, ...], chunks: Mapping[Any, Any]
    ) -> None:
        self.name, self.numblocks, self._chunks = name, numblocks, chunks

    def get(self, index: Sequence[Any], default: Any) -> Any:
        """Return a chunk; along an axis of which tasks read all, there is a list."""
        del default
        at = (k[0] if isinstance(k, list) else k for k in index)
        return self._chunks[self.name, *at]


def joined_to_data(arrays: Sequence[Any]) -> list[Any]:
    """Return ``arrays`` in whose graphs tasks hold the chunks that they alone read.

    What several passes read stays apart: it would go to workers several times.
    """
    layers = Layers(arrays)
    read_by: dict[str, list[str]] = {name: [] for name in layers.layers}
    for reader, names in layers.dependencies.items():
        for name in names:
            read_by[name].append(reader)
    wanted = set(map(layer_of, arrays))
    is_same = True
    for name, readers in read_by.items():
        if len(readers) != 1 or name in wanted or not _is_data(layers.layers[name]):
            continue
        (reader,) = readers
        made = _with_chunks(layers.layers[reader], name, layers.layers[name])
        if made is not None:
            layers.add(reader, made, *layers.dependencies[reader] - {name})
            is_same = False
    if is_same:
        return list(arrays)
    return [layers.array(layer_of(a), a.chunks, a.dtype) for a in arrays]


def _is_data(layer: Any) -> bool:
    """Tell whether a layer holds chunks, and no tasks."""
    return isinstance(layer, _graphs.MaterializedLayer) and all(
        type(x) is np.ndarray for x in layer.mapping.values()
    )


def _with_chunks(layer: Any, name: str, chunks: Mapping[Any, Any]) -> Any:
    """Return a layer whose tasks hold the chunks of ``name``, if each reads its own."""
    if not isinstance(layer, _blocks.Blockwise):
        return None
    numblocks = layer.numblocks.get(name)
    if numblocks is None or not prod(numblocks) == len(layer) == len(chunks):
        return None
    # Where data comes from Dask takes tasks for the roots of a graph.
    deps = {**layer.io_deps, name: Chunks(name, numblocks, chunks)}
    return as_root(layer, layer.task.func, deps)
