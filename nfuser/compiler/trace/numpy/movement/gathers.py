# SPDX-License-Identifier: Apache-2.0
"""NumPy's take and take_along_axis on stand-ins, and what indices may be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ops as ops
import nfuser.compiler.trace.numpy.names.refusals as refusals
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.scalars.functions import equal, less, product
from nfuser.compiler.trace.numpy.movement.moves import ravel
from nfuser.compiler.trace.standins.literals import array_of, constant, holds_standins
from nfuser.compiler.trace.standins.sizes import is_sequence, passed_integer, size
from nfuser.compiler.trace.standins.standin import (
    Standin,
    chosen_by_masks,
    is_ndarray,
)
from nfuser.compiler.trace.standins.symbolic import SymbolicInt
from nfuser.errors import OptionError, ShapeError, TraceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.trace.tracer import Tracer


def index_tensor(t: Tracer, item: Any) -> TensorView:
    """Return an index array: a traced one, a captured one, or a list of integers."""
    if is_ndarray(item):
        try:
            held = t.tensor(item)
        except TraceError:
            held = constant(t, item)
    elif is_sequence(item) and not holds_standins(item):
        listed = np.asarray(item)
        held = constant(t, listed if listed.size else listed.astype(np.int64))
    else:
        held = array_of(t, item)
    return t.builder.cast(held, DType.I64) if held.dtype is DType.U64 else held


def check_range(
    t: Tracer,
    item: Any,
    extent: Scalar,
    axis: int,
    name: str,
    before: Sequence[Scalar] = (),
) -> None:
    """Refuse numbers known while tracing that lie outside an axis.

    Where an axis in ``before`` is empty, NumPy's take does not look at them.
    """
    if hasattr(item, "_operand") or holds_standins(item):
        return
    if not (is_sequence(item) or isinstance(item, (int, np.ndarray, np.integer))):
        return
    known = np.asarray(item)
    if not known.size or known.dtype.kind not in "iu":
        return
    for number in (int(known.max()), int(known.min())):
        inside = less(number if number >= 0 else -1 - number, extent)
        if t.ask(inside, usual=1):
            continue
        if not t.ask(equal(product(before), 0)):
            raise refusals.out_of_range(number, axis, t.builder.today(extent), name)


def passed_number(t: Tracer, item: Any) -> Any:
    """Return an integer that the caller passed, which stays open, or None.

    What is computed of such ones in NumPy's arithmetic becomes a guard.
    """
    if isinstance(item, SymbolicInt):
        return item
    held: TensorView = t.operand(item)
    if not held.dtype.is_integer:
        return None
    passed = passed_integer(t, held)
    if passed is not None:
        return SymbolicInt(t, passed)
    found = t.consume_if_number(held, None)
    return None if found is None else int(found)


def take(
    t: Tracer,
    a: Any,
    indices: Any,
    axis: Any = None,
    out: Any = None,
    mode: str = "raise",
) -> Any:
    """Return ``numpy.take``."""
    if out is not None:
        raise refusals.keyword("take", "out")
    if mode not in ("raise", "clip", "wrap"):
        message = f"take: clipmode must be 'raise', 'clip' or 'wrap', found {mode!r}"
        raise OptionError(message)
    if axis is None:
        a, axis = ravel(t, a), 0
    held = t.tensor(a)
    place = ops.normal_axis(axis, held.ndim)
    if type(indices) in chosen_by_masks and mode == "raise":
        return t.wrap(held)[(*(slice(None),) * place, indices)]
    extent = held.shape[place]
    if mode == "raise" and isinstance(indices, Standin):
        number = passed_number(t, indices)
        if number is not None:
            return t.apply(ops.take_index, held, place, size(t, number, "take"))
    index = index_tensor(t, indices)
    if index.dtype.is_bool:
        index = t.builder.cast(index, DType.I64)
    if mode == "raise":
        check_range(t, indices, extent, place, "take", held.shape[:place])
    elif mode == "clip":
        index = ops.clipped_index(t.builder, index)
    else:
        index = ops.wrapped_index(t.builder, index, extent)
    return t.apply(ops.take, held, index, place)


def take_along_axis(t: Tracer, arr: Any, indices: Any, axis: Any = -1) -> Any:
    """Return ``numpy.take_along_axis``."""
    index = index_tensor(t, indices)
    if axis is None:
        if index.ndim != 1:
            message = (
                "take_along_axis: when axis=None, `indices` must have a single "
                f"dimension, found {index.ndim}"
            )
            raise ShapeError(message)
        arr, axis = ravel(t, arr), 0
    held = t.tensor(arr)
    place = ops.normal_axis(axis, held.ndim)
    check_range(t, indices, held.shape[place], place, "take_along_axis")
    return t.apply(ops.take_along_axis, held, index, place)


HANDLERS: dict[str, Any] = {"take": take, "take_along_axis": take_along_axis}
