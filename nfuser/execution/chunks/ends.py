# SPDX-License-Identifier: Apache-2.0
"""What becomes of the outputs of a pass: picked apart, folded by trees, carried on."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from nfuser.execution.chunks.axes.places import label_of, letters_of
from nfuser.execution.chunks.dask.graph import Layers, add_carries, add_pick, add_result
from nfuser.execution.chunks.dask.trees import CombiningTree, add_tree, split_of
from nfuser.execution.chunks.jobs import FoldJob, ScanJob, ScatterJob, Target
from nfuser.execution.chunks.passes import fold_of
from nfuser.execution.chunks.steps import Step
from nfuser.execution.chunks.tasks.block import Carry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.execution.chunks.axes.chunkings import Chunks
    from nfuser.execution.chunks.layout import Layout


@dataclass
class Ends:
    """Adds the layers that follow the pass ``name`` over ``grid``."""

    layout: Layout
    layers: Layers
    name: str
    grid: tuple[Chunks, ...]

    def add(self, targets: Sequence[Target]) -> None:
        """Add what gives each target its array."""
        is_one = len(targets) == 1
        trees: dict[tuple[int, ...], list[tuple[int, FoldJob | ScatterJob]]] = {}
        for k, target in enumerate(targets):
            if isinstance(target, (FoldJob, ScatterJob)):
                trees.setdefault(self._folded(target), []).append((k, target))
            elif isinstance(target, ScanJob):
                self._carry(target, None if is_one else k)
            else:
                letters = letters_of(self.layout.place(target))
                name = f"{self.name}-{k}"
                add_pick(self.layers, name, self._source, k, letters, self._blocks)
                self.layout.hold(self.layers, name, target)
        for number, (folded, found) in enumerate(trees.items()):
            own = f"{self.name}-fold{number}"
            own = self.name if len(targets) == len(found) else own
            picks = [None if is_one else k for k, _ in found]
            self._fold(own, folded, [job for _, job in found], picks)

    @property
    def _source(self) -> str:
        return f"{self.name}-parts"

    @property
    def _blocks(self) -> list[int]:
        return [len(chunks) for chunks in self.grid]

    def _folded(self, target: FoldJob | ScatterJob) -> tuple[int, ...]:
        """Return the labels along which the parts of a target are combined."""
        place = self.layout.place(target)
        kept = place if isinstance(target, ScatterJob) else ()
        if isinstance(target, FoldJob):
            kept = tuple(place[k] for k in target.reduce.axes)
        return tuple(sorted(p.label for p in kept if p is not None))

    def _fold(
        self,
        name: str,
        folded: tuple[int, ...],
        jobs: list[FoldJob | ScatterJob],
        picks: list[int | None],
    ) -> None:
        layout, layers = self.layout, self.layers
        left = {t: self._left(job) for job in jobs for t in self._results(job)}
        tree = CombiningTree(
            layers,
            self._source,
            tuple(self._blocks),
            folded,
            tuple(map(fold_of, jobs)),
            tuple(picks),
            split_of(sum(map(self._part_bytes, jobs))),
            {t: tuple(labels) for t, (labels, _) in left.items()},
        )
        last = name if len(left) == 1 else f"{name}-all"
        add_tree(last, tree)
        for which, (t, (labels, chunks)) in enumerate(left.items()):
            own = f"{name}-{which}"
            taken = None if len(left) == 1 else which
            add_result(layers, own, last, labels, tree.kept, tree.blocks, taken)
            layout.held[t] = layers.array(own, chunks, t.dtype.numpy)
            layout.trees[t] = tree
        count = tree.lengths[0]
        size = sum(layout.held[t].nbytes for t in left)
        about = ", ".join(f"{fold.op.value}" for fold in tree.folds)
        layout.steps.append(Step("tree", tree.tasks, count * int(size), about))

    def _results(self, job: FoldJob | ScatterJob) -> tuple[TensorView, ...]:
        if isinstance(job, ScatterJob):
            return (self.layout.spread.partials[job.scatter],)
        return job.reduce.results

    def _part_bytes(self, job: FoldJob | ScatterJob) -> int:
        """Return about how many bytes a task gives for a fold."""
        _, chunks = self._left(job)
        return 8 * fold_of(job).width * prod(map(max, chunks))

    def _left(
        self, job: FoldJob | ScatterJob
    ) -> tuple[list[int | None], tuple[Chunks, ...]]:
        """Return the label and the chunks of each axis that a fold leaves."""
        if isinstance(job, ScatterJob):
            shape = self.layout.shapes[job.scatter.result]
            return [None] * len(shape), tuple((n,) for n in shape)
        place = self.layout.place(job)
        chunks = self.layout.axis_chunks(job.source)
        kept = [k for k in range(len(place)) if k not in job.reduce.axes]
        return [label_of(place[k]) for k in kept], tuple(chunks[k] for k in kept)

    def _carry(self, job: ScanJob, pick: int | None) -> None:
        layout = self.layout
        carry = layout.spread.carries[job.scan]
        place = layout.place(job)
        label = label_of(place[job.scan.axis])
        assert label is not None
        own = f"{self.name}-carry{pick or 0}"
        run = Carry(fold_of(job), pick, job.scan.axis)
        labels = [label_of(p) for p in place]
        add_carries(self.layers, own, self._source, self._blocks, label, run, labels)
        chunks = layout.axis_chunks(job.source)
        chunks[job.scan.axis] = (1,) * self._blocks[label]
        made = self.layers.array(own, tuple(chunks), carry.dtype.numpy)
        layout.held[carry] = made
        tasks = len(self.layers.layers[own])
        layout.steps.append(Step("carry", tasks, int(made.nbytes), job.scan.op.value))
