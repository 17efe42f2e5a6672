# SPDX-License-Identifier: Apache-2.0
"""Operations of ``fd.ops`` that make arrays, and the triangles of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nfuser.compiler.ops as ops
from nfuser.compiler.dtypes import DType
from nfuser.errors import ShapeError
from nfuser.frontend.definition.operations.shapes import extents_of
from nfuser.frontend.definition.types import DataType, dtype_or_none

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.frontend.definition.draft import Draft


def _full(d: Draft, shape: Any, fill_value: Any, dtype: Any = DataType.Null) -> Any:
    """Return an array of one value."""
    wanted = dtype_or_none(dtype)
    element = d.operand(fill_value)
    return ops.full(d.builder, extents_of(d, shape), element, wanted)


def _filled(number: int) -> Any:
    def operation(d: Draft, shape: Any, dtype: Any = DataType.Float) -> Any:
        return _full(d, shape, number, dtype)

    operation.__doc__ = f"Return an array of {number}."
    return operation


def _filled_like(number: int) -> Any:
    def operation(d: Draft, arg: Any, dtype: Any = DataType.Null) -> Any:
        wanted = dtype_or_none(dtype)
        return ops.full_like(d.builder, d.tensor(arg), number, wanted)

    operation.__doc__ = f"Return an array of {number}, of the shape of ``arg``."
    return operation


def _iota(
    d: Draft, length: Any, start: Any = 0, step: Any = 1, dtype: Any = DataType.Int
) -> Any:
    """Return ``start + step * i`` for i below ``length``."""
    wanted = dtype_or_none(dtype) or DType.I64
    first = d.held_by(wanted, start, "the start of iota")
    stride = d.held_by(wanted, step, "the step of iota")
    return ops.arange(d.builder, d.extent(length), first, stride, wanted)


def _linspace(
    d: Draft,
    start: Any,
    stop: Any,
    num: Any,
    endpoint: bool = True,
    dtype: Any = DataType.Double,
) -> Any:
    """Return ``num`` numbers evenly spaced between two numbers."""
    first, last = d.tensor(start), d.tensor(stop)
    if any(x.ndim or x.dtype.is_complex for x in (first, last)):
        message = "expected two real numbers for start and stop"
        raise ShapeError(message)
    wanted = dtype_or_none(dtype)
    count = d.extent(num)
    return ops.linspace(d.builder, first, last, count, wanted, endpoint=endpoint)


def _eye(
    d: Draft, n: Any, m: Any = None, k: Any = 0, dtype: Any = DataType.Float
) -> Any:
    """Return ones on the diagonal ``k`` places above the main one, else zeros."""
    return _mask(d, n, m, k, dtype, below=False)


def _tri(
    d: Draft, n: Any, m: Any = None, k: Any = 0, dtype: Any = DataType.Float
) -> Any:
    """Return ones on a diagonal and below, else zeros."""
    return _mask(d, n, m, k, dtype, below=True)


def _mask(d: Draft, n: Any, m: Any, k: Any, dtype: Any, *, below: bool) -> Any:
    rows = d.extent(n)
    columns = rows if m is None else d.extent(m)
    offset = d.integer(k, "a diagonal")
    made = ops.diagonal_mask(d.builder, rows, columns, offset, below=below)
    return ops.astype(d.builder, made, dtype_or_none(dtype) or DType.F32)


def _triangle(*, lower: bool) -> Any:
    def operation(d: Draft, arg: Any, diagonal: Any = 0) -> Any:
        b, x = d.builder, d.tensor(arg)
        if x.ndim < 2:
            message = f"expected at least two axes, found shape {d.shape_text(x)}"
            raise ShapeError(message)
        rows, columns = x.shape[-2:]
        offset = d.integer(diagonal, "a diagonal") - (0 if lower else 1)
        below = ops.diagonal_mask(b, rows, columns, offset, below=True)
        zero = b.constant(False if x.dtype.is_bool else 0, x.dtype)
        inside, outside = (x, zero) if lower else (zero, x)
        return ops.where(b, below, inside, outside)

    side = "below" if lower else "above"
    operation.__doc__ = f"Keep a diagonal and what lies {side} it; zeros elsewhere."
    return operation


CREATION: dict[str, Callable[..., Any]] = {
    "eye": _eye,
    "full": _full,
    "iota": _iota,
    "linspace": _linspace,
    "ones": _filled(1),
    "ones_like": _filled_like(1),
    "tri": _tri,
    "tril": _triangle(lower=True),
    "triu": _triangle(lower=False),
    "zeros": _filled(0),
    "zeros_like": _filled_like(0),
}
