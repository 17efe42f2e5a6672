# SPDX-License-Identifier: Apache-2.0
"""One pass over the data: the stage that each task runs, and what its outputs are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ops as ops
from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.expr import Argument, ReduceOp
from nfuser.execution.chunks.axes.patterns import JOINED_BY
from nfuser.execution.chunks.axes.places import label_of
from nfuser.execution.chunks.folds import Fold, emit_part, emit_scattered
from nfuser.execution.chunks.jobs import FoldJob, ScanJob, ScatterJob, Target
from nfuser.execution.chunks.stage import Stage
from nfuser.execution.chunks.tasks.block import Output
from nfuser.execution.runtime.call import count_inputs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.builder import Builder
    from nfuser.execution.chunks.axes.places import Place, Read
    from nfuser.execution.chunks.layout import Layout

PLACED = (ReduceOp.ARGMAX, ReduceOp.ARGMIN)
"""Folds whose results are places, which count in the whole array."""


@node
class Pass:
    """A stage, what it reads, and its outputs; ``gives`` says so in words."""

    fusion: Fusion
    reads: tuple[Read, ...]
    slots: tuple[int, ...]
    numbers: Mapping[int, Any]
    edges: Mapping[tuple[int, int], int]
    outputs: tuple[Output, ...]
    gives: str


def laid(layout: Layout, targets: Sequence[Target]) -> Pass:
    """Return the pass that gives ``targets``, which have one grid."""
    roots = [_roots(layout, target) for target in targets]
    flat = [root for several in roots for root in several]
    stage = Stage(layout.spread, layout.held, flat, layout.numbers)
    emitted: list[TensorView] = []
    outputs: list[Output] = []
    moments = [t for t in targets if isinstance(t, FoldJob) and _is_moments(t)]
    for target, places in zip(targets, roots, strict=True):
        made, output = _emitted(layout, stage, target, places, moments)
        emitted += made
        outputs.append(output)
    fusion = stage.builder.fusion(emitted)
    gives = ", ".join(dict.fromkeys(map(_said, targets)))
    # Scalars that were simplified away are inputs no more.
    count = count_inputs(fusion)
    return Pass(
        fusion,
        tuple(stage.reads),
        tuple(stage.slots),
        {slot: n for slot, n in stage.numbers.items() if slot < count},
        {edge: slot for edge, slot in stage.edges.items() if slot < count},
        tuple(outputs),
        gives,
    )


def _is_moments(job: FoldJob) -> bool:
    return job.reduce.op is ReduceOp.MOMENTS


def needs_places(made: Pass) -> bool:
    """Tell whether tasks must know where their chunks lie."""
    return bool(made.edges) or any(o.fold and o.fold.op in PLACED for o in made.outputs)


def fold_of(target: FoldJob | ScanJob | ScatterJob) -> Fold:
    """Return how the parts of a target are combined."""
    match target:
        case ScanJob(scan):
            return Fold(scan.op, np.dtype(scan.result.dtype.numpy), 1)
        case ScatterJob(scatter):
            dtype = np.dtype(scatter.result.dtype.numpy)
            return Fold(JOINED_BY[scatter.op], dtype, 1)
        case FoldJob(reduce):
            dtype = np.dtype(reduce.result.dtype.numpy)
            has_shift = target.shift is not None
            return Fold(reduce.op, dtype, len(reduce.results), has_shift)


def _roots(layout: Layout, target: Target) -> list[tuple[TensorView, Place]]:
    """Return what must be computed for a target, and where."""
    place = layout.place(target)
    made = layout.made_of(target)
    if not isinstance(target, ScatterJob):
        return [(t, place) for t in made]
    first = place[: target.scatter.index.ndim]
    return [(t, (*first, *(None,) * (t.ndim - len(first)))) for t in made]


def _emitted(
    layout: Layout,
    stage: Stage,
    target: Target,
    roots: list[tuple[TensorView, Place]],
    moments: Sequence[FoldJob],
) -> tuple[list[TensorView], Output]:
    """Return what a task gives for a target, beside ``moments``, and what that is."""
    b = stage.builder
    read = [stage.local(t, place) for t, place in roots]
    match target:
        case FoldJob(reduce):
            (tensor, place), shapes = roots[0], layout.shapes
            chunks = layout.axis_chunks(tensor)
            made = emit_part(
                b,
                reduce,
                read[0],
                has_shift=target.shift is not None,
                sizes=[chunks[k] for k in reduce.axes],
                beside_moments=any(
                    m.source is tensor and m.reduce.axes == reduce.axes for m in moments
                ),
            )
            axes = tuple((shapes[tensor][k], label_of(place[k])) for k in reduce.axes)
            return made, Output(len(made), fold_of(target), axes)
        case ScanJob(scan):
            return emit_part(b, scan, read[0]), Output(1, fold_of(target))
        case ScatterJob(scatter):
            shape = [stage.size(n) for n in layout.shapes[scatter.result]]
            made = emit_scattered(b, scatter, shape, read[0], read[1])
            return [made], Output(1, fold_of(target))
        case _:
            return [_written(b, read[0])], Output(1)


def _written(b: Builder, x: TensorView) -> TensorView:
    """Return ``x``, or its copy if the stage has it as an argument.

    A fusion gives what its kernels write, however a chunk lies in memory.
    """
    arguments = (e.result for e in b.exprs if isinstance(e, Argument))
    return ops.copy(b, x) if x in arguments else x


def _said(target: Target) -> str:
    match target:
        case FoldJob(reduce):
            return f"parts of {reduce.op.value}"
        case ScanJob(scan):
            return f"totals of {scan.op.value}"
        case ScatterJob(scatter):
            return f"parts of scatter_{scatter.op.value}"
        case _:
            return "results"
