# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N803 (an argument has the name that NumPy gives it)
"""NumPy's functions that make arrays, given sizes that stay open."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ops as ops
import nfuser.compiler.trace.numpy.names.refusals as refusals
from nfuser.compiler.dtypes import DType, as_dtype
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.functions import less, maximum
from nfuser.compiler.trace.standins.literals import array_of
from nfuser.compiler.trace.standins.sizes import shape_sizes, size
from nfuser.compiler.trace.standins.standin import Standin
from nfuser.compiler.trace.standins.symbolic import SymbolicInt
from nfuser.errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.trace.tracer import Tracer


UNSET: Any = object()
"""What ``numpy.empty`` is full of: whatever lies in the memory."""


def _laid(t: Tracer, name: str, made: Any, order: Any, device: Any) -> Any:
    """Return an array with memory of its own, which decides the order of results."""
    if device not in (None, "cpu"):
        raise refusals.keyword(name, "device")
    if order not in ("C", "F"):
        raise refusals.keyword(name, "order")
    return t.call_on_tensor(ops.copy, made, order)


def full(
    t: Tracer,
    shape: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "C",
    *,
    device: Any = None,
) -> Any:
    """Return ``numpy.full``."""
    target = None if dtype is None else as_dtype(dtype)
    fill = array_of(t, fill_value) if target is None else fitted(t, fill_value, target)
    made = t.apply(ops.full, shape_sizes(t, shape, "full"), fill, target)
    return _laid(t, "full", made, order, device)


def fitted(t: Tracer, fill_value: Any, dtype: DType) -> Any:
    """Return what is to fill an array of ``dtype``: of a complex number the real part.

    NumPy converts it as an array is, where others refuse it.
    """
    if fill_value is UNSET:
        return t.builder.unset(dtype)
    is_real = not (dtype.is_complex or dtype.is_bool)
    if is_real and isinstance(fill_value, (complex, np.complexfloating)):
        fill_value = fill_value.real
    return t.operand(fill_value)


def _filled(fill: Any) -> Any:
    def handler(
        t: Tracer, shape: Any, dtype: Any = None, order: str = "C", **options: Any
    ) -> Any:
        dtype = float if dtype is None else dtype
        return full(t, shape, fill, dtype, order, **options)

    return handler


def ndarray(
    t: Tracer,
    shape: Any,
    dtype: Any = float,
    buffer: Any = None,
    offset: int = 0,
    strides: Any = None,
    order: Any = None,
) -> Any:
    """Return what calling the class makes, which is what ``numpy.empty`` does."""
    for name, given in (("buffer", buffer), ("offset", offset), ("strides", strides)):
        if given:
            raise refusals.keyword("ndarray", name)
    return _filled(UNSET)(t, shape, dtype, order or "C")


def arange(
    t: Tracer,
    start_or_stop: Any,
    /,
    stop: Any = None,
    step: Any = 1,
    *,
    dtype: Any = None,
    device: Any = None,
) -> Any:
    """Return ``numpy.arange``; its length stays open where its bounds are integers."""
    start, stop = (0, start_or_stop) if stop is None else (start_or_stop, stop)
    target = None if dtype is None else as_dtype(dtype)
    start, stop, step = (_bound(x) for x in (start, stop, step))
    if any(type(x) is float for x in (start, stop, step)):
        made = _float_range(t, float(start), float(stop), float(step), target)
    else:
        made = _integer_range(t, start, stop, step, target)
    return _laid(t, "arange", made, "C", device)


def _bound(x: Any) -> Any:
    """Return a bound as an open integer, an integer or a float."""
    if isinstance(x, SymbolicInt):
        return x
    if isinstance(x, Standin):
        x = x.item()  # pyright: ignore[reportAttributeAccessIssue]
    if hasattr(x, "__index__"):
        return x.__index__()
    try:
        return float(x)
    except (TypeError, ValueError) as error:
        message = f"arange: expected numbers, found {type(x).__name__}"
        raise ArgumentError(message) from error


def _integer_range(
    t: Tracer, start: Any, stop: Any, step: Any, dtype: DType | None
) -> Any:
    step = int(step)
    if step == 0:
        message = "arange: Maximum allowed size exceeded: the step is 0"
        raise ShapeError(message)
    low, high = (sc.as_scalar(size(t, x, "arange")) for x in (start, stop))
    span = high - low if step > 0 else low - high
    count: Scalar = (_natural(span) + (abs(step) - 1)) // abs(step)
    made = t.apply(ops.arange, count, low, step)
    return made if dtype is None else made.astype(dtype.numpy)


def _natural(span: Scalar) -> Scalar:
    return span if sc.is_natural(span) else maximum(span, 0)


def _float_range(
    t: Tracer, start: float, stop: float, step: float, dtype: DType | None
) -> Any:
    """Return a range whose length depends on floats, which are guards by now."""
    length = (stop - start) / step if step else math.nan
    if not math.isfinite(length):
        message = f"arange: cannot compute length of arange({start}, {stop}, {step})"
        raise ShapeError(message)
    # NumPy takes the first two elements and goes on by their difference.
    delta = (start + step) - start
    count = max(math.ceil(length), 0)
    made = t.apply(ops.arange, count, start, delta, DType.F64)
    return made if dtype is None else made.astype(dtype.numpy)


def linspace(
    t: Tracer,
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: Any = 0,
    *,
    device: Any = None,
) -> Any:
    """Return ``numpy.linspace`` between two numbers."""
    if retstep:
        raise refusals.keyword("linspace", "retstep")
    ends = [array_of(t, x) for x in (start, stop)]
    if axis not in (0, -1) or any(x.ndim or x.dtype.is_complex for x in ends):
        message = "linspace: expected two real numbers; combine arange with arithmetic"
        raise ArgumentError(message)
    count = size(t, num, "linspace")
    if t.ask(less(count, 0)):
        message = f"linspace: {t.builder.today(count)} samples: expected 0 or more"
        raise ShapeError(message)
    kind = t.handlers["result_type"](t, start, stop, 0.0) if dtype is None else dtype
    target = as_dtype(kind)
    made = t.apply(ops.linspace, *ends, count, target, endpoint=bool(endpoint))
    return _laid(t, "linspace", made, "C", device)


def eye(
    t: Tracer,
    N: Any,
    M: Any = None,
    k: Any = 0,
    dtype: Any = float,
    order: str = "C",
    *,
    device: Any = None,
) -> Any:
    """Return ``numpy.eye``."""
    made = _mask(t, "eye", N, M, k, dtype, below=False)
    return _laid(t, "eye", made, order, device)


def tri(t: Tracer, N: Any, M: Any = None, k: Any = 0, dtype: Any = float) -> Any:
    """Return ``numpy.tri``."""
    return _mask(t, "tri", N, M, k, dtype, below=True)


def _mask(
    t: Tracer, name: str, rows: Any, columns: Any, k: Any, dtype: Any, *, below: bool
) -> Any:
    columns = rows if columns is None else columns
    listed = [size(t, x, name) for x in (rows, columns, k)]
    made = t.apply(ops.diagonal_mask, *listed, below=below)
    return made.astype(as_dtype(float if dtype is None else dtype).numpy)


def _triangle(name: str, *, lower: bool) -> Any:
    def handler(t: Tracer, m: Any, k: Any = 0) -> Any:
        held = t.tensor(m)
        if not held.ndim:
            message = f"{name}: expected at least one axis, found a number"
            raise ShapeError(message)
        k = size(t, k, name)
        shape = held.shape[-2:] if held.ndim > 1 else held.shape * 2
        offset = k if lower else sc.as_scalar(k) - 1
        below = t.apply(ops.diagonal_mask, *shape, offset, below=True)
        zero = t.builder.constant(0, held.dtype)
        pair = (held, zero) if lower else (zero, held)
        return t.apply(ops.where, t.tensor(below), *pair)

    return handler


HANDLERS: dict[str, Any] = {
    "full": full,
    "zeros": _filled(0),
    "ones": _filled(1),
    "empty": _filled(UNSET),
    "ndarray": ndarray,
    "arange": arange,
    "linspace": linspace,
    "eye": eye,
    "identity": lambda t, n, dtype=None: eye(t, n, dtype=dtype),
    "tri": tri,
    "tril": _triangle("tril", lower=True),
    "triu": _triangle("triu", lower=False),
}
