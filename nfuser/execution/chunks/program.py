# SPDX-License-Identifier: Apache-2.0
"""From a fusion and arrays in chunks to arrays in chunks: stages, level by level."""

from __future__ import annotations

import warnings
from collections import Counter
from math import prod
from typing import TYPE_CHECKING, Any

from nfuser.compiler.ir.expr import Expr, results, sources
from nfuser.compiler.ir.tensor import TensorView
from nfuser.compiler.ir.text import text
from nfuser.errors import ArgumentError
from nfuser.execution.chunks.axes.places import Along, label_of, letters_of
from nfuser.execution.chunks.axes.spread import Axes, Spread
from nfuser.execution.chunks.dask.graph import Layers, add_pass, add_result, da, read
from nfuser.execution.chunks.dask.in_memory import joined_to_data
from nfuser.execution.chunks.dask.moves import moved
from nfuser.execution.chunks.dask.stored import read_by_tasks
from nfuser.execution.chunks.dask.trees import add_tree, order_of_tail
from nfuser.execution.chunks.ends import Ends
from nfuser.execution.chunks.jobs import FoldJob, MoveJob, ScanJob, ScatterJob, Target
from nfuser.execution.chunks.layout import Layout
from nfuser.execution.chunks.passes import laid, needs_places
from nfuser.execution.chunks.steps import Step, step_of_move, step_of_pass, step_of_read
from nfuser.execution.chunks.tasks.block import Block, Tail

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.execution.chunks import Rechunk
    from nfuser.execution.chunks.axes.chunkings import Chunks
    from nfuser.execution.chunks.axes.places import Place, Read
    from nfuser.execution.chunks.dask.trees import CombiningTree
    from nfuser.execution.chunks.jobs import Job
    from nfuser.execution.chunks.passes import Pass

MOST_GROWTH = 4
"""How many times as large a chunk may become without being asked for."""

SMALL = 4096
"""Chunks of so few elements may grow as they like."""


class Program(Layout):
    """One call on arrays in chunks; ``rechunk`` says whether chunks may grow."""

    def __init__(
        self,
        fusion: Fusion,
        values: Mapping[Scalar, int],
        numbers: Mapping[int, Any],
        rechunk: Rechunk = "refuse",
    ) -> None:
        super().__init__(fusion, values, numbers)
        self.rechunk = rechunk

    def run(self, given: Mapping[int, Any]) -> list[Any]:
        """Return the outputs of the fusion for arrays by slot."""
        known: dict[TensorView, Axes] = {}
        for argument in self.fusion.arguments:
            if argument.by_value:
                continue
            array = given[argument.slot]
            self.held[argument.result] = array
            is_free = array.npartitions == 1
            known[argument.result] = [
                (None if is_free else c, True) for c in array.chunks
            ]
        self.spread = Spread(
            self.fusion, self.shapes, self.values, known, self._moved_chunks
        )
        for scan, carry in self.spread.carries.items():
            old = list(self.shapes[scan.source])
            old[scan.axis] = len(self.spread.chunks(scan.source, scan.axis))
            self.shapes[carry] = tuple(old)
        for scatter, partial in self.spread.partials.items():
            self.shapes[partial] = self.shapes[scatter.result]
        levels = self.spread.level
        self._last = max([*(at for at, _ in self.spread.jobs), *levels.values()])
        for level in range(self._last + 1):
            self._run_level(level)
        found = [self.held[t] for t in self.fusion.outputs]
        return read_by_tasks(joined_to_data(found))

    def _moved_chunks(
        self, expr: Expr, chunks: list[tuple[Chunks, ...]]
    ) -> tuple[Chunks, ...]:
        read = [
            da.empty(tuple(map(sum, c)), chunks=c, dtype=t.dtype.numpy)
            for c, t in zip(chunks, sources(expr), strict=True)
        ]
        return moved(expr, read, self.shapes[results(expr)[0]], self.values).chunks

    # -- levels ----------------------------------------------------------------

    def _run_level(self, level: int) -> None:
        jobs = [job for at, job in self.spread.jobs if at == level]
        targets: dict[Target, None] = {}
        for job in jobs:
            for target in _targets(job):
                targets[target] = None
        for t in self.fusion.outputs:
            if self.spread.level[t] == level:
                targets[t] = None
        grids: dict[tuple[Chunks, ...], list[Target]] = {}
        for target in targets:
            if target not in self.held:
                grids.setdefault(self.grid(target), []).append(target)
        if level == self._last:
            self._run_tails(grids)
        for grid, found in grids.items():
            for together in self._sharing(found):
                self._run_pass(grid, together)
        for job in jobs:
            if isinstance(job, MoveJob):
                self._move(job.expr)

    def _sharing(self, targets: Sequence[Target]) -> list[list[Target]]:
        """Return ``targets`` in groups, each for one pass over the data.

        A tensor that has nothing to read in common with others has a pass of its own,
        which gives it as it is; results of one pass are picked apart by more tasks.
        """
        reads = {target: self.reads(target) for target in targets}
        count = Counter(t for found in reads.values() for t in found)
        alone = [
            target
            for target, found in reads.items()
            if isinstance(target, TensorView) and all(count[t] == 1 for t in found)
        ]
        others = [target for target in targets if target not in alone]
        return [*([target] for target in alone), *([others] if others else [])]

    def _move(self, expr: Expr) -> None:
        arrays = [self.held[t] for t in sources(expr)]
        result = results(expr)[0]
        made = moved(expr, arrays, self.shapes[result], self.values)
        self.held[result] = made
        self.steps.append(step_of_move(expr, arrays, made))

    # -- one pass over the data ------------------------------------------------

    def _run_tails(self, grids: Mapping[tuple[Chunks, ...], list[Target]]) -> None:
        """Have trees run what is made of nothing but their results; drop it there."""
        reads = {t: self.reads(t) for found in grids.values() for t in found}
        read_by = {t: {self.trees.get(x) for x in found} for t, found in reads.items()}
        for grid, targets in grids.items():
            for tree in dict.fromkeys(x for t in targets for x in read_by[t] if x):
                own = [
                    t
                    for t in targets
                    if isinstance(t, TensorView) and read_by[t] == {tree}
                ]
                readers = [t for t, found in read_by.items() if tree in found]
                # Whoever else reads what a tree gives would have it combined twice.
                is_kept = any(t in tree.ends for t in self.fusion.outputs)
                if is_kept or len(own) < len(readers):
                    continue
                if self._run_tail(grid, own, tree):
                    targets[:] = [t for t in targets if t not in own]

    def _run_tail(
        self,
        grid: tuple[Chunks, ...],
        targets: Sequence[TensorView],
        tree: CombiningTree,
    ) -> bool:
        """Let the last tasks of a tree run a pass, if they have all that it reads."""
        made = laid(self, targets)
        arrays = [self.held[what.tensor] for what in made.reads]
        order = order_of_tail(tree, made.reads, arrays, grid)
        if order is None or needs_places(made):
            return False
        name, block = self._block(made, grid, arrays)
        own, place = self._given(name, targets, grid)
        ends = list(tree.ends)
        reads = tuple(ends.index(what.tensor) for what in made.reads)
        keys = tuple(None if p is None else order[p.label] for p in place)
        add_tree(own, tree, Tail(block, reads, keys))
        self.steps.append(Step("tail", 0, 0, made.gives))
        if len(targets) == 1:
            self.hold(tree.layers, name, targets[0])
            return True
        labels, blocks = range(len(grid)), [len(chunks) for chunks in grid]
        for k, t in enumerate(targets):
            places, taken = map(label_of, self.place(t)), f"{name}-{k}"
            add_result(tree.layers, taken, own, [*places], labels, blocks, k)
            self.hold(tree.layers, taken, t)
        return True

    def _run_pass(self, grid: tuple[Chunks, ...], targets: Sequence[Target]) -> None:
        made = laid(self, targets)
        name = made.fusion.name
        inputs = [(self._read(what, grid, name), what) for what in made.reads]
        arrays = [array for array, _ in inputs]
        name, block = self._block(made, grid, arrays)
        own, place = self._given(name, targets, grid)
        layers, out = Layers(arrays), letters_of(place)
        places = needs_places(made) and bool(grid)
        add_pass(layers, own, block, out, inputs, grid, needs_places=places)
        self.steps.append(step_of_pass(made.gives, grid, arrays))
        first = targets[0]
        if own == name and isinstance(first, TensorView):
            self.hold(layers, name, first)
        else:
            Ends(self, layers, name, grid).add(targets)

    def _block(
        self, made: Pass, grid: tuple[Chunks, ...], arrays: Sequence[Any]
    ) -> tuple[str, Block]:
        """Return what tasks of a pass run, and the name of what it gives."""
        stage = da.core.tokenize(text(made.fusion))
        rows = (stage, repr(made.numbers), made.edges, repr(made.outputs))
        token = da.core.tokenize(*rows)
        own = da.core.tokenize(token, grid, [a.name for a in arrays])
        parts = made.slots, made.numbers, made.edges, made.outputs
        name = f"{made.fusion.name}-{own}"
        return name, Block(stage, token, made.fusion, *parts)

    def _given(
        self, name: str, targets: Sequence[Target], grid: tuple[Chunks, ...]
    ) -> tuple[str, Place]:
        """Return the layer of a pass, and where what a task of it gives lies."""
        first = targets[0]
        if len(targets) == 1 and isinstance(first, TensorView):
            return name, self.place(first)
        return f"{name}-parts", tuple(Along(k) for k in range(len(grid)))

    def _read(self, what: Read, grid: tuple[Chunks, ...], name: str) -> Any:
        array = self.held[what.tensor]
        found = read(array, what, grid, name)
        before = max((prod(map(max, array.chunks)) if array.ndim else 1), 1)
        after = prod(map(max, found.chunks)) if found.ndim else 1
        if after > max(MOST_GROWTH * before, SMALL) and array.npartitions > 1:
            self._refuse_growth(what.tensor, before, after)
        if found is not array:
            self.steps.append(step_of_read(what, array, found, self.spread.reason))
        return found

    def _refuse_growth(self, t: TensorView, before: int, after: int) -> None:
        """Refuse to read ``t`` in chunks that grow, or warn of it if that was asked."""
        reason = self.spread.reason(t)
        because = f" because {reason}" if reason else ""
        message = (
            f'rechunk the argument first, or write fuse(rechunk="warn"): chunks of '
            f"{before} elements would become chunks of {after}{because}"
        )
        if self.rechunk != "warn":
            raise ArgumentError(message)
        warnings.warn(message, RuntimeWarning, stacklevel=2)


def _targets(job: Job) -> list[Target]:
    if isinstance(job, (FoldJob, ScanJob, ScatterJob)):
        return [job]
    return list(sources(job.expr)) if isinstance(job, MoveJob) else [job.source]
