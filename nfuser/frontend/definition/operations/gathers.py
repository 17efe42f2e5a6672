# SPDX-License-Identifier: Apache-2.0
"""Operations of ``fd.ops`` that read and write elements where an index says.

An index counts from the end if it is negative. Numbers that name no element are
refused; elements of an index tensor that name none read the nearest one, and raise
where something is written.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import nfuser.compiler.ir.scalars.functions as scalar_functions
import nfuser.compiler.ops as ops
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import ScatterOp
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.errors import AxisError, DTypeError, ShapeError
from nfuser.frontend.definition.draft import INTEGERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.frontend.definition.draft import Draft


def _index(d: Draft, item: Any) -> TensorView:
    """Return a tensor of integers."""
    index = d.tensor(item)
    if not index.dtype.is_integer or index in d.builder.weak:
        message = f"an index is a tensor of integers, found {item!r}"
        raise DTypeError(message)
    return d.builder.cast(index, DType.I64) if index.dtype is DType.U64 else index


def _element(d: Draft, x: TensorView, axis: int, index: Any) -> TensorView:
    """Take the element at a number that is known before the kernels run."""
    extent, number = x.shape[axis], d.integer(index, "an index")
    text = f"index {index} is out of bounds for axis {axis} of shape {d.shape_text(x)}"
    is_behind = scalar_functions.less(number, 0)
    start = scalar_functions.select(is_behind, number + extent, number)
    for gap in (start, extent - 1 - start):
        if isinstance(gap, sc.Const) and gap.value < 0:
            raise AxisError(text)
        d.require_natural(gap, f"{text}, by {{}}")
    starts: list[sc.Scalar] = [sc.const(0)] * x.ndim
    extents = list(x.shape)
    starts[axis], extents[axis] = start, sc.const(1)
    one = ops.sliced(d.builder, x, starts, extents, (1,) * x.ndim)
    return ops.squeeze(d.builder, one, axis)


def _is_number(d: Draft, index: Any) -> bool:
    return isinstance(d.operand(index), (int, *INTEGERS))


def _select(d: Draft, arg: Any, index: Any, dim: int) -> Any:
    """Take one element along ``dim``, which is gone afterwards."""
    x = d.tensor(arg)
    place = ops.normal_axis(dim, x.ndim)
    if _is_number(d, index):
        return _element(d, x, place, index)
    chosen = _index(d, index)
    if chosen.ndim:
        message = f"an index of select has no axes, found shape {d.shape_text(chosen)}"
        raise ShapeError(message)
    return ops.take(d.builder, x, chosen, place)


def _index_select(d: Draft, arg: Any, index: Any, dim: int) -> Any:
    """Take the elements along ``dim`` that a tensor names, of one axis or of none."""
    x, chosen = d.tensor(arg), _index(d, index)
    if chosen.ndim > 1:
        message = (
            "an index of index_select has one axis, found shape "
            f"{d.shape_text(chosen)}; take has no such limit"
        )
        raise ShapeError(message)
    line = ops.at_least(d.builder, chosen, 1)
    return ops.take(d.builder, x, line, ops.normal_axis(dim, x.ndim))


def _take(
    d: Draft, arg: Any, index: Any, dim: int | None = None, mode: str = "raise"
) -> Any:
    """Take the elements along ``dim`` that ``index`` names; its axes stand there."""
    if mode not in ("raise", "clip", "wrap"):
        message = f"mode is 'raise', 'clip' or 'wrap', found {mode!r}"
        raise ShapeError(message)
    x = d.tensor(arg)
    if dim is None:
        x, dim = ops.reshape(d.builder, x, [-1]), 0
    place = ops.normal_axis(dim, x.ndim)
    if _is_number(d, index) and mode == "raise":
        return _element(d, x, place, index)
    chosen = _index(d, index)
    if mode == "clip":
        chosen = ops.clipped_index(d.builder, chosen)
    elif mode == "wrap":
        chosen = ops.wrapped_index(d.builder, chosen, x.shape[place])
    return ops.take(d.builder, x, chosen, place)


def _gather(d: Draft, arg: Any, index: Any, dim: int) -> Any:
    """Take one element along ``dim`` for each of ``index``, which may be smaller."""
    x, chosen = d.tensor(arg), _index(d, index)
    place = ops.normal_axis(dim, x.ndim)
    if chosen.ndim != x.ndim:
        message = (
            f"the index has {chosen.ndim} axes for the {x.ndim} of the tensor: shapes "
            f"{d.shape_text(chosen)} and {d.shape_text(x)}"
        )
        raise ShapeError(message)
    extents = list(chosen.shape)
    extents[place] = x.shape[place]
    text = (
        f"the index, of shape {d.shape_text(chosen)}, is longer than the tensor, of "
        f"shape {d.shape_text(x)}, along axis"
    )
    for k, extent in enumerate(extents):
        d.require_natural(x.shape[k] - extent, f"{text} {k}, by {{}}")
    if any(a is not b for a, b in zip(extents, x.shape, strict=True)):
        x = ops.sliced(d.builder, x, [sc.const(0)] * x.ndim, extents, (1,) * x.ndim)
    return ops.take_along_axis(d.builder, x, chosen, place)


def _scatter(d: Draft, arg1: Any, index: Any, src: Any, dim: int) -> Any:
    """Set one element along ``dim`` for each of ``index``: the last one stays.

    What is set are the first elements of ``src`` along each axis, or that number.
    """
    x, chosen, value = d.tensor(arg1), _index(d, index), d.tensor(src)
    place = ops.normal_axis(dim, x.ndim)
    held = (x, value) if value.ndim else (x,)
    if any(t.ndim != chosen.ndim for t in held):
        shapes = " and ".join(d.shape_text(t) for t in (chosen, *held))
        message = f"scatter takes tensors of as many axes, found shapes {shapes}"
        raise ShapeError(message)
    for t in held:
        text = (
            f"the index, of shape {d.shape_text(chosen)}, is longer than the tensor, "
            f"of shape {d.shape_text(t)}, along axis"
        )
        for k, extent in enumerate(chosen.shape):
            if t is value or k != place:
                d.require_natural(t.shape[k] - extent, f"{text} {k}, by {{}}")
    zeros, ones = [sc.const(0)] * x.ndim, (1,) * x.ndim
    if not value.ndim:
        value = ops.broadcast_to(d.builder, value, chosen.shape)
    elif any(a is not b for a, b in zip(chosen.shape, value.shape, strict=True)):
        value = ops.sliced(d.builder, value, zeros, list(chosen.shape), ones)
    return ops.scatter_along(d.builder, ScatterOp.SET, x, place, chosen, value)


def _take_along_axis(d: Draft, arg: Any, index: Any, dim: int) -> Any:
    """Take one element along ``dim`` for each of ``index``; the other axes stretch."""
    x, chosen = d.tensor(arg), _index(d, index)
    return ops.take_along_axis(d.builder, x, chosen, ops.normal_axis(dim, x.ndim))


def _embedding(
    d: Draft,
    input: Any,  # noqa: A002 (nvFuser's name)
    weight: Any,
    padding_idx: Any = None,
    max_norm: Any = None,
    norm_type: Any = None,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """Take rows of ``weight``; those of a norm above ``max_norm`` are scaled to it.

    ``norm_type`` is the power of that norm. The other arguments matter to gradients.
    """
    del padding_idx, scale_grad_by_freq, sparse
    table = d.tensor(weight)
    if table.ndim != 2:
        message = f"the weight has two axes, found shape {d.shape_text(table)}"
        raise ShapeError(message)
    rows = ops.take(d.builder, table, _index(d, input), 0)
    if max_norm is None:
        return rows
    power = 2.0 if norm_type is None else norm_type
    return _renormed(d, rows, d.operand(max_norm), power)


def _renormed(d: Draft, rows: TensorView, limit: Any, power: Any) -> TensorView:
    """Return rows none of which has a norm above ``limit``, as PyTorch scales them."""
    if isinstance(power, bool) or not isinstance(power, int | float):
        message = f"pass a number as norm_type: found {type(power).__name__}"
        raise DTypeError(message)
    b = d.builder
    size = ops.absolute(b, rows)
    if power == math.inf:
        norm = ops.max(b, size, -1, keepdims=True)
    elif power == 2:
        norm = ops.sqrt(b, ops.sum(b, ops.square(b, size), -1, keepdims=True))
    else:
        total = ops.sum(b, ops.power(b, size, float(power)), -1, keepdims=True)
        norm = ops.power(b, total, 1 / power)
    scale = ops.divide(b, limit, ops.add(b, norm, 1e-7))
    scale = ops.where(b, ops.greater(b, norm, limit), scale, 1.0)
    return ops.multiply(b, rows, scale)


GATHERS: dict[str, Callable[..., Any]] = {
    "embedding_fwd": _embedding,
    "gather": _gather,
    "index_select": _index_select,
    "scatter": _scatter,
    "select": _select,
    "take": _take,
    "take_along_axis": _take_along_axis,
}
