# SPDX-License-Identifier: Apache-2.0
"""From a scheduled fusion to kernel IR, before any pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.functions import less
from nfuser.compiler.lower.cpu.memory.staged import stage_columns, stage_tile
from nfuser.compiler.lower.cuda.async_copy import (
    Prefetch,
    dealt,
    in_turn,
    land_rows,
    lies_across,
    prefetch,
)
from nfuser.compiler.lower.cuda.combine import Combiner
from nfuser.compiler.lower.cuda.stage import Stager
from nfuser.compiler.lower.elements.in_bounds import in_bounds
from nfuser.compiler.lower.elements.output_stores import Stores
from nfuser.compiler.lower.elements.values import Values
from nfuser.compiler.lower.folds.across import Across
from nfuser.compiler.lower.folds.launch_phases import in_phase, next_phase
from nfuser.compiler.lower.folds.persistent import forget
from nfuser.compiler.lower.folds.scan_steps import lower_scans
from nfuser.compiler.lower.join import Common, indices_bound
from nfuser.compiler.lower.kernel.kernel_ir import (
    AwaitCopies,
    Buffer,
    For,
    If,
    Kernel,
    LoopCounter,
    Stmt,
    guarded,
    kernel_name,
)
from nfuser.compiler.lower.kernel.loop_edits import changed
from nfuser.compiler.lower.launch import launch_of
from nfuser.compiler.lower.loops.sweep import lower_turns
from nfuser.compiler.lower.row_passes import RowSteps
from nfuser.compiler.schedule.facts.memory import memory_tensors
from nfuser.compiler.schedule.nest import Binding
from nfuser.compiler.schedule.placement.placement import Route
from nfuser.compiler.schedule.placement.row_passes import RowPasses
from nfuser.compiler.schedule.scheduled import Meeting, Scheduled

if TYPE_CHECKING:
    from nfuser.compiler.ir.expr import Reduce
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.lower.folds import fold
    from nfuser.compiler.schedule.nest import Leaf
    from nfuser.compiler.schedule.scheduled import RowFolding, SharedPart


def build(scheduled: Scheduled, common: Common | None = None) -> Kernel:
    """Return a kernel that runs ``scheduled``, as it is written before any pass.

    A part of a kernel has what is ``common`` to all of them.
    """
    return _Builder(
        scheduled, common or Common(LoopCounter(scheduled.first_loop))
    ).kernel()


class _Builder:
    def __init__(self, scheduled: Scheduled, common: Common) -> None:
        self.common = common
        self.scheduled = scheduled
        self.fusion, self.space = scheduled.fusion, scheduled.space
        self.nest = scheduled.nest
        self.values = Values(scheduled, common.loops)
        self.values.integers = self.common.integers
        self.outputs: dict[TensorView, Buffer] = {}
        self.buffers = self._declare_buffers()
        self.combiner = Combiner(self.values)
        self.stager = Stager(self.values)
        self.passes = RowPasses(self.fusion, self.space)
        self.levels = self.passes.folds
        self.across = Across(self.values)
        self.out = Stores(
            self.values, self.buffers, self.passes, self.combiner, self.stager
        )
        self.tiles = RowSteps(self.values, self.combiner, self.out, self.across)
        self.rest: RowSteps | None = None  # of rows between whose ends packets lie
        self.before: list[Stmt] = []  # what precedes the rows that a block takes
        self.behind: tuple[Stmt, ...] = ()  # what follows them
        self.ahead: tuple[Stmt, ...] = ()  # copies of the next
        self.meanwhile: list[tuple[Stmt, ...]] = []  # those of them in each meeting
        self.shared_bytes = 0
        self.is_in_turn = False  # whether rows are copied ahead to two places
        self.meeting = 0  # index of the most recent barrier among the statements

    def _declare_buffers(self) -> list[Buffer]:
        inputs = {a.result for a in self.fusion.arguments}
        declared: list[Buffer] = []
        for argument in self.fusion.arguments:
            tensor = argument.result
            if argument.by_value:
                self.values.parameters[tensor] = self.common.parameter(tensor)
        shared = self.scheduled.shared
        for tensor in memory_tensors(self.fusion):
            if tensor in shared:
                declared += self._declare_shared(tensor, shared[tensor])
            if tensor in shared and tensor in inputs:
                continue
            if tensor in inputs:
                buffer = self.common.source(tensor)
                self.values.buffers[tensor] = buffer
            else:
                buffer = Buffer(tensor.dtype, tensor, "out")
                self.outputs[tensor] = buffer
            declared.append(buffer)
        return declared

    def _declare_shared(self, tensor: TensorView, shared: SharedPart) -> list[Buffer]:
        """Find ``tensor`` in the array of which it is a part, whoever writes that."""
        if shared.room is None:
            buffer = self.common.source(shared.whole)
            self.values.buffers[tensor] = buffer
            return [buffer]
        column = self.common.column(shared.whole, shared.room)
        self.values.columns[tensor] = column
        if column not in self.values.arrays:
            self.values.arrays.append(column)
        return []

    def kernel(self) -> Kernel:
        if self.fusion.scans:
            lower_scans(self.values, self.out)
        elif self.scheduled.turns is not None:
            lower_turns(self.values, self.scheduled.turns, self.out.store)
        elif not self.out.has_rows:
            self.before.extend(stage_tile(self.values))
            self.out.store_rows()
            self._stmts[:] = self.tiles.with_lanes(self._stmts, {}, [])
        else:
            self._reduce()
        body: tuple[Stmt, ...] = tuple(self.values.row.stmts)
        is_flat = not (self.out.has_rows or self.fusion.scans)
        items = self.nest.leaf(Binding.UNROLLED) if is_flat else None
        if items is not None:
            once = items.extent is sc.const(1)
            body = in_bounds(self.nest, body, items, inside=True)
            body = body if once else (For(items.index, items.extent, body),)
            body = (*self.stager.fill(), *body, *self.stager.drain(self.out.slots()))
        elif is_flat:
            rows = self.nest.leaf(Binding.SERIAL)
            body = body if rows is None else (For(rows.index, rows.stop, body),)
            body = (*self.before, *body)
        if is_flat:
            body = in_bounds(self.nest, body, items, inside=False)
        if turn := self._turn():
            body = (*self.before, For(turn.index, turn.stop, body), *self.behind)
        scratch = self.combiner.scratch
        return Kernel(
            kernel_name(self.fusion.name),
            self.scheduled,
            (*self.buffers, *(s.buffer for s in scratch)),
            tuple(self.values.arrays),
            tuple(self.values.parameters.values()),
            tuple((var, x) for (x, _), var in self.values.integers.items()),
            (),
            self.common.bound or indices_bound(self.nest),
            body,
            tuple(scratch),
            launch_of(self.scheduled, self.combiner, self.levels, self.shared_bytes),
            self.scheduled.is_wide,
            self.values.loops.first,
        )

    def _reduce(self) -> None:
        values, rows = self.values, self.rows
        copies = stage_columns(values, rows.room)
        self.before.extend(self.tiles.in_steps(copies) if copies else ())
        self.shared_bytes = land_rows(values)
        if not self.shared_bytes:
            values.keep_placed(rows.room)
            self.shared_bytes = self.across.shared_bytes
        self.rest = self.tiles.of_rest()
        turn = self._turn()
        if turn and (loads := in_turn(values, turn)):
            self._begin_in_turn(loads)
        if self.combiner.is_shared:
            forget(values)
        if self.across.is_in_memory:
            zeros = self.across.stored(self.out.slots(), self.out.write)
            self.before.extend(self.tiles.in_steps(zeros))
        self.before.extend(self.across.cleared())
        for level in range(self.levels):
            self._fold_level(level)
        if self.combiner.boxes is not None:
            self.before[:0] = self.combiner.boxes.emptied()
        values.emit_all(self.ahead)
        if rows.meeting is not Meeting.LAST:
            self._tile(self.levels, {})
            values.emit_all(() if self.levels else self.ahead)
            self.out.store_rows()
        if self.across.sums:
            self._end_across()

    def _end_across(self) -> None:
        """Store the sums that registers hold; let threads of a row end it together."""
        across = self.across
        if not across.is_in_memory:
            self.behind = self.tiles.in_steps(
                across.stored(self.out.slots(), self.out.write)
            )
        self.values.emit_all(across.ended(self.levels))

    def _fold_level(self, level: int) -> None:
        combiner = self.combiner
        reduces = self.passes.reduces(level)
        states = {r: combiner.begin(r) for r in reduces}
        self._tile(level, states)
        if not combiner.is_shared:
            self.values.emit_all(self.ahead)
            self.ahead = ()
        if combiner.phase is not None:
            next_phase(self.values, combiner, level, states)
            return
        self.meeting = len(self.values.row.stmts)
        combiner.combine(states)
        if combiner.is_shared:
            meanwhile = self.meanwhile.pop(0) if self.meanwhile else ()
            combiner.exchange(states, meanwhile)
        if self.rows.meeting is not Meeting.LAST:
            for reduce in reduces:
                combiner.publish(reduce, states[reduce])
            return
        is_last = combiner.finish(states)
        with self.values.block() as body:
            for reduce in reduces:
                combiner.join_parts(reduce, states[reduce])
                combiner.publish(reduce, states[reduce])
            self.out.store_rows()
        self.values.emit(If(is_last, tuple(body)))

    @property
    def rows(self) -> RowFolding:
        """How rows are folded; a kernel without reductions does not ask."""
        assert self.scheduled.rows is not None
        return self.scheduled.rows

    def _tile(self, level: int, states: dict[Reduce, fold.State]) -> None:
        """Add one pass over the row: fold into ``states``, store what is complete.

        What no packet holds is on its way before the packets are.
        """
        rest = self.rest and self.rest.tile(level, states)
        if self.rest and rest:
            at = self.meeting if level and self.rows.keeps else len(self._stmts)
            early = self.rest.in_steps((), rest.early)
            self._stmts[at:at] = in_phase(self.combiner, level, early)
        whole = self.tiles.tile(level, states)
        if whole is None:
            return
        body, early = whole.body, whole.early
        turn = self._turn()
        if turn and level == 0 and self._copies_ahead():
            whole_ones = [x for x in early if not lies_across(x)]
            ahead = prefetch(self.values, whole_ones, self.across.shared_bytes)
            body = (*filter(lies_across, early), *body)
            body, early = self._ahead(ahead, body)
        else:
            early = self._begun_before(level, early)
        parts = ((), early, body) if whole.is_free else (body, early, whole.kept)
        back = self.rows.back and not states
        steps = self.tiles.in_steps(*parts, chunk=whole.chunk, back=back)
        self._stmts.extend(in_phase(self.combiner, level, steps))
        if self.rest and rest:
            steps = self.rest.in_steps(rest.body, chunk=rest.chunk)
            self._stmts.extend(in_phase(self.combiner, level, steps))

    @property
    def _stmts(self) -> list[Stmt]:
        """What is done once a row."""
        return self.values.row.stmts

    def _begun_before(self, level: int, early: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Begin ``early`` loads before the pass if that helps; return what is left.

        Copies to shared memory all have to be there first. What all rows share is on
        its way while the threads meet.
        """
        if early and self.values.landed and not self.is_in_turn:
            self.values.emit_all((*self.tiles.in_steps(early), AwaitCopies()))
            return ()
        if early and level and self.rows.keeps:
            self._stmts[self.meeting : self.meeting] = self.tiles.in_steps((), early)
            return ()
        return early

    def _turn(self) -> Leaf | None:
        """Return the loop over the rows that a block takes after each other."""
        turns = (leaf for leaf in self.nest.kept if not leaf.binding.is_bound)
        return next(turns, None) if self.out.has_rows else None

    def _copies_ahead(self) -> bool:
        placed = self.scheduled.placements.values()
        return any(placement.route is Route.AHEAD for placement in placed)

    def _ahead(
        self, loads: Prefetch, body: tuple[Stmt, ...]
    ) -> tuple[tuple[Stmt, ...], tuple[Stmt, ...]]:
        """Copy rows ahead; return the step that takes its packets and runs ``body``.

        Taken step by step, copies need no registers until their turn. Where the last
        packet is repeated beyond the end, what takes them comes second: all steps do.
        """
        following = self._copied(loads)
        self.values.emit(AwaitCopies())
        pieces = self._dealt(following)
        *self.meanwhile, self.ahead = map(self._if_another_turn, pieces)
        self.shared_bytes = loads.shared_bytes
        if self.tiles.is_clamped:
            return body, loads.taken
        return (*loads.taken, *body), ()

    def _dealt(self, copies: tuple[Stmt, ...]) -> list[tuple[Stmt, ...]]:
        """Return which copies begin in which meeting, and last those behind them all.

        What blocks of a cluster send each other does not queue behind any.
        """
        if self.rows.cluster:
            return [copies, *[()] * self.levels]
        return dealt(copies, self.levels if self.rows.in_step else 0)

    def _copied(self, loads: Prefetch) -> tuple[Stmt, ...]:
        """Copy the first of a block's rows before it begins; return copies of the next.

        Where a row ends may depend on which it is.
        """
        turn = self._turn()
        assert turn is not None
        steps = self.tiles.in_steps((), loads.copies)
        self.before.extend(changed(steps, {turn.index: sc.const(0)}))
        return changed(steps, {turn.index: turn.index + 1})

    def _begin_in_turn(self, loads: Prefetch) -> None:
        """Wait for this row, and let the next be on its way from here on."""
        following = self._copied(loads)
        self.values.emit(AwaitCopies())
        self.values.emit_all(self._if_another_turn(following))
        self.shared_bytes = loads.shared_bytes
        self.is_in_turn = True

    def _if_another_turn(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        turn = self._turn()
        assert turn is not None
        return guarded(less(turn.index + 1, turn.stop), body)
