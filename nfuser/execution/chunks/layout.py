# SPDX-License-Identifier: Apache-2.0
"""One call on arrays in chunks, as far as it is laid out: what is held, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nfuser.compiler.ir.expr import sources
from nfuser.compiler.ir.tensor import TensorView
from nfuser.execution.chunks.axes.chunkings import Chunks, is_cut
from nfuser.execution.chunks.axes.places import Along
from nfuser.execution.chunks.jobs import ScatterJob, Target, shape_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.execution.chunks.axes.places import Place
    from nfuser.execution.chunks.axes.spread import Spread
    from nfuser.execution.chunks.dask.graph import Layers
    from nfuser.execution.chunks.dask.trees import CombiningTree
    from nfuser.execution.chunks.steps import Step


class Layout:
    """The arrays that are ``held`` so far, and the ``steps`` that make them."""

    spread: Spread

    def __init__(
        self, fusion: Fusion, values: Mapping[Scalar, int], numbers: Mapping[int, Any]
    ) -> None:
        self.fusion, self.values, self.numbers = fusion, values, numbers
        self.shapes = shape_of(fusion, values)
        self.held: dict[TensorView, Any] = {}
        self.trees: dict[
            TensorView, CombiningTree
        ] = {}  # of results, which are held too
        self.steps: list[Step] = []

    def axis_chunks(self, t: TensorView) -> list[Chunks]:
        """Return the chunks of each axis."""
        return [self.spread.chunks(t, k) for k in range(t.ndim)]

    def grid(self, target: Target) -> tuple[Chunks, ...]:
        """Return the chunks that number the tasks of a pass that gives ``target``."""
        t = target if isinstance(target, TensorView) else target.source
        chunks = self.axis_chunks(t)
        if isinstance(target, ScatterJob):
            chunks = chunks[: target.scatter.index.ndim]
        return tuple(c for c in chunks if is_cut(c))

    def place(self, target: Target) -> Place:
        """Return the place of what a target reads, axis by axis."""
        t = target if isinstance(target, TensorView) else target.source
        inner = t.ndim
        if isinstance(target, ScatterJob):
            inner = target.scatter.index.ndim
        found: list[Along | None] = []
        label = 0
        for k, chunks in enumerate(self.axis_chunks(t)):
            is_label = k < inner and is_cut(chunks)
            found.append(Along(label) if is_label else None)
            label += is_label
        return tuple(found)

    def made_of(self, target: Target) -> tuple[TensorView, ...]:
        """Return what must be computed for a target."""
        if isinstance(target, TensorView):
            return (target,)
        if isinstance(target, ScatterJob):
            return target.scatter.index, target.scatter.value
        return (target.source,)

    def reads(self, target: Target) -> set[TensorView]:
        """Return what is held of that a target is made of."""
        stack = list(self.made_of(target))
        found, met = set[TensorView](), set(stack)
        while stack:
            t = stack.pop()
            if t in self.held:
                found.add(t)
                continue
            more = [x for x in sources(self.fusion.definition[t]) if x not in met]
            met.update(more)
            stack += more
        return found

    def hold(self, layers: Layers, name: str, t: TensorView) -> None:
        """Keep the array that layer ``name`` gives as ``t``."""
        chunks = tuple(self.axis_chunks(t))
        self.held[t] = layers.array(name, chunks, t.dtype.numpy)
