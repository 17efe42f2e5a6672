# SPDX-License-Identifier: Apache-2.0
"""The passes over a row: what each does at a step of packets, or with the rest."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.compiler.ir.base import node
from nfuser.compiler.lower.cpu.extreme_position import (
    finds_apart,
    fold_place,
    place_along,
)
from nfuser.compiler.lower.elements.row_steps import (
    Chunk,
    chunk_of,
    fold_steps,
    folds_steps,
    in_steps,
    join_chunks,
)
from nfuser.compiler.lower.folds import fold
from nfuser.compiler.lower.folds.fold_lanes import fold_lanes
from nfuser.compiler.lower.folds.persistent import computed_everywhere, is_everywhere
from nfuser.compiler.lower.kernel.kernel_ir import Folded, For, Lane, Stmt, Var
from nfuser.compiler.schedule.nest import Binding

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nfuser.compiler.ir.expr import Reduce
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.lower.cuda.combine import Combiner
    from nfuser.compiler.lower.elements.output_stores import Stores
    from nfuser.compiler.lower.elements.value_scopes import Key
    from nfuser.compiler.lower.elements.values import Values
    from nfuser.compiler.lower.folds.across import Across
    from nfuser.compiler.schedule.scheduled import RowFolding


@node
class RowStep:
    """A step of a pass: what it loads first, what it does, and what it leaves.

    A ``free`` one runs beyond the end of a row as well, but for its stores; of others
    that does what they have ``kept``.
    """

    early: tuple[Stmt, ...]
    body: tuple[Stmt, ...]
    kept: tuple[Stmt, ...]
    chunk: Chunk
    is_free: bool


class RowSteps:
    """Lowers passes over a row, by the nest that ``values`` are in."""

    def __init__(
        self,
        values: Values,
        combiner: Combiner,
        out: Stores,
        across: Across,
        *,
        is_rest: bool = False,
    ) -> None:
        self.values, self.combiner = values, combiner
        self.out, self.across = out, across
        self.scheduled, self.nest = values.scheduled, values.nest
        self._is_rest = is_rest

    def of_rest(self) -> RowSteps | None:
        """Return what lowers the elements of the same rows that no packet holds."""
        rest = self.scheduled.rest
        if rest is None:
            return None
        values = self.values.beside(rest)
        values.keep_placed(1)
        beside = self.out.beside(values)
        return RowSteps(values, beside.combiner, beside, self.across, is_rest=True)

    @property
    def _rows(self) -> RowFolding:
        assert self.scheduled.rows is not None
        return self.scheduled.rows

    @property
    def is_clamped(self) -> bool:
        """Whether steps beyond the end of a row are the last one again."""
        return any(bound.is_clamped for bound in self.nest.reduced_bounds)

    def tile(self, level: int, states: dict[Reduce, fold.State]) -> RowStep | None:
        """Return a pass over the row: fold into ``states``, store what is complete."""
        passes = self.out.passes
        outputs, sums = passes.outputs(level), passes.sums(level)
        if not states and not outputs and not sums:
            return None
        values = self.values
        roots = passes.roots()[level]
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
                buffer = dict(self.out.slots())[total.result]
                self.across.add(total, buffer, self.combiner.for_real_rows)
        self.out.ends = ()
        early, values.early = tuple(values.early or ()), None
        if is_free:
            values.everywhere |= step.kept
        join_chunks(values, self.combiner, states, folding, chunk)
        body = (*step.begin, *self.with_lanes(step.loop, folding, folded), *after)
        return RowStep(early, body, kept, chunk, is_free)

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
            may_run = self.nest.lane is None and self.is_clamped
        return may_run and is_everywhere(self.values, roots)

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
            elif not (
                folds_steps(self.scheduled, reduce)
                and fold_steps(self.values, self.combiner, reduce, state, chunk)
            ):
                fold_lanes(self.values, self.combiner, reduce, state, after)
        return folding

    def _kept_first(self, roots: list[Key]) -> tuple[Stmt, ...]:
        """Return what computes, of what is kept, all that the pass of ``roots`` can.

        Where the end of a row is clamped that takes no condition, so no register has
        to be cleared; what is folded then does.
        """
        values = self.values
        if not self.is_clamped:
            return ()
        fresh = computed_everywhere(values, roots)
        with values.one_pass() as step:
            for key in fresh:
                values.value(*key)
        values.everywhere |= step.kept
        return step.then([])

    def with_lanes(
        self,
        body: Iterable[Stmt],
        folding: dict[Reduce, fold.State],
        folded: list[Folded],
    ) -> list[Stmt]:
        """Mark the loops over lanes of which vectors are to be made."""
        lane = self.nest.lane
        runs_along = self.out.levels == 0 or self.nest.lane_reduces
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

    def _early_loads(self, level: int) -> list[Stmt] | None:
        """Return where loads go that all start before the first of them is waited for.

        Rows that are kept are read by the first pass; what all rows share, while the
        threads meet before the pass that reads it.
        """
        if not (self._is_rest or self.nest.leaf(Binding.UNROLLED)):
            return None
        is_in_time = level == 0 or self._rows.eager or not self._rows.keeps
        return [] if is_in_time else None

    def _folds_lanes(self, reduce: Reduce) -> bool:
        return self.nest.lane_reduces and fold.is_of_exponentials(reduce)

    def _fold_element(self, reduce: Reduce, state: fold.State) -> None:
        values = self.values
        element = values.value(reduce.source, self.scheduled.space.source_point(reduce))
        joined = fold.combined(
            reduce,
            state,
            fold.lifted(reduce, element, place_along(values, reduce)),
            values.let,
            reassociate=self.scheduled.target.has_vectors,
        )
        self.combiner.assign(state, joined)

    def in_steps(
        self,
        body: tuple[Stmt, ...],
        *first: tuple[Stmt, ...],
        chunk: Chunk | None = None,
        back: bool = False,
    ) -> tuple[Stmt, ...]:
        """Wrap ``body``, and what comes ``first``, in the loops along a row."""
        chunk, loops = chunk or Chunk(), self.values.loops
        return in_steps(self.scheduled, first, body, chunk, loops, back=back)
