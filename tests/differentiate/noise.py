# SPDX-License-Identifier: Apache-2.0
"""How far rounding may carry a gradient: what it means with noise in each operation.

What the noise moves far, a step or a choice between equals, is seen by that, and is
judged by nobody.
"""

# Arrays of any library have no static type.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.ir.expr import (
    Argument,
    Expr,
    Matmul,
    Pointwise,
    Reduce,
    ReduceOp,
    Scan,
    SumTo,
)
from tests.oracle.emulate import Emulated
from tests.oracle.fusion_meaning import Evaluator
from tests.oracle.number_types import is_inexact

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nfuser.compiler.ir.scalars.scalar import Scalar

RUNS = 6
MORE_RUNS = 60
_EXACT = frozenset(
    {
        *("maximum", "minimum", "fmax", "fmin", "select", "where", "clip"),
        *("absolute", "negative", "copy", "cast", "floor", "ceil", "trunc", "rint"),
        *("sign", "complex", "real", "imag", "conjugate"),
    }
)
UNITS = {"float64": 2.0**-51, "float32": 2.0**-22, "bfloat16": 2.0**-8}


class Noisy(Evaluator):
    """Moves each number that is computed by up to ``unit`` times itself."""

    def __init__(
        self,
        arguments: Sequence[Any],
        sizes: Mapping[Scalar, int],
        unit: float,
        seed: int,
    ) -> None:
        super().__init__(arguments, sizes)
        self._unit = unit
        self._rng = np.random.default_rng(seed)

    def _results(self, expr: Expr) -> list[Any]:
        found = super()._results(expr)
        if not _rounds(expr):
            return found
        # A product of 16-bit floats is rounded to them, or reaches its readers in f32.
        is_rounded = isinstance(expr, Matmul) and expr.result.dtype.itemsize == 2
        unit = UNITS["bfloat16"] if self._unit and is_rounded else self._unit
        return [self._moved(x, unit) for x in found]

    def _moved(self, array: Any, unit: float) -> Any:
        """Return the numbers with noise; what is no float is as it was."""
        data: Any = array.data if isinstance(array, Emulated) else np.asarray(array)
        if not is_inexact(data.dtype):
            return array
        if data.dtype.itemsize == 2:
            data = data.astype(np.float32)
        noise = 1 + unit * self._rng.uniform(-1, 1, data.shape)
        moved = data * noise.astype(data.real.dtype)
        return Emulated(moved, array.dtype) if isinstance(array, Emulated) else moved


def _rounds(expr: Expr) -> bool:
    """Return whether an expression rounds; what chooses and moves does not."""
    match expr:
        case Pointwise(op):
            return op.name not in _EXACT
        case Reduce(op) | Scan(op):
            return op in (ReduceOp.SUM, ReduceOp.PROD, ReduceOp.MOMENTS)
        case _:
            return isinstance(expr, (Argument, Matmul, SumTo))


def spread(
    run: Any, wanted: Sequence[Any], unit: float, runs: int = RUNS
) -> list[float]:
    """Return how far runs with noise are from ``wanted``, output by output.

    ``run(unit, seed)`` gives the outputs of one. What is no number is infinitely far.
    """
    most = [0.0] * len(wanted)
    for seed in range(runs):
        gaps = map(gap, run(unit, seed), wanted)
        most = [max(pair) for pair in zip(most, gaps, strict=True)]
    return most


def gap(found: Any, wanted: Any) -> float:
    """Return the greatest difference of two arrays, infinite if one is no number."""
    wide = [np.asarray(x).astype(complex) for x in (found, wanted)]
    with np.errstate(all="ignore"):
        most = np.abs(wide[0] - wide[1]).max(initial=0)
    return float("inf") if np.isnan(most) else float(most)
