# SPDX-License-Identifier: Apache-2.0
"""One kernel of several parts: each on blocks of its own, or in turns on a CPU."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, TypeAlias

from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.functions import less, maximum, minimum
from nfuser.compiler.lower.kernel.kernel_ir import (
    BOUND_NAMES,
    Array,
    Buffer,
    For,
    Kernel,
    LaunchShape,
    LoopCounter,
    Memory,
    Stmt,
    Var,
    guarded,
)
from nfuser.compiler.schedule.facts.memory import memory_tensors
from nfuser.compiler.schedule.nest import Binding, Leaf, Nest
from nfuser.compiler.schedule.scheduled import Tile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nfuser.compiler.dtypes import DType
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.schedule.scheduled import Joined, Scheduled

RESIDENT = 1280  # threads of a multiprocessor: parts take no more registers than one
MOST_STRETCHES = 4096  # of a CPU's range: rows may be short, and to find them divides
_BLOCKS = (Binding.BLOCK_X, Binding.PARALLEL)
BoundIndices: TypeAlias = "tuple[tuple[sc.LoopIndex, str], ...]"


@dataclass(frozen=True, slots=True)
class Common:
    """What the parts of a kernel under construction take from its caller alike."""

    loops: LoopCounter
    bound: BoundIndices = ()
    sources: dict[TensorView, Buffer] = field(default_factory=dict)  # pyright: ignore[reportUnknownVariableType]
    parameters: dict[TensorView, Var] = field(default_factory=dict)  # pyright: ignore[reportUnknownVariableType]
    integers: dict[tuple[Scalar, DType], Var] = field(default_factory=dict)  # pyright: ignore[reportUnknownVariableType]
    columns: dict[TensorView, Array] = field(default_factory=dict)  # pyright: ignore[reportUnknownVariableType]

    def source(self, tensor: TensorView) -> Buffer:
        """Return the buffer from which ``tensor`` is read."""
        return self.sources.setdefault(tensor, Buffer(tensor.dtype, tensor, "in"))

    def column(self, whole: TensorView, room: int) -> Array:
        """Return the array in which a thread has what links pass on for its rows."""
        made = Array(whole.dtype, room, Memory.LOCAL)
        return self.columns.setdefault(whole, made)

    def parameter(self, tensor: TensorView) -> Var:
        """Return the variable that brings ``tensor``, which is passed by value."""
        return self.parameters.setdefault(tensor, Var(tensor.dtype.compute, tensor))


@node
class _Place:
    """Which blocks of the grid are a part's: its ``index`` there, where ``holds``.

    Where there are ``turns``, a loop and how often it runs, a block is several of it.
    """

    index: Mapping[Scalar, Scalar]
    holds: tuple[Scalar, ...] = ()
    turns: tuple[sc.LoopIndex, Scalar] | None = None


@node
class Grid:
    """The blocks of all parts: places in ``block``, the same ones in each ``row``."""

    block: sc.LoopIndex
    row: sc.LoopIndex | None
    places: tuple[_Place, ...]


def side_by_side(scheduled: Joined, grid: Grid) -> list[Scheduled]:
    """Return the parts, each counting its blocks as its place in the grid says."""
    thread = scheduled.parts[0].nest.leaf(Binding.THREAD_X)
    placed: list[Scheduled] = []
    for part, place in zip(scheduled.parts, grid.places, strict=True):
        index = dict(place.index)
        if (leaf := part.nest.leaf(Binding.THREAD_X)) and thread:
            index[leaf.index] = thread.index
        placed.append(_placed(part, index))
    return placed


def grid_of(scheduled: Joined, loops: LoopCounter) -> Grid:
    """Return the grid: parts beside each other, in the rows of the first that has any.

    Each row is run through before the next. A part that has other rows, or none, puts
    an even share of its blocks into each.
    """
    nests = [part.nest for part in scheduled.parts]
    if not scheduled.target.has_blocks:
        return _in_turns([_blocks(nest) for nest in nests], loops)
    downs = [down for nest in nests if (down := nest.leaf(Binding.BLOCK_Y))]
    row = loops.make(downs[0].extent) if downs else None
    ends: list[Scalar] = [sc.const(0)]
    for nest in nests:
        count = _blocks(nest).extent if _fits(nest, row) else _share(nest, row)
        ends.append(ends[-1] + count)
    block = loops.make(ends[-1])
    places: list[_Place] = []
    for nest, begin, end in zip(nests, ends, ends[1:], strict=False):
        # Indices are natural numbers, also on the blocks of others.
        column = maximum(block - begin, 0) if places else block
        holds = (less(begin - 1, block), less(block, end))[0 if places else 1 :]
        across, down = _blocks(nest), nest.leaf(Binding.BLOCK_Y)
        index: dict[Scalar, Scalar] = {across.index: column}
        if row is None or _fits(nest, row):
            if row is not None and down:
                index[down.index] = row
            places.append(_Place(index, holds))
            continue
        number = row * _share(nest, row) + column
        index[across.index] = number
        if down:
            index[across.index] = number % across.extent
            index[down.index] = number // across.extent
        places.append(_Place(index, (*holds, less(number, _number(nest)))))
    return Grid(block, row, tuple(places))


def _in_turns(ranges: Sequence[Leaf], loops: LoopCounter) -> Grid:
    """Return one range for all parts, each of which has its share of every stretch.

    A thread that takes a stretch finds in its cache what the parts before have read or
    left at the same place, and each stretch is as long as any other.
    """
    extents = list(dict.fromkeys(leaf.extent for leaf in ranges))
    if len(extents) == 1:
        step = loops.make(extents[0])
        alike = tuple(_Place({leaf.index: step}) for leaf in ranges)
        return Grid(step, None, alike)
    stretches = minimum(reduce(maximum, extents), MOST_STRETCHES)
    step = loops.make(stretches)
    places: list[_Place] = []
    for leaf in ranges:
        begin, end = (x * leaf.extent // stretches for x in (step, step + 1))
        turn = loops.make(leaf.extent)
        places.append(_Place({leaf.index: begin + turn}, (), (turn, end - begin)))
    return Grid(step, None, tuple(places))


def in_turn(kernel: Kernel, turns: tuple[sc.LoopIndex, Scalar] | None) -> Kernel:
    """Return ``kernel`` with the loop around it in which its part has its turn."""
    return replace(kernel, body=(For(*turns, kernel.body),)) if turns else kernel


def joined(
    scheduled: Joined, grid: Grid, kernels: Sequence[Kernel], common: Common
) -> Kernel:
    """Return the kernel whose blocks run the parts that they belong to.

    Its caller passes every number, also one that no part reads.
    """
    body: list[Stmt] = []
    for place, kernel in zip(grid.places, kernels, strict=True):
        own = kernel.body
        for condition in reversed(place.holds):
            own = guarded(condition, own)
        body += own
    first = kernels[0]
    launch = first.launch
    return Kernel(
        first.name,
        scheduled,
        _buffers(scheduled, kernels),
        tuple(dict.fromkeys(array for k in kernels for array in k.arrays)),
        tuple(
            common.parameter(a.result) for a in scheduled.fusion.arguments if a.by_value
        ),
        tuple(dict.fromkeys(x for k in kernels for x in k.integers)),
        (),
        common.bound,
        tuple(body),
        (),
        LaunchShape(
            (grid.block.extent, grid.row.extent if grid.row else sc.const(1)),
            launch.block,
            launch.threads,
            RESIDENT // launch.threads,
        ),
        scheduled.is_wide,
        max(kernel.loops for kernel in kernels),
    )


def bound_indices(scheduled: Joined, grid: Grid) -> BoundIndices:
    """Return the indices that the hardware gives all parts, by their names."""
    nest = scheduled.parts[0].nest
    bound = [(grid.block, BOUND_NAMES[_blocks(nest).binding])]
    if grid.row is not None:
        bound.append((grid.row, BOUND_NAMES[Binding.BLOCK_Y]))
    names = {name for _, name in bound}
    own = (x for x in indices_bound(nest) if x[1] not in names)
    return (*bound, *own)


def indices_bound(nest: Nest) -> BoundIndices:
    """Return the indices that the hardware gives for the leaves of ``nest``."""
    return tuple(
        (leaf.index, BOUND_NAMES[leaf.binding])
        for leaf in nest.leaves
        if leaf.binding.is_bound and leaf.extent is not sc.const(1)
    )


def _buffers(scheduled: Joined, kernels: Sequence[Kernel]) -> tuple[Buffer, ...]:
    """Return the buffers of all parts in the order of the whole fusion's tensors.

    An argument that no part reads has a buffer all the same. That of rows is that of
    what they are rows of.
    """
    wholes: dict[TensorView | None, TensorView] = {}
    for part in scheduled.parts:
        wholes.update(() if part.turns is None else part.turns.wholes.items())
    found: dict[TensorView | None, list[Buffer]] = {}
    for buffer in dict.fromkeys(b for k in kernels for b in k.buffers):
        found.setdefault(wholes.get(buffer.tensor, buffer.tensor), []).append(buffer)
    return tuple(
        found[t].pop(0) if t in found else Buffer(t.dtype, t, "in")
        for t in memory_tensors(scheduled.fusion)
    )


def _fits(nest: Nest, row: sc.LoopIndex | None) -> bool:
    """Tell whether a part has the rows of the grid, or no part has any."""
    down = nest.leaf(Binding.BLOCK_Y)
    return row is None or (down is not None and down.extent is row.extent)


def _number(nest: Nest) -> Scalar:
    """Return how many blocks a part has."""
    down = nest.leaf(Binding.BLOCK_Y)
    return _blocks(nest).extent * (down.extent if down else 1)


def _share(nest: Nest, row: sc.LoopIndex | None) -> Scalar:
    """Return how many blocks of a part go into each row of the grid, at most."""
    rows = row.extent if row is not None else sc.const(1)
    return (_number(nest) + (rows - 1)) // rows


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
