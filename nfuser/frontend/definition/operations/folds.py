# SPDX-License-Identifier: Apache-2.0
"""The reductions of ``fd.ops``."""

# The operands of an operation are handles and numbers of many types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nfuser.compiler.ops as ops
from nfuser.compiler.dtypes import DType
from nfuser.errors import DTypeError
from nfuser.frontend.definition.types import DataType, dtype_or_none

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.frontend.definition.draft import Draft


def _axes(dim: Any, dims: Any) -> Any:
    found = dims if dim is None else dim
    return tuple(found) if isinstance(found, list) else found


def _folded(verb: Callable[..., TensorView], *, takes_dtype: bool) -> Any:
    def operation(
        d: Draft,
        arg: Any,
        dims: Any = None,
        keepdim: bool = False,
        dtype: Any = DataType.Null,
        *,
        dim: Any = None,
    ) -> Any:
        if isinstance(dims, DataType | DType):  # nvFuser's form (arg, dtype)
            dims, dtype = None, dims
        x, axes, wanted = d.tensor(arg), _axes(dim, dims), dtype_or_none(dtype)
        if takes_dtype:
            return verb(d.builder, x, axes, dtype=wanted, keepdims=keepdim)
        found = verb(d.builder, x, axes, keepdims=keepdim)
        return found if wanted is None else ops.astype(d.builder, found, wanted)

    operation.__doc__ = verb.__doc__
    return operation


def _var(
    d: Draft,
    arg: Any,
    dims: Any = None,
    correction: object = 1,
    keepdim: bool = False,
    *,
    dim: Any = None,
) -> Any:
    """Return the variance."""
    return _var_mean(d, arg, dims, correction, keepdim, dim=dim)[0]


def _var_mean(
    d: Draft,
    arg: Any,
    dims: Any = None,
    correction: object = 1,
    keepdim: bool = False,
    *,
    dim: Any = None,
) -> Any:
    """Return the variance and the mean."""
    if isinstance(correction, bool) or not isinstance(correction, int | float):
        message = f"correction is a number, not {type(correction).__name__}"
        raise DTypeError(message)
    return ops.var_mean(
        d.builder,
        d.tensor(arg),
        _axes(dim, dims),
        correction=correction,
        keepdims=keepdim,
    )


def _welford(d: Draft, arg: Any, dims: Any) -> Any:
    """Return the mean, the sum of squared deviations, and how many there were."""
    b, x = d.builder, d.tensor(arg)
    if x.dtype.is_complex:
        message = "use var_mean: welford takes real numbers, found complex ones"
        raise DTypeError(message)
    operand = x if x.dtype.is_float else b.cast(x, DType.F64)
    axes = ops.normal_axes(_axes(None, dims), x.ndim)
    mean, squares = ops.moments(b, operand, axes)
    count = b.from_scalar(ops.count_of(x, axes), DType.I64)
    return mean, squares, ops.full_like(b, mean, count, DType.I64)


FOLDS: dict[str, Callable[..., Any]] = {
    "max": _folded(ops.max, takes_dtype=False),
    "min": _folded(ops.min, takes_dtype=False),
    "prod": _folded(ops.prod, takes_dtype=True),
    "sum": _folded(ops.sum, takes_dtype=True),
    "var": _var,
    "var_mean": _var_mean,
    "welford": _welford,
}
