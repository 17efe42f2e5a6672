# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: A004, F401, F403 (a verb has the name that NumPy gives it, and is for others)
"""Verbs of the fusion IR: one function an operation.

Each verb takes a ``Builder`` and operands (tensors, scalars, numbers), applies NumPy's
type and shape rules, writes expressions into the builder and returns the result.

>>> from nfuser.compiler import ops
>>> from nfuser.compiler.ir.text import text
>>> from nfuser.compiler.dtypes import DType
>>> b = ops.Builder()
>>> x = b.argument(0, 2, DType.F32)
>>> print(text(b.fusion([ops.sum(b, ops.exp(b, x), axis=1)])), end="")
fusion fusion(T0: f32[? n0, ? n1]) -> T2
  T1: f32[? n0, ? n1] = exp(T0)
  T2: f32[? n0] = sum(T1, axes=(1,))
"""

# pyright: reportUnusedImport=false

from __future__ import annotations

from nfuser.compiler.dtypes import promote
from nfuser.compiler.ops.builder import Builder, Operand, ScalarFits
from nfuser.compiler.ops.elementwise.arithmetic import (
    absolute,
    add,
    astype,
    clamp,
    clip,
    copy,
    divide,
    divmod,
    float_power,
    floor_divide,
    fmax,
    fmin,
    fmod,
    maximum,
    memory_order,
    minimum,
    multiply,
    negative,
    positive,
    power,
    reciprocal,
    remainder,
    sign,
    square,
    stride_order,
    subtract,
)
from nfuser.compiler.ops.elementwise.bits import (
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    gcd,
    invert,
    lcm,
    left_shift,
    right_shift,
)
from nfuser.compiler.ops.elementwise.complex.functions import (
    angle,
    complex_of,
    conj,
    imag,
    real,
)
from nfuser.compiler.ops.elementwise.composites import (
    gelu,
    layer_norm,
    log_softmax,
    logsumexp,
    relu,
    rms_norm,
    sigmoid,
    silu,
    softmax,
    softplus,
)
from nfuser.compiler.ops.elementwise.float_functions import (
    deg2rad,
    fabs,
    heaviside,
    ldexp,
    logaddexp2,
    nextafter,
    rad2deg,
    round_to,
    sinc,
)
from nfuser.compiler.ops.elementwise.float_rows import *
from nfuser.compiler.ops.elementwise.gamma import lgamma
from nfuser.compiler.ops.elementwise.logic import (
    equal,
    greater,
    greater_equal,
    isclose,
    isfinite,
    isinf,
    isnan,
    isneginf,
    isposinf,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    nan_to_num,
    not_equal,
    signbit,
    truth,
    where,
)
from nfuser.compiler.ops.folds.library import called
from nfuser.compiler.ops.folds.products import matmul
from nfuser.compiler.ops.folds.reduction import (
    all,
    any,
    argmax,
    argmin,
    count_nonzero,
    count_of,
    max,
    mean,
    min,
    moments,
    nanmax,
    nanmin,
    prod,
    ptp,
    std,
    sum,
    var,
    var_mean,
)
from nfuser.compiler.ops.folds.scan import (
    accumulate,
    cummax,
    cummin,
    cumprod,
    cumsum,
    cumulative_prod,
    cumulative_sum,
    nancumprod,
    nancumsum,
)
from nfuser.compiler.ops.folds.sum_to import sum_to
from nfuser.compiler.ops.shapes.borders import extend
from nfuser.compiler.ops.shapes.creation import (
    arange,
    diagonal_mask,
    full,
    full_like,
    laid_like,
    linspace,
)
from nfuser.compiler.ops.shapes.gather import (
    clipped_index,
    index_by,
    take,
    take_along_axis,
    take_inside,
    wrapped_index,
)
from nfuser.compiler.ops.shapes.moves import (
    concatenate,
    merge_axes,
    pad,
    remap,
    repeat,
    reshape,
    roll,
    stack,
    tile,
)
from nfuser.compiler.ops.shapes.order import argsort, lexsort, sort
from nfuser.compiler.ops.shapes.scatter import (
    flat_index,
    rows_first,
    scatter,
    scatter_along,
    scatter_rows,
)
from nfuser.compiler.ops.shapes.views import (
    at_least,
    broadcast_to,
    check_sizes,
    expand_dims,
    flip,
    moveaxis,
    normal_axes,
    normal_axis,
    permute,
    sliced,
    squeeze,
    swapaxes,
    take_index,
    take_slices,
    window,
)
