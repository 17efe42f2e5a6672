# SPDX-License-Identifier: Apache-2.0
"""The passes over a row: what each folds and stores, and so where it begins to read.

Reductions cut a kernel into passes. A value is known after as many of them as there are
dependent reductions above it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.domains.maps import loops_of
from nfuser.compiler.ir.expr import Reduce, results, sources

if TYPE_CHECKING:
    from nfuser.compiler.domains.maps import Read
    from nfuser.compiler.domains.space import Space
    from nfuser.compiler.ir.expr import PartialSum
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.tensor import TensorView


class RowPasses:
    """What the passes over the rows of a fusion have to do."""

    def __init__(self, fusion: Fusion, space: Space) -> None:
        self._fusion, self._space = fusion, space
        self._depths = _depths(fusion)
        self.folds = max(space.levels.values(), default=-1) + 1
        """How many passes fold; after them one more may store."""

    def reduces(self, level: int) -> list[Reduce]:
        """Return what the pass ``level`` folds."""
        return [r for r, at in self._space.levels.items() if at == level]

    def is_full(self, output: TensorView) -> bool:
        """Tell whether ``output`` has an element for each step along a row."""
        point = self._space.points[output]
        return any(loop in self._space.reduced for loop in loops_of(point))

    def elements(self) -> list[TensorView]:
        """Return the outputs that are not sums across rows, each once."""
        partial = {total.result for total in self._fusion.partial_sums}
        return [t for t in dict.fromkeys(self._fusion.outputs) if t not in partial]

    def outputs(self, level: int) -> list[TensorView]:
        """Return what the pass ``level`` stores, step by step."""
        found = (t for t in self.elements() if self.is_full(t))
        return [t for t in found if self._depths[t] == level]

    def sums(self, level: int) -> list[PartialSum]:
        """Return the sums across rows that the pass ``level`` has a part in."""
        sums = self._fusion.partial_sums
        return [total for total in sums if self._depths[total.source] == level]

    def roots(self) -> list[list[Read]]:
        """Return where each pass begins to read."""
        space, passes = self._space, list[list["Read"]]()
        for level in range(self.folds + 1):
            roots = [(r.source, space.source_point(r)) for r in self.reduces(level)]
            roots += [(t, space.points[t]) for t in self.outputs(level)]
            roots += [(p.source, space.crossed[p]) for p in self.sums(level)]
            passes.append(roots)
        return passes


def _depths(fusion: Fusion) -> dict[TensorView, int]:
    """Count the reductions that must be complete before each tensor is known."""
    depth: dict[TensorView, int] = {}
    for expr in fusion.exprs:
        above = max((depth[t] for t in sources(expr)), default=0)
        above += isinstance(expr, Reduce)
        depth.update(dict.fromkeys(results(expr), above))
    return depth
