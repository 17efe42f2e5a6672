# SPDX-License-Identifier: Apache-2.0
"""Arrays whose chunks have sizes that nobody knows yet, as after ``x[x > 0]``.

They are taken for arrays of another size, of which nothing but the number of chunks is
right. So the fusion must be one to which sizes mean nothing.
"""

from __future__ import annotations

from contextlib import contextmanager
from math import isnan, nan
from typing import TYPE_CHECKING, Any

from nfuser.compiler.ir.expr import (
    Argument,
    Constant,
    Expand,
    ExpandDims,
    FromScalar,
    Permute,
    Pointwise,
    Reduce,
    ReduceOp,
    Squeeze,
)
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.errors import ArgumentError, ShapeError
from nfuser.execution.chunks.axes.chunkings import is_cut
from nfuser.execution.chunks.dask.graph import da

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from nfuser.compiler.ir.fusion import Fusion

STANDIN = 1_000_003
"""The size that each chunk of unknown size is said to have: nobody else has it."""

_SIZELESS = (Argument, Constant, Pointwise, Expand, ExpandDims, Permute, Squeeze)
_FOLDS = (ReduceOp.SUM, ReduceOp.PROD, ReduceOp.ANY, ReduceOp.ALL)


class Unknown:
    """The arguments of one call of ``name`` that have chunks of unknown sizes."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._found: tuple[float, ...] | None = None
        self._counts: set[int] = set()

    def sized(self, array: Any) -> Any:
        """Return ``array`` with sizes in place of unknown ones."""
        if not any(isnan(n) for n in array.shape):
            return array
        self._found = array.shape
        chunks = tuple(
            (STANDIN,) * len(axis) if isnan(sum(axis)) else axis
            for axis in array.chunks
        )
        self._counts |= {len(axis) for axis in array.chunks if isnan(sum(axis))}
        return da.Array(array.dask, array.name, chunks, array.dtype, array._meta)

    def unsized(self, array: Any) -> Any:
        """Return a result with its unknown sizes as such."""
        if self._found is None:
            return array
        chunks = tuple(
            tuple(nan if n == STANDIN else n for n in axis) for axis in array.chunks
        )
        return da.Array(array.dask, array.name, chunks, array.dtype, array._meta)

    @contextmanager
    def told(self) -> Generator[None]:
        """Say of shapes that do not fit that sizes are unknown."""
        if len(self._counts) > 1:
            raise self._refusal("arguments have different numbers of unknown chunks")
        try:
            yield
        except ShapeError as error:
            if self._found is None:
                raise
            raise self._refusal(str(error)) from error

    def check(self, fusion: Fusion, arrays: Mapping[int, Any]) -> None:
        """Refuse what depends on sizes, or meets chunks that may lie otherwise."""
        if self._found is None:
            return
        for expr in fusion.exprs:
            is_fold = isinstance(expr, Reduce) and expr.op in _FOLDS
            is_number = isinstance(expr, FromScalar) and not scalar_walk.symbols(
                [expr.scalar]
            )
            if not (is_fold or is_number or isinstance(expr, _SIZELESS)):
                name = type(expr).__name__.lower()
                raise self._refusal(f"{name} depends on sizes")
        for array in arrays.values():
            known = [c for c in array.chunks if STANDIN not in c]
            if any(map(is_cut, known)) and STANDIN not in sum(array.chunks, ()):
                raise self._refusal("an argument beside it has chunks of its own")

    def _refusal(self, why: str) -> ArgumentError:
        message = (
            f"{self._name}: call x.compute_chunk_sizes() first: expected a Dask array "
            f"of known sizes, found {self._found}, where {why}"
        )
        return ArgumentError(message)
