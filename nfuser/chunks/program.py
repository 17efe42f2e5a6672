# SPDX-License-Identifier: Apache-2.0
"""From a fusion and arrays in chunks to arrays in chunks: stages, level by level."""

# Dask has no static types that a strict checker could use.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from nfuser.chunks.block import Block, Carry, Output
from nfuser.chunks.chunkings import Chunks, is_cut
from nfuser.chunks.folds import Fold, emit_part
from nfuser.chunks.graph import (
    Layers,
    add_carries,
    add_pass,
    add_pick,
    add_result,
    add_tree,
    da,
    read,
)
from nfuser.chunks.moves import moved
from nfuser.chunks.spread import (
    Axes,
    FoldJob,
    Job,
    MoveJob,
    ScanJob,
    Spread,
    shape_of,
)
from nfuser.chunks.stage import Along, Stage
from nfuser.errors import ArgumentError
from nfuser.ir.expr import Expr, Reduce, ReduceOp, results, sources
from nfuser.ir.text import text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nfuser.chunks import Rechunk
    from nfuser.ir.fusion import Fusion
    from nfuser.ir.scalar import Scalar
    from nfuser.ir.tensor import TensorView

MOST_GROWTH = 4
"""How many times as large a chunk may become without being asked for."""
_Target: TypeAlias = "TensorView | FoldJob | ScanJob"


@dataclass
class Program:
    """One call on arrays in chunks; ``held`` are those that are made so far."""

    fusion: Fusion
    values: Mapping[Scalar, int]
    numbers: Mapping[int, Any]
    rechunk: Rechunk = "refuse"
    held: dict[TensorView, Any] = field(default_factory=dict)

    def run(self, given: Mapping[int, Any]) -> list[Any]:
        """Return the outputs of the fusion for arrays by slot."""
        shapes = shape_of(self.fusion, self.values)
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
            self.fusion, shapes, self.values, known, self._moved_chunks
        )
        for scan, carry in self.spread.carries.items():
            old = list(shapes[scan.source])
            old[scan.axis] = len(self.spread.chunks(scan.source, scan.axis))
            shapes[carry] = tuple(old)
        self.shapes = shapes
        levels = self.spread.level
        last = max([*(level for level, _ in self.spread.jobs), *levels.values()])
        for level in range(last + 1):
            self._run_level(level)
        return [self.held[t] for t in self.fusion.outputs]

    def _moved_chunks(
        self, expr: Expr, chunks: list[tuple[Chunks, ...]]
    ) -> tuple[Chunks, ...]:
        read = [
            da.empty(tuple(map(sum, c)), chunks=c, dtype=t.dtype.numpy)
            for c, t in zip(chunks, sources(expr), strict=True)
        ]
        shape = self.spread_shape(expr)
        return moved(expr, read, shape, self.values).chunks

    def spread_shape(self, expr: Expr) -> tuple[int, ...]:
        """Return the sizes of what ``expr`` gives."""
        return shape_of(self.fusion, self.values)[results(expr)[0]]

    # -- levels ----------------------------------------------------------------

    def _run_level(self, level: int) -> None:
        jobs = [job for at, job in self.spread.jobs if at == level]
        targets: dict[_Target, None] = {}
        for job in jobs:
            for target in _targets(job):
                targets[target] = None
        for t in self.fusion.outputs:
            if self.spread.level[t] == level:
                targets[t] = None
        wanted = [
            t
            for t in targets
            if isinstance(t, (FoldJob, ScanJob)) or t not in self.held
        ]
        grids: dict[tuple[Chunks, ...], list[_Target]] = {}
        for target in wanted:
            grids.setdefault(self._grid(_tensor(target)), []).append(target)
        for grid, found in grids.items():
            self._run_pass(grid, found)
        for job in jobs:
            if isinstance(job, MoveJob):
                arrays = [self.held[t] for t in sources(job.expr)]
                result = results(job.expr)[0]
                shape = self.shapes[result]
                self.held[result] = moved(job.expr, arrays, shape, self.values)

    def _axis_chunks(self, t: TensorView) -> list[Chunks]:
        return [self.spread.chunks(t, k) for k in range(t.ndim)]

    def _grid(self, t: TensorView) -> tuple[Chunks, ...]:
        return tuple(c for c in self._axis_chunks(t) if is_cut(c))

    def _place(self, t: TensorView) -> tuple[Along | None, ...]:
        found: list[Along | None] = []
        label = 0
        for chunks in self._axis_chunks(t):
            found.append(Along(label) if is_cut(chunks) else None)
            label += is_cut(chunks)
        return tuple(found)

    # -- one pass over the data ------------------------------------------------

    def _run_pass(self, grid: tuple[Chunks, ...], targets: Sequence[_Target]) -> None:
        roots = [(_tensor(t), self._place(_tensor(t))) for t in targets]
        stage = Stage(self.spread, self.held, roots, self.numbers)
        b = stage.builder
        emitted: list[TensorView] = []
        outputs: list[Output] = []
        for target, (tensor, place) in zip(targets, roots, strict=True):
            x = stage.local(tensor, place)
            if isinstance(target, FoldJob):
                made = emit_part(
                    b, target.reduce, x, has_shift=target.shift is not None
                )
                fold = _fold_of(target)
                axes = tuple(
                    (self.shapes[tensor][k], _label(place[k]))
                    for k in target.reduce.axes
                )
                outputs.append(Output(len(made), fold, axes))
            elif isinstance(target, ScanJob):
                made = emit_part(b, target.scan, x)
                outputs.append(Output(1, _fold_of(target)))
            else:
                made = [x]
                outputs.append(Output(1))
            emitted += made
        fusion = b.fusion(emitted)
        self._lay(stage, fusion, grid, targets, tuple(outputs))

    def _lay(
        self,
        stage: Stage,
        fusion: Fusion,
        grid: tuple[Chunks, ...],
        targets: Sequence[_Target],
        outputs: tuple[Output, ...],
    ) -> None:
        inputs = [(self._read(what, grid, fusion.name), what) for what in stage.reads]
        rows = (text(fusion), repr(stage.numbers), stage.edges, repr(outputs))
        token = da.core.tokenize(*rows)
        named = da.core.tokenize(token, grid, [a.name for a, _ in inputs])
        name = f"{fusion.name}-{named}"
        block = Block(token, fusion, stage.slots, stage.numbers, stage.edges, outputs)
        layers = Layers([a for a, _ in inputs])
        is_one = len(targets) == 1
        needs = any(o.fold and o.fold.op in _PLACED for o in outputs) or bool(
            stage.edges
        )
        first = targets[0]
        is_plain = is_one and not isinstance(first, (FoldJob, ScanJob))
        if is_plain:
            out = _letters(self._place(_tensor(first)))
        else:
            out = [f"l{k}" for k in range(len(grid))]
        pass_name = name if is_plain else f"{name}-parts"
        add_pass(
            layers,
            pass_name,
            block,
            out,
            inputs,
            grid,
            needs_places=needs and bool(grid),
        )
        if is_plain:
            self._hold(layers, name, _tensor(first))
        else:
            self._end(layers, name, grid, targets)

    def _hold(self, layers: Layers, name: str, t: TensorView) -> None:
        """Keep the array that layer ``name`` gives as ``t``."""
        chunks = tuple(self._axis_chunks(t))
        self.held[t] = layers.array(name, chunks, t.dtype.numpy)

    def _end(
        self,
        layers: Layers,
        name: str,
        grid: tuple[Chunks, ...],
        targets: Sequence[_Target],
    ) -> None:
        """Add the layers that take apart and combine what a pass gives."""
        source, is_one = f"{name}-parts", len(targets) == 1
        blocks = [len(c) for c in grid]
        trees: dict[tuple[int, ...], list[tuple[int, FoldJob]]] = {}
        for k, target in enumerate(targets):
            if isinstance(target, FoldJob):
                place = self._place(target.source)
                labels = [_label(place[a]) for a in target.reduce.axes]
                folded = tuple(sorted(x for x in labels if x is not None))
                trees.setdefault(folded, []).append((k, target))
            elif isinstance(target, ScanJob):
                which = None if is_one else k
                self._carry(layers, name, source, blocks, target, which)
            else:
                letters = _letters(self._place(target))
                add_pick(layers, f"{name}-{k}", source, k, letters, blocks)
                self._hold(layers, f"{name}-{k}", target)
        for number, (folded, found) in enumerate(trees.items()):
            own = name if len(targets) == len(found) else f"{name}-fold{number}"
            picks = [None if is_one else k for k, _ in found]
            jobs = [job for _, job in found]
            self._fold(layers, own, source, blocks, folded, jobs, picks)

    def _fold(
        self,
        layers: Layers,
        name: str,
        source: str,
        blocks: list[int],
        folded: tuple[int, ...],
        jobs: list[FoldJob],
        picks: list[int | None],
    ) -> None:
        ends = [(job, t) for job in jobs for t in job.reduce.results]
        last = name if len(ends) == 1 else f"{name}-all"
        add_tree(
            layers, last, source, blocks, folded, [_fold_of(j) for j in jobs], picks
        )
        kept = [k for k in range(len(blocks)) if k not in folded]
        for which, (job, result) in enumerate(ends):
            place = self._place(job.source)
            left = [p for k, p in enumerate(place) if k not in job.reduce.axes]
            chunks = tuple(
                c
                for k, c in enumerate(self._axis_chunks(job.source))
                if k not in job.reduce.axes
            )
            own = f"{name}-{which}"
            labels = [_label(p) for p in left]
            taken = None if len(ends) == 1 else which
            add_result(layers, own, last, labels, kept, blocks, taken)
            self.held[result] = layers.array(own, chunks, result.dtype.numpy)

    def _carry(
        self,
        layers: Layers,
        name: str,
        source: str,
        blocks: list[int],
        job: ScanJob,
        pick: int | None,
    ) -> None:
        carry = self.spread.carries[job.scan]
        place = self._place(job.source)
        label = _label(place[job.scan.axis])
        assert label is not None
        own = f"{name}-carry{pick or 0}"
        run = Carry(_fold_of(job), pick, job.scan.axis)
        labels = [_label(p) for p in place]
        add_carries(layers, own, source, blocks, label, run, labels)
        chunks = self._axis_chunks(job.source)
        chunks[job.scan.axis] = (1,) * blocks[label]
        self.held[carry] = layers.array(own, tuple(chunks), carry.dtype.numpy)

    def _read(self, what: Any, grid: tuple[Chunks, ...], name: str) -> Any:
        array = self.held[what.tensor]
        found = read(array, what, grid, name)
        before = max((prod(map(max, array.chunks)) if array.ndim else 1), 1)
        after = prod(map(max, found.chunks)) if found.ndim else 1
        if after > MOST_GROWTH * before and array.npartitions > 1 and after > 4096:
            reasons = self.spread.reasons
            because = f" because {reasons[-1]}" if reasons else ""
            message = (
                f'rechunk the argument first, or write fuse(rechunk="warn"): chunks of '
                f"{before} elements would become chunks of {after}{because}"
            )
            if self.rechunk != "warn":
                raise ArgumentError(message)
            warnings.warn(message, RuntimeWarning, stacklevel=2)
        return found


_PLACED = (ReduceOp.ARGMAX, ReduceOp.ARGMIN)


def _targets(job: Job) -> list[_Target]:
    if isinstance(job, (FoldJob, ScanJob)):
        return [job]
    return list(sources(job.expr)) if isinstance(job, MoveJob) else [job.source]


def _tensor(target: _Target) -> TensorView:
    return target.source if isinstance(target, (FoldJob, ScanJob)) else target


def _fold_of(job: FoldJob | ScanJob) -> Fold:
    if isinstance(job, ScanJob):
        return Fold(job.scan.op, np.dtype(job.scan.result.dtype.numpy), 1)
    expr: Reduce = job.reduce
    dtype = np.dtype(expr.result.dtype.numpy)
    return Fold(expr.op, dtype, len(expr.results), job.shift is not None)


def _label(along: Along | None) -> int | None:
    return None if along is None else along.label


def _letters(place: Sequence[Along | None]) -> list[str]:
    return [f"o{k}" if p is None else f"l{p.label}" for k, p in enumerate(place)]
