# SPDX-License-Identifier: Apache-2.0
"""Arrays that come of numbers alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import nfuser.compiler.ops.shapes.views as views
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import Iota
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.functions import maximum
from nfuser.compiler.ops.elementwise.arithmetic import (
    add,
    copy,
    divide,
    floor_divide,
    multiply,
    subtract,
)
from nfuser.compiler.ops.elementwise.logic import equal, greater_equal, where

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.builder import Builder, Operand


def full(
    b: Builder, shape: Sequence[Scalar | int], fill: Operand, dtype: DType | None = None
) -> TensorView:
    """Return an array of ``shape`` with one value everywhere."""
    element = b.tensor(fill) if dtype is None else b.convert(fill, dtype)
    return views.broadcast_to(b, element, shape)


def full_like(
    b: Builder, x: TensorView, fill: Operand, dtype: DType | None = None
) -> TensorView:
    """Return an array shaped as ``x`` with one value everywhere."""
    return full(b, x.shape, fill, dtype or x.dtype)


def laid_like(
    b: Builder, made: TensorView, x: TensorView, order: str | None
) -> TensorView:
    """Return ``made`` in the memory order that a copy of ``x`` in ``order`` has.

    A choice that is never taken says so: rewriting leaves nothing of it.
    """
    laid = b.cast(copy(b, x, order), made.dtype)
    return where(b, b.constant(False, DType.BOOL), laid, made)


def arange(
    b: Builder,
    count: Scalar | int,
    start: Operand = 0,
    step: Operand = 1,
    dtype: DType = DType.I64,
) -> TensorView:
    """Return ``start + step * i`` for i below ``count``."""
    views.check_sizes(b, "arange", [sc.as_scalar(count)])
    index = b.new((count,), DType.I64)
    b.emit(Iota(index))
    if dtype is DType.I64 and (start, step) == (0, 1):
        return index
    scaled = b.point("multiply", b.cast(index, dtype), b.convert(step, dtype))
    return b.point("add", scaled, b.convert(start, dtype))


def diagonal_mask(
    b: Builder,
    rows: Scalar | int,
    columns: Scalar | int,
    offset: Scalar | int = 0,
    *,
    below: bool = False,
) -> TensorView:
    """Return where the diagonal ``offset`` places above the main one is True.

    With ``below``, all that lies under it is, too.
    """
    down = views.expand_dims(b, arange(b, rows), 1)
    across = subtract(b, arange(b, columns), sc.as_scalar(offset))
    return (greater_equal if below else equal)(b, down, across)


def linspace(
    b: Builder,
    start: Operand,
    stop: Operand,
    count: Scalar | int,
    dtype: DType | None = None,
    *,
    endpoint: bool = True,
) -> TensorView:
    """Return ``count`` numbers evenly spaced from ``start`` to ``stop``.

    They are computed in f64, or in f32 where both ends are f32, as NumPy does.
    """
    is_short = all(b.type_of(x) is DType.F32 for x in (start, stop))
    kind = DType.F32 if is_short else DType.F64
    first, last = (b.convert(x, kind) for x in (start, stop))
    number = sc.as_scalar(count)
    parts = maximum(number - 1, 1) if endpoint else maximum(number, 1)
    delta = subtract(b, last, first)
    divisor = b.from_scalar(parts, kind)
    step = divide(b, delta, divisor)
    index = b.cast(arange(b, number), kind)
    # A step that underflows to 0 is put off, as NumPy does.
    small = multiply(b, divide(b, index, divisor), delta)
    grown = where(b, equal(b, step, 0.0), small, multiply(b, index, step))
    made = add(b, grown, first)
    if endpoint:
        at_end = equal(b, arange(b, number), maximum(number - 1, 1))
        made = where(b, at_end, last, made)
    if dtype is None or dtype is kind:
        return b.cast(made, dtype or DType.F64)
    if dtype.is_integer:
        made = floor_divide(b, made, 1.0)
    return b.cast(made, dtype)
