# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: A001 (a verb has the name that NumPy gives it)
"""Verbs that fold axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

import nfuser.compiler.ir.scalars.functions as scalar_functions
import nfuser.compiler.ops.elementwise.complex.parts as parts
import nfuser.compiler.ops.elementwise.logic as logic
import nfuser.compiler.ops.shapes.views as views
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import Reduce, ReduceOp
from nfuser.errors import ArgumentError, DTypeError, ShapeError

if TYPE_CHECKING:
    from nfuser.compiler.ir.scalars import scalar as sc
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.builder import Builder

Axes: TypeAlias = int | Sequence[int] | None


class FoldVerb(Protocol):
    """A verb that folds axes."""

    def __call__(
        self, b: Builder, x: TensorView, axis: Axes = None, *, keepdims: bool = False
    ) -> TensorView:
        """Fold the axes of ``x``."""
        ...


def _fold(
    b: Builder, op: ReduceOp, x: TensorView, axes: tuple[int, ...]
) -> tuple[TensorView, ...]:
    kept = [extent for k, extent in enumerate(x.shape) if k not in axes]
    dtype = DType.I64 if op in (ReduceOp.ARGMAX, ReduceOp.ARGMIN) else x.dtype
    count = 2 if op is ReduceOp.MOMENTS else 1
    found = tuple(b.new(kept, dtype) for _ in range(count))
    b.emit(Reduce(op, x, found, axes))
    return found


def _axes(x: TensorView, axis: Axes) -> tuple[int, ...]:
    """Return the axes to fold; NumPy folds a number along its first axis, or last."""
    is_number = not x.ndim and type(axis) is int and axis in (0, -1)
    return () if is_number else views.normal_axes(axis, x.ndim)


def _reduce(
    b: Builder, op: ReduceOp, x: TensorView, axis: Axes, keepdims: bool
) -> TensorView:
    axes = _axes(x, axis)
    if not axes:
        return b.point("copy", x)
    return _kept(b, _fold(b, op, x, axes)[0], axes, keepdims)


def _kept(
    b: Builder, x: TensorView, axes: tuple[int, ...], keepdims: bool
) -> TensorView:
    return views.expand_dims(b, x, axes) if keepdims else x


def summed(x: TensorView, dtype: DType | None) -> DType:
    """Return the dtype in which ``x`` adds up: small integers in 64 bits."""
    if dtype is not None:
        return dtype
    if x.dtype.is_bool or x.dtype.kind == "i":
        return DType.I64
    return DType.U64 if x.dtype.kind == "u" else x.dtype


def sum(
    b: Builder,
    x: TensorView,
    axis: Axes = None,
    *,
    dtype: DType | None = None,
    keepdims: bool = False,
) -> TensorView:
    """Return the sum; small integers add up in 64 bits."""
    operand = b.cast(x, summed(x, dtype))
    if operand.dtype.is_bool:
        return _reduce(b, ReduceOp.ANY, operand, axis, keepdims)
    return _reduce(b, ReduceOp.SUM, operand, axis, keepdims)


def prod(
    b: Builder,
    x: TensorView,
    axis: Axes = None,
    *,
    dtype: DType | None = None,
    keepdims: bool = False,
) -> TensorView:
    """Return the product; small integers multiply in 64 bits."""
    operand = b.cast(x, summed(x, dtype))
    if operand.dtype.is_complex:
        raise parts.refuse("prod")
    if operand.dtype.is_bool:
        return _reduce(b, ReduceOp.ALL, operand, axis, keepdims)
    return _reduce(b, ReduceOp.PROD, operand, axis, keepdims)


def _check_not_empty(
    b: Builder, name: str, x: TensorView, axes: tuple[int, ...]
) -> None:
    for place in axes:
        if b.ask(scalar_functions.equal(x.shape[place], 0)):
            message = (
                f"zero-size array to reduction operation {name} which has no identity"
            )
            raise ShapeError(message)


_OF_INTEGERS = {ReduceOp.FMAX: ReduceOp.MAX, ReduceOp.FMIN: ReduceOp.MIN}
_OF_BOOL = {
    ReduceOp.MAX: ReduceOp.ANY,
    ReduceOp.MIN: ReduceOp.ALL,
    ReduceOp.FMAX: ReduceOp.ANY,
    ReduceOp.FMIN: ReduceOp.ALL,
}


def _extremum(op: ReduceOp, says: str) -> FoldVerb:
    name = op.value if op in _OF_INTEGERS else f"{op.value}imum"

    def verb(
        b: Builder, x: TensorView, axis: Axes = None, *, keepdims: bool = False
    ) -> TensorView:
        if x.dtype.is_complex:
            raise parts.refuse(op.value)
        axes = _axes(x, axis)
        _check_not_empty(b, name, x, axes)
        if x.dtype.is_bool:
            return _reduce(b, _OF_BOOL[op], x, axes, keepdims)
        kind = op if x.dtype.is_float else _OF_INTEGERS.get(op, op)
        return _reduce(b, kind, x, axes, keepdims)

    verb.__doc__ = says
    return verb


max = _extremum(ReduceOp.MAX, "Return the largest element, NaN if there is one.")
min = _extremum(ReduceOp.MIN, "Return the smallest element, NaN if there is one.")
nanmax = _extremum(ReduceOp.FMAX, "Return the largest of the numbers, or else NaN.")
nanmin = _extremum(ReduceOp.FMIN, "Return the smallest of the numbers, or else NaN.")


def _truth(op: ReduceOp, says: str) -> FoldVerb:
    def verb(
        b: Builder, x: TensorView, axis: Axes = None, *, keepdims: bool = False
    ) -> TensorView:
        return _reduce(b, op, logic.truth(b, x), axis, keepdims)

    verb.__doc__ = says
    return verb


any = _truth(ReduceOp.ANY, "Return bool: whether some element is not zero.")
all = _truth(ReduceOp.ALL, "Return bool: whether no element is zero.")


def count_nonzero(
    b: Builder, x: TensorView, axis: Axes = None, *, keepdims: bool = False
) -> TensorView:
    """Return how many elements are not zero."""
    counted = b.cast(logic.truth(b, x), DType.I64)
    return sum(b, counted, axis, keepdims=keepdims)


def _place(op: ReduceOp, says: str) -> FoldVerb:
    def verb(
        b: Builder, x: TensorView, axis: Axes = None, *, keepdims: bool = False
    ) -> TensorView:
        if x.dtype.is_complex:
            raise parts.refuse(op.value)
        if isinstance(axis, (tuple, list)):
            message = f"{op.value} takes one axis or None, not {axis}"
            raise ArgumentError(message)
        axes = _axes(x, axis)
        for place in axes:
            if b.ask(scalar_functions.equal(x.shape[place], 0)):
                message = f"attempt to get {op.value} of an empty sequence"
                raise ShapeError(message)
        return _reduce(b, op, x, axes, keepdims) if axes else b.constant(0, DType.I64)

    verb.__doc__ = f"Return where the first {says} element is; the first NaN if any."
    return verb


argmax = _place(ReduceOp.ARGMAX, "largest")
argmin = _place(ReduceOp.ARGMIN, "smallest")


def count_of(x: TensorView, axes: tuple[int, ...]) -> sc.Scalar:
    """Return how many elements fold into one."""
    return scalar_functions.product(x.shape[k] for k in axes)


def mean(
    b: Builder,
    x: TensorView,
    axis: Axes = None,
    *,
    dtype: DType | None = None,
    keepdims: bool = False,
) -> TensorView:
    """Return the mean; that of integers is f64."""
    is_wide = dtype is None and x.dtype in (DType.I64, DType.U64)
    if dtype is None:
        dtype = x.dtype if x.dtype.is_float or x.dtype.is_complex else DType.F64
    axes = views.normal_axes(axis, x.ndim)
    total = (_sum_of_wide if is_wide else sum)(
        b, x, axes, dtype=dtype, keepdims=keepdims
    )
    count = count_of(x, axes)
    if dtype.is_complex:
        n = b.from_scalar(count, dtype.real)
        re = b.point("divide", parts.real(b, total), n)
        return parts.join(b, re, b.point("divide", parts.imag(b, total), n))
    if not dtype.is_float:
        return b.cast(_integer_mean(b, total, count), dtype)
    return b.point("divide", total, b.from_scalar(count, dtype))


def _sum_of_wide(
    b: Builder,
    x: TensorView,
    axis: Axes = None,
    *,
    dtype: DType | None = None,
    keepdims: bool = False,
) -> TensorView:
    """Return the sum of 64-bit integers in f64, which holds each of their halves."""
    low = b.point("bit_and", x, b.constant(2**32 - 1, x.dtype))
    high = b.point("right_shift", x, b.constant(32, x.dtype))
    below, above = (
        sum(b, half, axis, dtype=dtype, keepdims=keepdims) for half in (low, high)
    )
    scaled = b.point("multiply", above, b.constant(2.0**32, above.dtype))
    return b.point("add", scaled, below)


def _integer_mean(b: Builder, total: TensorView, count: sc.Scalar) -> TensorView:
    wide = b.cast(total, DType.F64)
    return b.point("divide", wide, b.from_scalar(count, DType.F64))


def moments(
    b: Builder, x: TensorView, axes: tuple[int, ...]
) -> tuple[TensorView, TensorView]:
    """Return the mean, and the sum of squared deviations from it."""
    if not axes:
        gap = b.point("subtract", x, x)
        return b.point("copy", x), b.point("multiply", gap, gap)
    mean_of, squares = _fold(b, ReduceOp.MOMENTS, x, axes)
    return mean_of, squares


def var_mean(
    b: Builder,
    x: TensorView,
    axis: Axes = None,
    *,
    dtype: DType | None = None,
    correction: float = 0,
    keepdims: bool = False,
) -> tuple[TensorView, TensorView]:
    """Return variance and mean; ``correction`` is taken from the divisor.

    The variance of complex numbers is real: that of the one part and of the other.
    """
    if dtype is None:
        dtype = x.dtype if x.dtype.is_float or x.dtype.is_complex else DType.F64
    if dtype.is_complex:
        sides = parts.real(b, z := b.cast(x, dtype)), parts.imag(b, z)
        (wide, re), (high, im) = (
            var_mean(b, t, axis, correction=correction, keepdims=keepdims)
            for t in sides
        )
        return b.point("add", wide, high), parts.join(b, re, im)
    if not dtype.is_float or x.dtype.is_complex:
        raise parts.refuse("var")
    axes = views.normal_axes(axis, x.ndim)
    mean_of, squares = moments(b, b.cast(x, dtype), axes)
    count = count_of(x, axes)
    if isinstance(correction, int):
        divisor = b.from_scalar(_reduced(b, count, correction), dtype)
    else:
        zero, less = b.constant(0.0, dtype), b.convert(float(correction), dtype)
        left = b.point("subtract", b.from_scalar(count, dtype), less)
        divisor = b.point("maximum", left, zero)
    variance = b.point("divide", squares, divisor)
    return _kept(b, variance, axes, keepdims), _kept(b, mean_of, axes, keepdims)


def _reduced(b: Builder, count: sc.Scalar, correction: int) -> sc.Scalar:
    """Return ``count - correction``, or 0 where that is less."""
    return (
        scalar_functions.maximum(count - correction, 0)
        if correction > 0
        else count - correction
    )


def var(
    b: Builder,
    x: TensorView,
    axis: Axes = None,
    *,
    dtype: DType | None = None,
    correction: float = 0,
    keepdims: bool = False,
) -> TensorView:
    """Return the variance."""
    both = var_mean(b, x, axis, dtype=dtype, correction=correction, keepdims=keepdims)
    return both[0]


def std(
    b: Builder,
    x: TensorView,
    axis: Axes = None,
    *,
    dtype: DType | None = None,
    correction: float = 0,
    keepdims: bool = False,
) -> TensorView:
    """Return the standard deviation."""
    variance = var(b, x, axis, dtype=dtype, correction=correction, keepdims=keepdims)
    return b.point("sqrt", variance)


def ptp(
    b: Builder, x: TensorView, axis: Axes = None, *, keepdims: bool = False
) -> TensorView:
    """Return the largest minus the smallest element."""
    if x.dtype.is_bool:
        message = "ptp is not supported for bool: it subtracts; use any(x) != all(x)"
        raise DTypeError(message)
    high = max(b, x, axis, keepdims=keepdims)
    low = min(b, x, axis, keepdims=keepdims)
    return b.point("subtract", high, low)
