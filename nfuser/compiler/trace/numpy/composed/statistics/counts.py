# SPDX-License-Identifier: Apache-2.0
"""How many elements there are of each kind, or what their weights add up to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ir.scalars.functions as scalar_functions
import nfuser.compiler.ops as ops
from nfuser.compiler.dtypes import DType, as_dtype
from nfuser.compiler.ir.expr import ScatterOp
from nfuser.compiler.trace.numpy.composed.parts import array
from nfuser.compiler.trace.standins.sizes import size
from nfuser.errors import DTypeError, OptionError, ShapeError, UnsupportedError

if TYPE_CHECKING:
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.trace.tracer import Tracer

_TOO_SMALL = (
    "give np.bincount a minlength above the greatest number, none of which may be "
    "negative: found numbers from {low} to {high}"
)


def bincount(t: Tracer, x: Any, /, weights: Any = None, minlength: Any = 0) -> Any:
    """Return ``numpy.bincount`` of numbers that are all less than ``minlength``."""
    numbers = array(t, x)
    if numbers.ndim != 1:
        message = f"bincount: expected one dimension, found {numbers.ndim}"
        raise ShapeError(message)
    if not np.can_cast(numbers.dtype, np.int64):
        message = (
            f"write x.astype(np.int64): bincount: Cannot cast array data from "
            f"{numbers.dtype} to int64 according to the rule 'safe'"
        )
        raise DTypeError(message)
    length = size(t, minlength, "bincount")
    if t.ask(scalar_functions.less(length, 0)):
        message = "bincount: 'minlength' must not be negative"
        raise OptionError(message)
    if isinstance(length, int) and not length:
        message = (
            "write np.bincount(x, minlength=n), all of x being less than n: how long "
            "the result is depends on values otherwise"
        )
        raise UnsupportedError(message)
    return counted(t, numbers, weights_of(t, weights, numbers), length, _TOO_SMALL)


def weights_of(t: Tracer, weights: Any, counted: Any) -> Any:
    """Return weights, one for each of what is counted, as floats of 64 bits each."""
    if weights is None:
        return None
    found = array(t, weights)
    if found.shape != counted.shape:
        message = (
            "bincount and histogram: expected a weight for each of what is counted"
        )
        raise ShapeError(message)
    kind = as_dtype(np.result_type(found.dtype, np.float64))
    flat = t.tensor(found.reshape(-1))
    return t.wrap(t.builder.cast(flat, kind))  # astype would copy


def counted(
    t: Tracer, places: Any, weights: Any, length: Scalar | int, complaint: str
) -> Any:
    """Return how many of ``places``, or what weights of theirs, each of them has.

    There are ``length``; ``complaint`` is about a place that is none of them.
    """
    b = t.builder
    held = b.cast(t.tensor(places), DType.I64)  # astype would copy
    if weights is None:
        kind = DType.I64
        value = ops.broadcast_to(b, b.constant(1, kind), held.shape)
    else:
        value = t.tensor(weights)
        kind = value.dtype
    zeros = ops.full(b, (length,), 0, kind)
    return t.wrap(ops.scatter_rows(b, ScatterOp.ADD, zeros, held, value, complaint))


HANDLERS = {"bincount": bincount}
