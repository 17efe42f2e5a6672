# SPDX-License-Identifier: Apache-2.0
"""Folds of rows that have one id, which stands beside each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ir.scalars.functions as scalar_functions
import nfuser.compiler.ops as ops
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import ScatterOp
from nfuser.compiler.trace.numpy.composed.parts import array
from nfuser.compiler.trace.numpy.composed.statistics.counts import counted
from nfuser.compiler.trace.standins.sizes import size
from nfuser.errors import DTypeError, OptionError, ShapeError

if TYPE_CHECKING:
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.trace.tracer import Tracer

_OPS = {
    "add": ScatterOp.ADD,
    "maximum": ScatterOp.MAX,
    "minimum": ScatterOp.MIN,
}
_OUTSIDE = "write ids from 0 to less than num_segments: found ids from {low} to {high}"


def fold_segments(t: Tracer, how: str, data: Any, ids: Any, count: Any) -> Any:
    """Return what the rows of each id are, folded by ``how``."""
    rows, marks, number = _given(t, data, ids, count)
    b, held = t.builder, t.tensor(rows)
    first = _identity(how, held.dtype)
    start = ops.full(b, (number, *held.shape[1:]), first, held.dtype)
    return t.wrap(ops.scatter_rows(b, _OPS[how], start, marks, held, _OUTSIDE))


def mean_of_segments(t: Tracer, data: Any, ids: Any, count: Any) -> Any:
    """Return the mean of the rows of each id."""
    rows, marks, number = _given(t, data, ids, count)
    rows = rows if rows.dtype.kind in "fc" else rows.astype(np.float64)
    total = fold_segments(t, "add", rows, ids, count)
    found = counted(t, t.wrap(marks), None, number, _OUTSIDE).astype(total.dtype)
    return total / found.reshape((-1, *(1,) * (rows.ndim - 1)))


def _given(t: Tracer, data: Any, ids: Any, count: Any) -> tuple[Any, Any, Scalar | int]:
    rows, marks = array(t, data), array(t, ids)
    if marks.dtype.kind not in "iu":
        message = (
            f"write segment_ids.astype(int): expected integers, found {marks.dtype}"
        )
        raise DTypeError(message)
    if marks.ndim != 1 or not rows.ndim or rows.shape[0] != marks.shape[0]:
        message = "expected one segment id for each row of the data"
        raise ShapeError(message)
    number = size(t, count, "segment")
    if t.ask(scalar_functions.less(number, 0)):
        message = "num_segments must not be negative"
        raise OptionError(message)
    return rows, t.builder.cast(t.tensor(marks), DType.I64), number


def _identity(how: str, dtype: DType) -> Any:
    """Return what changes nothing where it is folded with others."""
    if how == "add":
        return 0
    if dtype.is_complex:
        message = f"segment_{how[:3]}: expected real numbers, found {dtype}"
        raise DTypeError(message)
    is_least = how == "maximum"
    if dtype.is_float:
        return float("-inf" if is_least else "inf")
    if dtype.is_bool:
        return not is_least
    limits = np.iinfo(dtype.numpy.name)
    return int(limits.min if is_least else limits.max)
