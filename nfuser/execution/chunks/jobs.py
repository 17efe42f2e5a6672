# SPDX-License-Identifier: Apache-2.0
"""What lies between the levels of a program: folds, scans, and moves across chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.expr import Expr, Reduce, Scan, Scatter, results
from nfuser.compiler.ir.scalars import scalar_walk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView

Job: TypeAlias = "FoldJob | ScanJob | ScatterJob | KeepJob | MoveJob"
Target: TypeAlias = "TensorView | FoldJob | ScanJob | ScatterJob"
"""What a pass over the data gives: a tensor, or parts that are combined."""


@node
class FoldJob:
    """A reduction along axes that are cut: parts of each chunk, and a tree of them.

    ``shift`` is the maximum that the exponentials it sums are taken relative to: each
    chunk takes its own, which the tree carries along.
    """

    reduce: Reduce
    source: TensorView
    shift: Reduce | None = None


@node
class ScanJob:
    """A scan along an axis that is cut: a total of each chunk, carried to the next."""

    scan: Scan

    @property
    def source(self) -> TensorView:
        """What is scanned."""
        return self.scan.source


@node
class ScatterJob:
    """A scatter by an index in chunks: what each chunk adds up, and a tree of that.

    ``source`` is the index or the value, whichever says where chunks are.
    """

    scatter: Scatter
    source: TensorView


@node
class KeepJob:
    """A tensor that is computed in its own chunks, to be read in others."""

    source: TensorView


@node
class MoveJob:
    """An expression that Dask computes of whole arrays."""

    expr: Expr


def shape_of(
    fusion: Fusion, values: Mapping[Scalar, int]
) -> dict[TensorView, tuple[int, ...]]:
    """Return the sizes of each tensor in one call."""
    tensors = [t for e in fusion.exprs for t in results(e)]
    flat = scalar_walk.evaluate_all([s for t in tensors for s in t.shape], values)
    numbers = iter(flat)
    return {t: tuple(next(numbers) for _ in t.shape) for t in tensors}
