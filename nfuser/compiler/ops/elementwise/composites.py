# SPDX-License-Identifier: Apache-2.0
"""Activations and normalizations, written with the other verbs.

Constants keep all their digits beside 16-bit floats, since kernels compute those in
f32.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import nfuser.compiler.ops.elementwise.arithmetic as arithmetic
import nfuser.compiler.ops.elementwise.complex.parts as parts
import nfuser.compiler.ops.elementwise.float_rows as ff
import nfuser.compiler.ops.folds.reduction as reduction
import nfuser.compiler.ops.rules as rules
import nfuser.compiler.ops.shapes.views as views
from nfuser.compiler.dtypes import DType, promote
from nfuser.compiler.ir.expr import Pointwise
from nfuser.compiler.ir.point_op import PointOp
from nfuser.errors import ArgumentError

if TYPE_CHECKING:
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.builder import Builder, Operand
    from nfuser.compiler.ops.folds.reduction import Axes


def _float(b: Builder, name: str, x: Operand) -> TensorView:
    return b.convert(x, rules.float_type(b, name, x))


def _decay(b: Builder, z: Operand) -> TensorView:
    """Return ``1 + exp(-z)`` of complex numbers."""
    return arithmetic.add(b, 1, ff.exp(b, arithmetic.negative(b, z)))


def sigmoid(b: Builder, x: Operand) -> TensorView:
    """Return ``1 / (1 + exp(-x))``."""
    if b.promote(x).is_complex:
        return arithmetic.reciprocal(b, _decay(b, x))
    operand = _float(b, "sigmoid", x)
    below = b.point("exp", b.point("negative", operand))
    below = b.point("add", below, b.constant(1.0, operand.dtype))
    return _known_as(b, "sigmoid", operand, b.point("reciprocal", below))


def _known_as(b: Builder, name: str, x: TensorView, made: TensorView) -> TensorView:
    """Return ``made``, which derivatives take for the function ``name`` of ``x``."""
    b.meant[made] = Pointwise(PointOp(name, 1, "float"), (x,), made)
    return made


def silu(b: Builder, x: Operand) -> TensorView:
    """Return ``x * sigmoid(x)``, 0 at -inf."""
    if b.promote(x).is_complex:
        return arithmetic.divide(b, x, _decay(b, x))
    operand = _float(b, "silu", x)
    below = b.point("exp", b.point("negative", operand))
    below = b.point("add", below, b.constant(1.0, operand.dtype))
    quotient = b.point("divide", operand, below)
    lowest = b.constant(-math.inf, operand.dtype)
    bottom = b.point("equal", operand, lowest)
    made = b.point("select", bottom, b.constant(-0.0, operand.dtype), quotient)
    return _known_as(b, "silu", operand, made)


def relu(b: Builder, x: Operand) -> TensorView:
    """Return ``x`` where it is positive, else 0; NaN stays."""
    operand = b.tensor(x)
    if operand.dtype.is_complex:
        raise parts.refuse("relu")
    if operand.dtype.is_bool:
        return b.point("copy", operand)
    zero = b.constant(0.0 if operand.dtype.is_float else 0, operand.dtype)
    return _known_as(b, "relu", operand, b.point("maximum", operand, zero))


def gelu(b: Builder, x: Operand, *, approximate: str = "none") -> TensorView:
    """Return ``x`` times the normal distribution at ``x``.

    ``approximate="tanh"`` takes the usual fit instead of the error function.
    """
    operand = _float(b, "gelu", x)
    dtype = operand.dtype
    half, one = b.constant(0.5, dtype), b.constant(1.0, dtype)
    if approximate == "tanh":
        # (1 + tanh(u)) / 2 is 1 / (1 + exp(-2 u)), exact where it is small, too.
        cube = b.point("multiply", b.point("multiply", operand, operand), operand)
        fit = b.point("multiply", cube, b.constant(0.044715, dtype))
        inner = b.point("add", operand, fit)
        root = b.constant(-2 * math.sqrt(2 / math.pi), dtype)
        decay = b.point("exp", b.point("multiply", inner, root))
        made = b.point("divide", operand, b.point("add", decay, one))
        return _known_as(b, "gelu_tanh", operand, made)
    if approximate == "none":
        scaled = b.point("multiply", operand, b.constant(math.sqrt(0.5), dtype))
        bend = b.point("erf", scaled)
    else:
        message = f"approximate is 'none' or 'tanh', not {approximate!r}"
        raise ArgumentError(message)
    scaled = b.point("multiply", operand, half)
    return b.point("multiply", scaled, b.point("add", bend, one))


def softplus(b: Builder, x: Operand) -> TensorView:
    """Return ``log(1 + exp(x))``."""
    operand = _float(b, "softplus", x)
    return b.point("logaddexp", operand, b.constant(0.0, operand.dtype))


def _norm_operand(b: Builder, x: TensorView) -> TensorView:
    if x.dtype.is_complex:
        raise parts.refuse("this function")
    return x if x.dtype.is_float else b.cast(x, DType.F64)


def softmax(b: Builder, x: TensorView, axis: Axes = -1) -> TensorView:
    """Return ``exp(x)`` over its sum along ``axis``, without overflow."""
    operand = _norm_operand(b, x)
    top = reduction.max(b, operand, axis, keepdims=True)
    b.stopped.add(top)  # what is subtracted changes nothing
    grown = ff.exp(b, b.point("subtract", operand, top))
    total = reduction.sum(b, grown, axis, keepdims=True)
    return b.point("divide", grown, total)


def log_softmax(b: Builder, x: TensorView, axis: Axes = -1) -> TensorView:
    """Return the logarithm of ``softmax``."""
    operand = _norm_operand(b, x)
    top = _finite_top(b, operand, axis)
    shifted = b.point("subtract", operand, top)
    total = reduction.sum(b, ff.exp(b, shifted), axis, keepdims=True)
    return b.point("subtract", shifted, b.point("log", total))


def _finite_top(b: Builder, x: TensorView, axis: Axes) -> TensorView:
    top = reduction.max(b, x, axis, keepdims=True)
    zero = b.constant(0.0, x.dtype)
    made = b.point("select", b.point("isfinite", top), top, zero)
    b.stopped.add(made)  # what is subtracted, and added, changes nothing
    return made


def logsumexp(
    b: Builder, x: TensorView, axis: Axes = None, *, keepdims: bool = False
) -> TensorView:
    """Return ``log(sum(exp(x)))``, without overflow."""
    operand = _norm_operand(b, x)
    axes = views.normal_axes(axis, x.ndim)
    top = _finite_top(b, operand, axes)
    grown = ff.exp(b, b.point("subtract", operand, top))
    total = reduction.sum(b, grown, axes, keepdims=True)
    result = b.point("add", b.point("log", total), top)
    return result if keepdims else views.drop(b, result, axes)


def layer_norm(
    b: Builder,
    x: TensorView,
    weight: TensorView | None = None,
    bias: TensorView | None = None,
    *,
    axis: Axes = -1,
    eps: float = 1e-5,
) -> TensorView:
    """Return ``x`` with mean 0 and variance 1 along ``axis``, scaled and shifted."""
    operand = _norm_operand(b, x)
    axes = views.normal_axes(axis, x.ndim)
    mean, squares = reduction.moments(b, operand, axes)
    count = b.from_scalar(reduction.count_of(x, axes), operand.dtype)
    variance = b.point("divide", squares, count)
    shifted = b.point("add", variance, b.constant(float(eps), operand.dtype))
    scale = views.expand_dims(b, b.point("rsqrt", shifted), axes)
    centred = b.point("subtract", operand, views.expand_dims(b, mean, axes))
    return _affine(b, b.point("multiply", centred, scale), weight, bias)


def rms_norm(
    b: Builder,
    x: TensorView,
    weight: TensorView | None = None,
    *,
    axis: Axes = -1,
    eps: float = 1e-6,
) -> TensorView:
    """Return ``x`` over its root mean square along ``axis``, scaled."""
    operand = _norm_operand(b, x)
    axes = views.normal_axes(axis, x.ndim)
    square = b.point("multiply", operand, operand)
    mean = reduction.mean(b, square, axes, keepdims=True)
    shifted = b.point("add", mean, b.constant(float(eps), operand.dtype))
    normal = b.point("multiply", operand, b.point("rsqrt", shifted))
    return _affine(b, normal, weight, None)


def _affine(
    b: Builder, x: TensorView, weight: TensorView | None, bias: TensorView | None
) -> TensorView:
    if weight is not None:
        dtype = promote(x.dtype, weight.dtype)
        x = b.point("multiply", b.cast(x, dtype), b.cast(weight, dtype))
    if bias is not None:
        dtype = promote(x.dtype, bias.dtype)
        x = b.point("add", b.cast(x, dtype), b.cast(bias, dtype))
    return x
