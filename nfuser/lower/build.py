# SPDX-License-Identifier: Apache-2.0
"""From a scheduled fusion to kernel IR, before any pass."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.ir import scalar as sc
from nfuser.ir.scalar_functions import less
from nfuser.lower.cpu.extreme_position import finds_apart, fold_place, place_along
from nfuser.lower.cpu.staged_columns import stage_columns
from nfuser.lower.cuda.async_copy import Prefetch, dealt, in_turn, land_rows, prefetch
from nfuser.lower.cuda.combine import Combiner
from nfuser.lower.cuda.join import Common, indices_bound
from nfuser.lower.cuda.stage import Stager
from nfuser.lower.elements.in_bounds import in_bounds
from nfuser.lower.elements.output_stores import Stores
from nfuser.lower.elements.row_steps import (
    Chunk,
    chunk_of,
    fold_steps,
    folds_steps,
    in_steps,
    join_chunks,
)
from nfuser.lower.elements.values import Values
from nfuser.lower.folds import fold
from nfuser.lower.folds.across import Across
from nfuser.lower.folds.fold_lanes import fold_lanes
from nfuser.lower.folds.launch_phases import in_phase, next_phase
from nfuser.lower.folds.persistent import computed_everywhere, forget, is_everywhere
from nfuser.lower.folds.scan_steps import lower_scans
from nfuser.lower.kernel.kernel_ir import (
    AwaitCopies,
    Buffer,
    Folded,
    For,
    If,
    Kernel,
    Lane,
    LoopCounter,
    Stmt,
    Var,
    guarded,
    kernel_name,
)
from nfuser.lower.launch import launch_of
from nfuser.lower.sweep import lower_turns
from nfuser.schedule.facts.memory import memory_tensors
from nfuser.schedule.nest import Binding
from nfuser.schedule.placement.placement import Route
from nfuser.schedule.placement.row_passes import RowPasses
from nfuser.schedule.scheduled import Meeting, Scheduled

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nfuser.ir.expr import Reduce
    from nfuser.ir.tensor import TensorView
    from nfuser.lower.elements.value_scopes import Key
    from nfuser.schedule.nest import Leaf
    from nfuser.schedule.scheduled import RowFolding


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
        for tensor in memory_tensors(self.fusion):
            if tensor in inputs:
                buffer = self.common.source(tensor)
                self.values.buffers[tensor] = buffer
            else:
                buffer = Buffer(tensor.dtype, tensor, "out")
                self.outputs[tensor] = buffer
            declared.append(buffer)
        return declared

    def kernel(self) -> Kernel:
        if self.fusion.scans:
            lower_scans(self.values, self.out.store)
        elif self.scheduled.turns is not None:
            lower_turns(self.values, self.scheduled.turns, self.out.store)
        elif not self.out.has_rows:
            self.out.store_rows()
            self.values.row.stmts[:] = self._with_lanes(self.values.row.stmts, {}, [])
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
        self.before.extend(self._in_steps(copies) if copies else ())
        self.shared_bytes = land_rows(values)
        if not self.shared_bytes:
            values.keep_placed(rows.room)
            self.shared_bytes = self.across.shared_bytes
        turn = self._turn()
        if turn and (loads := in_turn(values, turn)):
            self._begin_in_turn(loads)
        if self.combiner.is_shared:
            forget(values)
        if self.across.is_in_memory:
            zeros = self.across.stored(self.out.slots(), self.out.write)
            self.before.extend(self._in_steps(zeros))
        self.before.extend(self.across.cleared())
        for level in range(self.levels):
            self._fold_level(level)
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
            self.behind = self._in_steps(
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
    def _is_clamped(self) -> bool:
        """Whether steps beyond the end of a row are the last one again."""
        return any(bound.is_clamped for bound in self.nest.reduced_bounds)

    @property
    def rows(self) -> RowFolding:
        """How rows are folded; a kernel without reductions does not ask."""
        assert self.scheduled.rows is not None
        return self.scheduled.rows

    def _tile(self, level: int, states: dict[Reduce, fold.State]) -> None:
        """Add one pass over the row: fold into ``states``, store what is complete."""
        outputs, sums = self.passes.outputs(level), self.passes.sums(level)
        if not states and not outputs and not sums:
            return
        values = self.values
        roots = self.passes.roots()[level]
        is_free = not sums and self._is_free(states, outputs, roots)
        values.early = self._early_loads(level)
        kept = () if is_free or not states else self._kept_first(roots)
        self.out.ends = self.nest.reduced_bounds if is_free and not states else ()
        after: list[Stmt] = []
        chunk, folded = Chunk(), list[Folded]()
        with values.one_pass() as step:
            rereads = not (outputs or sums)
            folding = self._fold_all(states, after, chunk, folded, rereads=rereads)
            for output in outputs:
                self.out.store(output, after)
            for total in sums:
                real = self.combiner.for_real_rows
                self.across.add(total, self.outputs[total.result], real)
        self.out.ends = ()
        early, values.early = tuple(values.early or ()), None
        if is_free:
            values.everywhere |= step.kept
        join_chunks(values, self.combiner, states, folding, chunk)
        body = (*step.begin, *self._with_lanes(step.loop, folding, folded), *after)
        turn = self._turn()
        if turn and level == 0 and self._copies_ahead():
            ahead = prefetch(values, early, turn, self.across.shared_bytes)
            body, early = self._ahead(ahead, body)
        else:
            early = self._begun_before(level, early)
        parts = ((), early, body) if is_free else (body, early, kept)
        back = self.rows.back and not states
        steps = self._in_steps(*parts, chunk=chunk, back=back)
        values.row.stmts.extend(in_phase(self.combiner, level, steps))

    def _is_free(
        self,
        states: dict[Reduce, fold.State],
        outputs: list[TensorView],
        roots: list[Key],
    ) -> bool:
        """Tell whether steps beyond the end of a row may run all of a pass but stores.

        What they fold may be folded again, or nothing is folded; and what they read of
        earlier passes, these have left for them.
        """
        if states:
            may_run = not outputs and all(map(fold.may_repeat, states))
        else:
            may_run = self.nest.lane is None and self._is_clamped
        return may_run and is_everywhere(self.values, roots)

    def _begun_before(self, level: int, early: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Begin ``early`` loads before the pass if that helps; return what is left.

        Copies to shared memory all have to be there first. What all rows share is on
        its way while the threads meet.
        """
        values = self.values
        if early and values.landed and not self.is_in_turn:
            values.emit_all((*self._in_steps(early), AwaitCopies()))
            return ()
        if early and level and self.rows.keeps:
            values.row.stmts[self.meeting : self.meeting] = self._in_steps((), early)
            return ()
        return early

    def _fold_all(
        self,
        states: dict[Reduce, fold.State],
        after: list[Stmt],
        chunk: Chunk,
        folded: list[Folded],
        *,
        rereads: bool,
    ) -> dict[Reduce, fold.State]:
        """Fold into ``states``; return what elements are folded into one by one."""
        folding = {
            r: chunk_of(self.values, r, state, after)
            for r, state in states.items()
            if not (self._folds_lanes(r) or folds_steps(self.scheduled, r))
        }
        for reduce, state in states.items():
            if finds_apart(self.values, reduce):
                del folding[reduce]
                folded += fold_place(
                    self.values, self.combiner, reduce, state, after, rereads=rereads
                )
            elif reduce in folding:
                self._fold_element(reduce, folding[reduce])
            elif folds_steps(self.scheduled, reduce):
                fold_steps(self.values, self.combiner, reduce, state, chunk)
            else:
                fold_lanes(self.values, self.combiner, reduce, state, after)
        return folding

    def _kept_first(self, roots: list[Key]) -> tuple[Stmt, ...]:
        """Return what computes, of what is kept, all that the pass of ``roots`` can.

        Where the end of a row is clamped that takes no condition, so no register has
        to be cleared; what is folded then does.
        """
        values = self.values
        if not self._is_clamped:
            return ()
        fresh = computed_everywhere(values, roots)
        with values.one_pass() as step:
            for key in fresh:
                values.value(*key)
        values.everywhere |= step.kept
        return step.then([])

    def _with_lanes(
        self,
        body: Iterable[Stmt],
        folding: dict[Reduce, fold.State],
        folded: list[Folded],
    ) -> list[Stmt]:
        """Mark the loops over lanes of which vectors are to be made."""
        lane, runs_along = self.nest.lane, self.levels == 0 or self.nest.lane_reduces
        has_vectors = runs_along and self.scheduled.target.has_vectors
        if lane is None or not has_vectors or any(len(s) > 1 for s in folding.values()):
            return list(body)
        for reduce, (state,) in folding.items():
            assert isinstance(state, Var)
            begin, *_ = fold.initial(reduce)
            join = fold.joiner(reduce, state.dtype, reassociate=True)
            folded.append(Folded(state, begin, join))
        mark = Lane(self.scheduled.walk, tuple(folded))
        return [
            replace(stmt, lane=mark)
            if isinstance(stmt, For) and stmt.index is lane.index
            else stmt
            for stmt in body
        ]

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
        self.before.extend(self._in_steps((), loads.first))
        self.values.emit(AwaitCopies())
        meetings = self.levels if self.rows.in_step else 0
        pieces = dealt(self._in_steps((), loads.following), meetings)
        *self.meanwhile, self.ahead = map(self._if_another_turn, pieces)
        self.shared_bytes = loads.shared_bytes
        if self._is_clamped:
            return body, loads.taken
        return (*loads.taken, *body), ()

    def _begin_in_turn(self, loads: Prefetch) -> None:
        """Wait for this row, and let the next be on its way from here on."""
        self.before.extend(self._in_steps((), loads.first))
        self.values.emit(AwaitCopies())
        following = self._in_steps((), loads.following)
        self.values.emit_all(self._if_another_turn(following))
        self.shared_bytes = loads.shared_bytes
        self.is_in_turn = True

    def _if_another_turn(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        turn = self._turn()
        assert turn is not None
        return guarded(less(turn.index + 1, turn.stop), body)

    def _early_loads(self, level: int) -> list[Stmt] | None:
        """Return where loads go that all start before the first of them is waited for.

        Rows that are kept are read by the first pass; what all rows share, while the
        threads meet before the pass that reads it.
        """
        if self.nest.leaf(Binding.UNROLLED) is None:
            return None
        is_in_time = level == 0 or self.rows.eager or not self.rows.keeps
        return [] if is_in_time else None

    def _folds_lanes(self, reduce: Reduce) -> bool:
        return self.nest.lane_reduces and fold.is_of_exponentials(reduce)

    def _fold_element(self, reduce: Reduce, state: fold.State) -> None:
        values = self.values
        element = values.value(reduce.source, self.space.source_point(reduce))
        joined = fold.combined(
            reduce,
            state,
            fold.lifted(reduce, element, place_along(values, reduce)),
            values.let,
            reassociate=self.scheduled.target.has_vectors,
        )
        self.combiner.assign(state, joined)

    def _in_steps(
        self,
        body: tuple[Stmt, ...],
        *first: tuple[Stmt, ...],
        chunk: Chunk | None = None,
        back: bool = False,
    ) -> tuple[Stmt, ...]:
        chunk, loops = chunk or Chunk(), self.values.loops
        return in_steps(self.scheduled, first, body, chunk, loops, back=back)
