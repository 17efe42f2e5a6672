# SPDX-License-Identifier: Apache-2.0
"""One kernel of several parts, each on blocks of its own."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from nfuser.ir import scalar as sc
from nfuser.ir import scalar_walk
from nfuser.lower.kernel_ir import (
    BOUND_NAMES,
    Buffer,
    Kernel,
    Launch,
    Stmt,
    Var,
    guarded,
)
from nfuser.lower.parameters import host_scalars
from nfuser.schedule.memory import memory_tensors
from nfuser.schedule.nest import Binding, Leaf, Nest
from nfuser.schedule.scheduled import Tile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nfuser.dtypes import DType
    from nfuser.ir.scalar import Scalar
    from nfuser.ir.tensor import TensorView
    from nfuser.schedule.scheduled import Joined, Scheduled

_BLOCK = 3000  # number of the loop made here; all others are smaller
RESIDENT = 1280  # threads of a multiprocessor: parts take no more registers than one
_BLOCKS = (Binding.BLOCK_X, Binding.PARALLEL)


@dataclass(slots=True)
class Common:
    """What the parts of a kernel under construction take from its caller alike."""

    sources: dict[TensorView, Buffer] = field(default_factory=dict)  # pyright: ignore[reportUnknownVariableType]
    parameters: dict[TensorView, Var] = field(default_factory=dict)  # pyright: ignore[reportUnknownVariableType]
    integers: dict[tuple[Scalar, DType], Var] = field(default_factory=dict)  # pyright: ignore[reportUnknownVariableType]

    def source(self, tensor: TensorView) -> Buffer:
        """Return the buffer from which ``tensor`` is read."""
        return self.sources.setdefault(tensor, Buffer(tensor.dtype, tensor, "in"))

    def parameter(self, tensor: TensorView) -> Var:
        """Return the variable that brings ``tensor``, which is passed by value."""
        return self.parameters.setdefault(tensor, Var(tensor.dtype.compute, tensor))


def side_by_side(scheduled: Joined) -> list[Scheduled]:
    """Return the parts, each counting its blocks from where those before it end."""
    first = scheduled.parts[0]
    block = _all_blocks(scheduled)
    thread = first.nest.leaf(Binding.THREAD_X)
    placed: list[Scheduled] = []
    begin: Scalar = sc.const(0)
    for part in scheduled.parts:
        own = _blocks(part.nest)
        # Indices are natural numbers, also on the blocks of others.
        own_block = sc.maximum(block - begin, 0) if placed else block
        index: dict[Scalar, Scalar] = {own.index: own_block}
        if (leaf := part.nest.leaf(Binding.THREAD_X)) and thread:
            index[leaf.index] = thread.index
        placed.append(_placed(part, index))
        begin = begin + own.extent
    return placed


def joined(scheduled: Joined, kernels: Sequence[Kernel], common: Common) -> Kernel:
    """Return the kernel whose first blocks run the first part, and so on.

    Its caller passes every number, also one that no part reads.
    """
    block = _all_blocks(scheduled)
    body: list[Stmt] = []
    begin: Scalar = sc.const(0)
    for part, kernel in zip(scheduled.parts, kernels, strict=True):
        end = begin + _blocks(part.nest).extent
        below = guarded(sc.less(block, end), kernel.body)
        body += guarded(sc.less(begin - 1, block), below) if body else below
        begin = end
    first = kernels[0]
    is_cuda = scheduled.target.kind == "cuda"
    launch, name = first.launch, BOUND_NAMES[_blocks(scheduled.parts[0].nest).binding]
    return Kernel(
        first.name,
        scheduled,
        _buffers(scheduled, kernels),
        tuple(
            common.parameter(a.result) for a in scheduled.fusion.arguments if a.by_value
        ),
        tuple(dict.fromkeys(x for k in kernels for x in k.integers)),
        host_scalars(body, prepare_divisions=is_cuda and not scheduled.is_wide),
        ((block, name), *(b for b in first.bound if b[1] != name)),
        tuple(body),
        (),
        Launch(
            (begin, sc.const(1)),
            launch.block,
            launch.threads,
            RESIDENT // launch.threads,
        ),
        scheduled.is_wide,
    )


def _buffers(scheduled: Joined, kernels: Sequence[Kernel]) -> tuple[Buffer, ...]:
    """Return the buffers of all parts in the order of the whole fusion's tensors.

    An argument that no part reads has a buffer all the same.
    """
    found: dict[TensorView | None, list[Buffer]] = {}
    for buffer in dict.fromkeys(b for k in kernels for b in k.buffers):
        found.setdefault(buffer.tensor, []).append(buffer)
    return tuple(
        found[t].pop(0) if t in found else Buffer(t.dtype, t, "in")
        for t in memory_tensors(scheduled.fusion)
    )


def _all_blocks(scheduled: Joined) -> sc.LoopIndex:
    total: Scalar = sc.const(0)
    for part in scheduled.parts:
        total = total + _blocks(part.nest).extent
    return sc.loop_index(_BLOCK, total)


def _blocks(nest: Nest) -> Leaf:
    return next(leaf for leaf in nest.leaves if leaf.binding in _BLOCKS)


def _placed(part: Scheduled, index: Mapping[Scalar, Scalar]) -> Scheduled:
    """Return ``part`` with other indices in place of some of its leaves'."""

    def moved(nest: Nest) -> Nest:
        lane = nest.lane
        return replace(
            nest,
            kept=tuple(Leaf(x.index, x.binding, at(x.stop)) for x in nest.kept),
            lane=lane and Leaf(lane.index, lane.binding, at(lane.stop)),
            index_of={x: at(i) for x, i in nest.index_of.items()},
            kept_bounds=tuple(replace(b, index=at(b.index)) for b in nest.kept_bounds),
        )

    def at(x: Scalar) -> Scalar:
        return scalar_walk.substitute([x], index)[0]

    tile = part.tile
    if tile is not None:
        tile = Tile(moved(tile.nest), tile.size, at(tile.place), at(tile.other_place))
    return replace(part, nest=moved(part.nest), tile=tile)
