# SPDX-License-Identifier: Apache-2.0
"""Bring together what threads and blocks have folded, always in the same order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.functions import equal, less
from nfuser.compiler.lower.cuda.cluster_boxes import ClusterBoxes
from nfuser.compiler.lower.cuda.tickets import comes_last
from nfuser.compiler.lower.folds import fold
from nfuser.compiler.lower.kernel.kernel_ir import (
    Array,
    Barrier,
    Buffer,
    Element,
    For,
    Let,
    Load,
    Memory,
    Post,
    Publish,
    Receive,
    Scratch,
    SetElement,
    Shuffle,
    Stmt,
    Store,
    Value,
    Var,
    guarded,
)
from nfuser.compiler.schedule.facts.target import WARP
from nfuser.compiler.schedule.nest import Binding
from nfuser.compiler.schedule.scheduled import Meeting, phase_knob

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.ir.expr import Reduce
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.lower.elements.values import Values

_THREADS = (Binding.THREAD_X, Binding.THREAD_Y)


class Combiner:
    """States of reductions, from their beginning to the finished row values."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self.nest = values.nest
        self.scratch: list[Scratch] = []
        self._parts: dict[Reduce, list[tuple[Buffer, Scalar]]] = {}
        self._arrays: dict[tuple[Reduce, bool], list[Array]] = {}
        self._turns: dict[tuple[Reduce, bool], int] = {}
        self._slots: dict[tuple[int, DType, int], Array] = {}
        self._has_met = False  # whether blocks have, in what is being combined
        self._is_alone = not values.scheduled.target.has_blocks
        rows = values.scheduled.rows
        meeting = rows.meeting if rows else Meeting.ALONE
        self._compensated = rows is not None and rows.compensated
        self.is_shared = meeting is Meeting.EXCHANGE
        self.phase = phase_knob() if meeting is Meeting.PHASES else None
        leaves = {leaf.binding: leaf for leaf in self.nest.leaves}
        if Binding.PARALLEL in leaves:
            leaves[Binding.BLOCK_X] = leaves[Binding.PARALLEL]
        self._sizes = {b: leaf.extent for b, leaf in leaves.items()}
        one = sc.const(1)
        self._index: dict[Binding, Scalar] = {
            b: sc.const(0) if leaf.extent is one else leaf.index
            for b, leaf in leaves.items()
        }
        folding = (x.binding for x in self.nest.reduced if x.binding in _THREADS)
        self._fold = next(folding, None)
        turns = (x for x in self.nest.kept if x.binding is Binding.SERIAL)
        self._turn = next(turns, None)
        self.boxes: ClusterBoxes | None = None  # if blocks of a row are a cluster
        if rows and rows.cluster:
            turn = self._turn.index if self._turn else sc.const(0)
            place = turn, self._index[Binding.BLOCK_Y], self.fold_index
            self.boxes = ClusterBoxes(values, rows.cluster, *place)

    @property
    def fold_index(self) -> Scalar:
        """The place of a thread among those that share a row."""
        return self._index[self._fold] if self._fold else sc.const(0)

    def _size(self, binding: Binding | None) -> Scalar:
        return sc.const(1) if binding is None else self._sizes.get(binding, sc.const(1))

    def _is_one(self, binding: Binding | None) -> bool:
        return self._size(binding) is sc.const(1)

    @property
    def _lanes(self) -> int:
        """How many rows one thread folds at once."""
        is_laned = self.nest.lane is not None and not self.nest.lane_reduces
        return self.values.lane_size if is_laned else 1

    @property
    def _lane_index(self) -> Scalar:
        return self.values.lane_index if self._lanes > 1 else sc.const(0)

    # -- states --------------------------------------------------------------

    def begin(self, reduce: Reduce) -> fold.State:
        """Declare the state of ``reduce`` and set it to that of no elements."""
        state: fold.State = []
        for dtype in fold.state_dtypes(reduce, compensated=self._compensated):
            if self.nest.lane is not None and not self.nest.lane_reduces:
                array = self.values.array(dtype, self.values.lane_size)
                state.append(Element(array, self.values.lane_index))
            else:
                state.append(Var(dtype, reduce.result))
        self._reset(reduce, state)
        return state

    def _reset(self, reduce: Reduce, state: fold.State) -> None:
        with self.values.lanes():
            zeros: list[Value] = list(fold.initial(reduce))
            # What a compensated sum has lost begins at zero like the sum.
            self.assign(state, [*zeros, *zeros][: len(state)])

    def assign(self, state: fold.State, new: list[Value]) -> None:
        """Give ``state`` its new values, where it is kept."""
        for place, value in zip(state, new, strict=True):
            if isinstance(place, Element):
                self.values.emit(SetElement(place.array, place.index, value))
            else:
                assert isinstance(place, Var)
                self.values.emit(Let(place, value))

    def join(self, reduce: Reduce, state: fold.State, other: fold.State) -> None:
        """Fold ``other`` into ``state``."""
        joined = fold.combined(
            reduce, state, other, self.values.let, reassociate=self._is_alone
        )
        self.assign(state, joined)

    def publish(self, reduce: Reduce, state: fold.State) -> None:
        """Make the result known as the value of ``reduce``'s tensor."""
        point = self.values.scheduled.space.points[reduce.result]
        self.values.row.values[(reduce.result, point)] = fold.result(reduce, state)

    # -- threads -------------------------------------------------------------

    def combine(self, states: dict[Reduce, fold.State]) -> None:
        """Bring the threads of a row together; each then holds the results."""
        if self._is_one(self._fold):
            return
        if self._fold is Binding.THREAD_X:
            self._combine_x(states)
            return
        for reduce, state in states.items():
            self._combine_y(reduce, state)

    def _shuffles(
        self, states: dict[Reduce, fold.State], lanes: Scalar, most: int = WARP
    ) -> None:
        """Fold what ``lanes`` neighbours hold, a power of two up to ``most``."""
        distance = most // 2
        while distance:
            with self.values.block() as body:
                others: dict[Reduce, list[Value]] = {
                    reduce: [self.values.let(Shuffle(s, distance)) for s in state]
                    for reduce, state in states.items()
                }
                for reduce, other in others.items():
                    self.join(reduce, states[reduce], other)
            self.values.emit_all(guarded(less(distance, lanes), tuple(body)))
            distance //= 2

    def _combine_x(self, states: dict[Reduce, fold.State]) -> None:
        """By shuffles inside a warp, then through shared memory between warps."""
        values = self.values
        threads = self._size(Binding.THREAD_X)
        with values.block() as body:
            self._shuffles(states, threads)
        values.emit_all(guarded(less(threads, WARP), tuple(body)))
        with values.block() as body:
            self._shuffles(states, sc.const(WARP))
            self._meet(states, threads)
        values.emit_all(guarded(less(WARP - 1, threads), tuple(body)))

    def _meet(self, states: dict[Reduce, fold.State], threads: Scalar) -> None:
        """Bring the warps of a row together: every warp folds what all have.

        All states pass through shared memory at one barrier. As many neighbours as
        there can be warps fold them.
        """
        most = self.values.scheduled.threads
        most = (threads.value if isinstance(threads, sc.Const) else most) // WARP
        if most <= 1:
            return
        values, warps = self.values, threads // WARP
        thread = self._index[Binding.THREAD_X]
        # Where no other barrier lies between two turns, they have halves in turn.
        halves, begin = 1, sc.const(0)
        if self.boxes is not None and self._turn:
            halves, begin = 2, self._turn.index % 2 * most
        shared = {
            r: self._shared(r, state, halves * most) for r, state in states.items()
        }
        writes = tuple(
            SetElement(array, begin + thread // WARP, own)
            for reduce, state in states.items()
            for array, own in zip(shared[reduce], state, strict=True)
        )
        fold_lanes = 1 << (most - 1).bit_length()
        place = thread % fold_lanes
        with values.block() as body:
            values.emit_all(guarded(equal(thread % WARP, 0), writes))
            values.emit(Barrier())
            for reduce, state in states.items():
                self._reset(reduce, state)
            with values.block() as reads:
                for reduce, state in states.items():
                    at = begin + place
                    self.assign(state, [Element(a, at) for a in shared[reduce]])
            values.emit_all(guarded(less(place, warps), tuple(reads)))
            self._shuffles(states, sc.const(WARP), fold_lanes)
        values.emit_all(guarded(less(WARP, threads), tuple(body)))

    def _shared(self, reduce: Reduce, state: fold.State, size: int) -> list[Array]:
        """Return an array for each value of a state; what blocks join takes it again.

        A barrier lies between the two uses: that of the ticket. Blocks that exchange
        states have two arrays in turn: each is written after the barrier between the
        writes and the reads of the other, so after the last reads of its own.
        """
        key = (reduce, self._has_met and self.is_shared)
        if key not in self._arrays:
            arrays = [self.values.array(s.dtype, size, Memory.SHARED) for s in state]
            self._arrays[key] = arrays
        return self._arrays[key]

    def _in_turn(self, reduce: Reduce, state: fold.State, size: int) -> list[Array]:
        """Return an array for each value of a state, of two sets that take turns.

        The writes to one set come after the barrier between the writes and the reads of
        the other, so after the last reads of its own. What blocks join takes the set
        that its threads took, as `_shared` has it.
        """
        key = (reduce, self._has_met and self.is_shared)
        turn = self._turns.setdefault(key, len(self._turns) % 2)
        arrays: list[Array] = []
        for value in state:
            slot = (turn, value.dtype, sum(a.dtype is value.dtype for a in arrays))
            if slot not in self._slots:
                self._slots[slot] = self.values.array(value.dtype, size, Memory.SHARED)
            arrays.append(self._slots[slot])
        return arrays

    def _combine_y(self, reduce: Reduce, state: fold.State) -> None:
        """Through shared memory, each thread a column, the rows in their order.

        Of the columns that a thread has side by side, the threads below it take their
        share: each is joined by one of them, and read by all after another barrier.
        """
        values = self.values
        rows, columns = self._size(Binding.THREAD_Y), self._size(Binding.THREAD_X)
        row = self._index[Binding.THREAD_Y]
        x = self._index.get(Binding.THREAD_X, sc.const(0))
        shared = self._in_turn(reduce, state, values.scheduled.threads * self._lanes)

        def at(lane: Scalar, row: Scalar | int) -> fold.State:
            return [Element(a, (lane * rows + row) * columns + x) for a in shared]

        with values.lanes():
            self.assign(at(self._lane_index, row), state)
        values.emit(Barrier())
        if self._lanes == 1:
            self._join_rows(reduce, state, lambda k: at(self._lane_index, k))
            return
        turn = values.loops.make(sc.const(self._lanes - 1) // rows + 1)
        lane = turn * rows + row
        with values.block() as body:
            joined: fold.State = [Var(s.dtype, reduce.result) for s in state]
            self._join_rows(reduce, joined, lambda k: at(lane, k))
            self.assign(at(lane, 0), joined)
        own = guarded(less(lane, self._lanes), tuple(body))
        values.emit(For(turn, turn.extent, own))
        values.emit(Barrier())
        with values.lanes():
            self.assign(state, at(self._lane_index, 0))

    def _join_rows(
        self,
        reduce: Reduce,
        state: fold.State,
        at: Callable[[Scalar | int], fold.State],
    ) -> None:
        """Let ``state`` be what is ``at`` all rows, joined in their order."""
        self.assign(state, at(0))
        step = self.values.loops.make(self._size(Binding.THREAD_Y) - 1)
        with self.values.block() as body:
            self.join(reduce, state, at(step + 1))
        self.values.emit(For(step, step.extent, tuple(body)))

    # -- blocks --------------------------------------------------------------

    def finish(self, states: dict[Reduce, fold.State]) -> Value:
        """Store what this block has folded; return whether it is the last to do so.

        In the last block, ``states`` then hold what all blocks of the row have folded,
        joined in the order of blocks, not of arrival: see ``join_parts``.
        """
        self.share_parts(states)
        if not self._is_alone:  # who takes a ticket alone publishes with it
            self.values.emit(Publish())
            self.values.emit(Barrier())
        return self._is_last()

    def exchange(
        self, states: dict[Reduce, fold.State], meanwhile: tuple[Stmt, ...] = ()
    ) -> None:
        """Let ``states`` hold what all blocks of the row have folded, in each block.

        The words travel in boxes that are filled once in a launch: who finds one full
        has its contents, with no fence, and none is emptied that is still to be read.
        Blocks do ``meanwhile`` what they need not wait for.
        """
        if self.boxes is not None:
            received = self.boxes.post(states)
            self.values.emit_all(meanwhile)
            for reduce, values in received.items():
                self.assign(states[reduce], [self.values.let(x) for x in values])
            self._shuffles(states, sc.const(WARP), self.boxes.blocks)
            return
        self.share_parts(states)
        self.values.emit_all(meanwhile)
        for reduce, state in states.items():
            self.join_parts(reduce, state)

    def share_parts(self, states: dict[Reduce, fold.State]) -> None:
        """Store what this block has folded where all find it."""
        values = self.values
        for reduce, state in states.items():
            parts = self._parts.setdefault(reduce, [])
            for own in state:
                parts.append(self._part_place(own.dtype))
        with values.block() as stores, values.lanes():
            for reduce, state in states.items():
                at = self._part(self._index[Binding.BLOCK_Y])
                put = Post if self.is_shared else Store
                for (buffer, first), own in zip(
                    self._parts[reduce], state, strict=True
                ):
                    values.emit(put(buffer, first + at, own))
        values.emit_all(self._if_first_of_row(tuple(stores)))

    def _part_place(self, dtype: DType) -> tuple[Buffer, Scalar]:
        """Return memory for one value of the state of every block of every row.

        Boxes of all values lie in one buffer, which is emptied at once. A box holds 32
        bits and says whether it is full: each value has two of them.
        """
        size = self._rows() * self._splits()
        if not self.is_shared:
            self.scratch.append(Scratch(Buffer(dtype, None, "partials"), size))
            return self.scratch[-1].buffer, sc.const(0)
        before = sum(len(parts) for parts in self._parts.values())
        boxes = self.scratch.pop() if self.scratch else None
        buffer = boxes.buffer if boxes else Buffer(DType.U64, None, "boxes")
        self.scratch.append(Scratch(buffer, size * (2 * before + 2)))
        return buffer, size * before * (2 if dtype.itemsize < 8 else 1)

    def _rows(self) -> Scalar:
        rows = self._sizes[Binding.BLOCK_X] * self._lanes
        if self._turn is not None:
            rows = rows * self._turn.extent
        for binding in _THREADS:
            if binding is not self._fold:
                rows = rows * self._size(binding)
        return rows

    def _splits(self) -> Scalar:
        return self._size(Binding.BLOCK_Y)

    def _part(self, split: Scalar) -> Scalar:
        row = self._index[Binding.BLOCK_X]
        if self._turn is not None:
            row = row * self._turn.extent + self._turn.index
        for binding in _THREADS:
            if binding is not self._fold and binding in self._index:
                row = row * self._size(binding) + self._index[binding]
        if self._is_alone:  # lanes are a vector, and have no parts in between
            return (row * self._splits() + split) * self._lanes + self._lane_index
        row = row * self._lanes + self._lane_index
        return row * self._splits() + split

    def _is_last(self) -> Value:
        tickets = Buffer(DType.U32, None, "tickets")
        self.scratch.append(Scratch(tickets, self._sizes[Binding.BLOCK_X]))
        several = [self._index[b] for b in _THREADS if not self._is_one(b)]
        place, alone = (tickets, self._index[Binding.BLOCK_X]), self._is_alone
        return comes_last(self.values, place, self._splits(), several, alone=alone)

    def join_parts(self, reduce: Reduce, state: fold.State) -> None:
        """Fold the parts of all blocks into ``state``; threads share the work."""
        values = self.values
        threads, splits = self._size(self._fold), self._splits()
        self._reset(reduce, state)
        steps = (splits + (threads - 1)) // threads
        step = values.loops.make(steps)
        split = step * threads + self.fold_index
        with values.block() as body, values.lanes():
            at = self._part(split)
            parts = zip(self._parts[reduce], state, strict=True)
            other = [
                values.let(self._part_value(buffer, first + at, own.dtype))
                for (buffer, first), own in parts
            ]
            self.join(reduce, state, list(other))
        inner = guarded(less(split, splits), tuple(body))
        values.emit(For(step, step.extent, inner))
        self._has_met = True
        self.combine({reduce: state})
        self._has_met = False

    def _part_value(self, buffer: Buffer, at: Scalar, dtype: DType) -> Value:
        if self.is_shared:
            return Receive(buffer, at, dtype)
        # What an earlier launch has stored stays as it is.
        return Load(buffer, at, volatile=self.phase is None)

    def _if_first_of_row(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return guarded(equal(self.fold_index, 0), body)

    def for_one_thread(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Let the first thread of each real row run ``body``."""
        if not body:
            return ()
        if not self._is_one(self._fold):
            body = self._if_first_of_row(body)
        if self.is_shared or self.phase is not None:
            body = guarded(equal(self._index[Binding.BLOCK_Y], 0), body)
        return self.for_real_rows(body)

    def for_real_rows(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Keep threads beyond the last row, which repeat it, from storing."""
        if not body:
            return ()
        for bound in self.nest.kept_bounds:
            if bound.is_clamped:
                body = guarded(less(bound.index, bound.extent), body)
        return body
