# SPDX-License-Identifier: Apache-2.0
"""NumPy's cumulative functions, and ``accumulate`` of its ufuncs, on stand-ins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nfuser.compiler.ops as ops
from nfuser.compiler.dtypes import as_dtype
from nfuser.compiler.ir.expr import ReduceOp
from nfuser.compiler.trace.numpy.dispatch.keywords import given, plain

if TYPE_CHECKING:
    from nfuser.compiler.trace.tracer import Tracer

_UFUNCS = {
    "add": ReduceOp.SUM,
    "multiply": ReduceOp.PROD,
    "maximum": ReduceOp.MAX,
    "minimum": ReduceOp.MIN,
}


def _cumulated(name: str) -> Any:
    verb = getattr(ops, name)

    def handler(
        t: Tracer, a: Any, axis: Any = None, dtype: Any = None, out: Any = None
    ) -> Any:
        given(name, {"out": out})
        target = None if dtype is None else as_dtype(dtype)
        return t.call_on_tensor(verb, a, plain(axis), dtype=target)

    return handler


def _cumulative(name: str) -> Any:
    verb = getattr(ops, name)

    def handler(
        t: Tracer,
        x: Any,
        /,
        *,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        include_initial: bool = False,
    ) -> Any:
        given(name, {"out": out})
        options = {
            "dtype": None if dtype is None else as_dtype(dtype),
            "include_initial": bool(include_initial),
        }
        return t.call_on_tensor(verb, x, plain(axis), **options)

    return handler


def _accumulating(name: str) -> Any:
    op = _UFUNCS[name]

    def handler(
        t: Tracer, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None
    ) -> Any:
        given(f"{name}.accumulate", {"out": out})
        target = None if dtype is None else as_dtype(dtype)
        return t.call_on_tensor(ops.accumulate, array, op, plain(axis), dtype=target)

    return handler


HANDLERS = {
    **{n: _cumulated(n) for n in ("cumsum", "cumprod", "nancumsum", "nancumprod")},
    **{n: _cumulative(n) for n in ("cumulative_sum", "cumulative_prod")},
    **{f"{n}.accumulate": _accumulating(n) for n in _UFUNCS},
}
