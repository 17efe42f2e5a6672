# SPDX-License-Identifier: Apache-2.0
"""How a GPU runs a fusion without reductions in one flat loop over packets."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from nfuser.compiler.domains.space import space_of
from nfuser.compiler.schedule.facts.layout import packed
from nfuser.compiler.schedule.facts.memory import memory_tensors, needs_wide_index
from nfuser.compiler.schedule.facts.weight import PACKET_LIMIT, limited, weight
from nfuser.compiler.schedule.heuristics.cuda import CudaPointwise
from nfuser.compiler.schedule.nest import Binding, LastTile, NestBuilder
from nfuser.compiler.schedule.pointwise.sharing import sharing

if TYPE_CHECKING:
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.scalars.scalar import LoopIndex, Scalar
    from nfuser.compiler.schedule.facts.facts import Access
    from nfuser.compiler.schedule.facts.layout import Groups, Packed
    from nfuser.compiler.schedule.nest import LoopAxis, Nest
    from nfuser.compiler.schedule.pointwise.flat_shape import FlatShape

THREADS = 256  # of a block
IN_FLIGHT = 16  # bytes of an output that a thread has under way
MOST_ITEMS = 8  # packets of a thread, where they are narrow
LEAST_IN_TURN = 8  # blocks along a row: the last of them may be nearly empty
NEAR_BLOCKS = 256  # that read memory in its order: what they share stays in the L2


def cuda_choice(fusion: Fusion, shape: FlatShape) -> CudaPointwise:
    """Widen packets as far as all accesses go, and give a thread several of them."""
    width, together = 1, frozenset[Any]()
    if shape.groups:
        shape = _in_packets(shape)
        lanes, found, facts = shape.group(-1), shape.found, shape.facts
        width = limited(shape.width, fusion)
        together = packed(lanes, found, width, facts, memory_tensors(fusion))
    items, along = _items(fusion, shape, width, together)
    # Blocks inside the shared group: one stretch of a row, in pieces that stay near.
    blocks = -(-shape.count(shape.groups[along + 1 :]) // (width * THREADS))
    pieces = -(-blocks // NEAR_BLOCKS)
    rows = shape.count(shape.groups[: max(along, 0)]) * pieces
    return CudaPointwise(
        shape.groups,
        shape.patterns,
        width,
        THREADS,
        needs_wide_index(fusion, shape.facts),
        together,
        items,
        along,
        in_turn=along >= 0
        and blocks >= LEAST_IN_TURN
        and rows <= shape.facts.target.most_rows,
        # Pieces come out even, so that the last of them has hardly a block too many.
        near=-(-blocks // max(pieces, 1)),
        from_last=shape.facts.target.from_last,
    )


def _in_packets(shape: FlatShape) -> FlatShape:
    """Join the innermost groups where more is moved in packets then.

    Rows that no packet divides lie after each other in most arrays, and these are
    divided. What is repeated, as weights, goes element by element then, and what lies
    elsewhere: beside narrow packets that costs less.
    """
    for largest in (16, 8):
        joined = replace(shape, largest=largest)
        candidates = [joined := joined.joined() for _ in shape.groups[1:]]
        best = max(candidates, key=attrgetter("speed"), default=shape)
        if best.speed > shape.speed:
            return best
    return shape


def _items(
    fusion: Fusion, shape: FlatShape, width: int, together: Packed
) -> tuple[int, int]:
    """Return how many packets a thread takes, and the group that they lie along.

    That is -1 where they are just neighbours, as many as keep memory busy.
    """
    items = _in_flight(fusion, width)
    several = _in_flight(fusion, 1) if width == 1 else 0
    shared, along = sharing(fusion, shape.groups, shape.found, shape.facts, several)
    is_better = items == 1 or (width == 1 and shared >= items)
    if not is_better or shared * width * weight(fusion) > PACKET_LIMIT:
        return items, -1
    beside = _beside(fusion, shape, together) if width > 1 else []
    if beside:
        # Elements of another row miss the lines that the ones before have brought.
        elements, size = shape.count(shape.groups), shape.facts.bytes_of
        is_repeated = any(size(a) < elements * a.tensor.dtype.itemsize for a in beside)
        return (shared if is_repeated else 1), -1
    return shared, along


def _beside(fusion: Fusion, shape: FlatShape, together: Packed) -> list[Access]:
    """Return the accesses that go element by element beside packets."""
    tensors = memory_tensors(fusion)
    return [
        a
        for a in shape.found
        if a.loops and (tensors.index(a.tensor), a.point) not in together
    ]


def _in_flight(fusion: Fusion, width: int) -> int:
    """Return how many packets a thread moves at once, so that memory stays busy."""
    items = MOST_ITEMS
    size = max(t.dtype.itemsize for t in fusion.outputs)
    while items > 1 and (
        items * width * size > IN_FLIGHT
        or items * width * weight(fusion) > PACKET_LIMIT
    ):
        items //= 2
    return items


def cuda_nest(loops: tuple[LoopIndex, ...], heuristic: CudaPointwise) -> Nest:
    """All groups over blocks and threads, each with its packets."""
    builder = NestBuilder(loops, ())
    axes = builder.merged(heuristic.groups) or [builder.one()]
    packet = None
    if heuristic.width > 1:
        axes[-1], packet = builder.split(axes[-1], heuristic.width, LastTile.EXACT)
    if heuristic.shared >= 0:
        thread = _bind_shared(builder, axes, heuristic)
    elif heuristic.items > 1:
        thread = _bind_neighbours(builder, axes, heuristic)
    else:
        thread = _bind_blocks(builder, axes, heuristic)
    builder.bind(thread, Binding.THREAD_X)
    if packet is not None:
        builder.bind(packet, Binding.PACKET)
    return builder.freeze()


def _bind_shared(
    builder: NestBuilder, axes: list[LoopAxis], heuristic: CudaPointwise
) -> LoopAxis:
    """Let the items of a thread lie along the shared group; return the threads."""
    group = heuristic.shared
    axes[group], item = builder.split(axes[group], heuristic.items, LastTile.EXACT)
    if heuristic.in_turn:
        inside = builder.merge(axes[group + 1 :])
        share = heuristic.near_knob * heuristic.threads
        piece, part = builder.split(inside, share, LastTile.GUARD)
        near, thread = builder.split(part, heuristic.threads, LastTile.EXACT)
        block = builder.merge([axes[group], near])
        builder.bind(builder.merge([*axes[:group], piece]), Binding.BLOCK_Y)
        builder.bind(block, Binding.BLOCK_X)
    else:
        thread = _bind_blocks(builder, axes, heuristic)
    builder.bind(item, Binding.UNROLLED)
    return thread


def _bind_neighbours(
    builder: NestBuilder, axes: list[LoopAxis], heuristic: CudaPointwise
) -> LoopAxis:
    """Let the items of a thread follow each other; return the threads.

    What lies beyond the end is read again and not stored: no branch keeps the loads of
    several packets from being under way at once.
    """
    share = heuristic.items * heuristic.threads
    block, part = builder.split(builder.merge(axes), share, LastTile.CLAMP)
    item, thread = builder.split(part, heuristic.threads, LastTile.EXACT)
    builder.bind_blocks(block, from_last=heuristic.from_last)
    builder.bind(item, Binding.UNROLLED)
    return thread


def _bind_blocks(
    builder: NestBuilder, axes: list[LoopAxis], heuristic: CudaPointwise
) -> LoopAxis:
    flat = builder.merge(axes)
    block, thread = builder.split(flat, heuristic.threads, LastTile.GUARD)
    builder.bind_blocks(block, from_last=heuristic.from_last)
    return thread


def turns(fusion: Fusion, heuristic: CudaPointwise) -> object:
    """Return what blocks of ``fusion`` that take turns run through before others do.

    That is None where they do not take turns.
    """
    if not heuristic.in_turn:
        return None
    loops, groups = space_of(fusion).kept, heuristic.groups

    def extents(chosen: Groups) -> tuple[tuple[Scalar, ...], ...]:
        return tuple(tuple(loops[k].extent for k in group) for group in chosen)

    around, inside = groups[: heuristic.shared], groups[heuristic.shared + 1 :]
    return extents(around), extents(inside), heuristic.width
