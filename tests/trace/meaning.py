# SPDX-License-Identifier: Apache-2.0
"""What each expression of a fusion means, in NumPy."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.ir.expr import (
    Argument,
    Constant,
    Expand,
    ExpandDims,
    Expr,
    FromScalar,
    Iota,
    Permute,
    Pointwise,
    Reduce,
    ReduceOp,
    Scan,
    Slice,
    Squeeze,
    results,
    sources,
)
from nfuser.compiler.ir.scalars.scalar_walk import evaluate
from nfuser.compiler.ir.scalars.symbols import scalar_input, size
from nfuser.compiler.trace import call_of, trace_function
from nfuser.compiler.trace.call import tree
from nfuser.compiler.trace.call.call import ScalarLeaf, StaticLeaf

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.trace import Trace


def _joined(re: Any, im: Any) -> Any:
    found = np.empty(np.broadcast(re, im).shape, complex)
    found.real, found.imag = re, im
    return found


_ALIASES = {
    "bit_and": np.bitwise_and,
    "bit_or": np.bitwise_or,
    "bit_xor": np.bitwise_xor,
    "select": np.where,
    "copy": lambda x: x,
    "complex": _joined,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "erfc": np.vectorize(math.erfc, otypes=[np.float64]),
}
_SCANS = {
    ReduceOp.SUM: np.add,
    ReduceOp.PROD: np.multiply,
    ReduceOp.MAX: np.maximum,
    ReduceOp.MIN: np.minimum,
    ReduceOp.ANY: np.maximum,
    ReduceOp.ALL: np.minimum,
}
_FOLDS: dict[ReduceOp, Callable[..., Any]] = {
    ReduceOp.SUM: np.sum,
    ReduceOp.PROD: np.prod,
    ReduceOp.MAX: np.max,
    ReduceOp.MIN: np.min,
    ReduceOp.FMAX: np.fmax.reduce,
    ReduceOp.FMIN: np.fmin.reduce,
    ReduceOp.ANY: np.any,
    ReduceOp.ALL: np.all,
}


def run(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Trace ``function`` for the arguments and run the fusion on them."""
    call = call_of(args, kwargs)
    trace = trace_function(function, call)
    flat, _ = tree.flatten((args, kwargs))
    pairs = zip(flat, call.leaves, strict=True)
    inputs = [item for item, leaf in pairs if not isinstance(leaf, StaticLeaf)]
    inputs += trace.captured.read(args, kwargs) or ()
    symbols: dict[Scalar, int] = {
        scalar_input(leaf.slot): leaf.value
        for leaf in call.leaves
        if isinstance(leaf, ScalarLeaf) and leaf.kind is int
    }
    return rerun(trace, inputs, symbols)


def rerun(
    trace: Trace, inputs: list[Any], symbols: dict[Scalar, int] | None = None
) -> Any:
    """Run the fusion of ``trace`` on ``inputs``, one a slot."""
    known: dict[Scalar, int] = dict(symbols or {})
    for slot, item in enumerate(inputs):
        for k, extent in enumerate(np.shape(item)):
            known[size(slot, k)] = extent
    values: dict[Any, Any] = {}
    with np.errstate(all="ignore"):
        for expr in trace.fusion.exprs:
            found = _meaning(expr, [values[t] for t in sources(expr)], inputs, known)
            for tensor, item in zip(results(expr), found, strict=True):
                shape = tuple(evaluate(s, known) for s in tensor.shape)
                item = np.asarray(item)
                assert item.shape == shape, (expr, item.shape, shape)
                values[tensor] = item.astype(tensor.dtype.numpy)
    leaves = [values[t][()] for t in trace.fusion.outputs]
    return tree.unflatten(trace.output_tree, leaves)


def _meaning(
    expr: Expr, given: list[Any], inputs: list[Any], known: dict[Scalar, int]
) -> tuple[Any, ...]:
    match expr:
        case Argument(slot):
            return (inputs[slot],)
        case Constant(number):
            return (number,)
        case FromScalar(scalar):
            return (evaluate(scalar, known),)
        case Iota(result):
            return (np.arange(evaluate(result.shape[0], known)),)
        case Pointwise(op, _, result):
            return (_point(op.name, given, result),)
        case Reduce():
            return _reduce(expr, given[0])
        case Scan(op, _, _, axis):
            return (_SCANS[op].accumulate(given[0], axis=axis),)
        case _:
            return (_view(expr, given[0], known),)


def _point(name: str, given: list[Any], result: Any) -> Any:
    if name == "cast":
        return given[0].astype(result.dtype.numpy)
    return (_ALIASES.get(name) or getattr(np, name))(*given)


def _view(expr: Expr, x: Any, known: dict[Scalar, int]) -> Any:
    match expr:
        case Expand(_, result):
            return np.broadcast_to(x, [evaluate(s, known) for s in result.shape])
        case ExpandDims(_, _, axes):
            return np.expand_dims(x, axes)
        case Squeeze(_, _, axes):
            return np.squeeze(x, axes)
        case Permute(_, _, order):
            return np.transpose(x, order)
        case Slice(_, result, starts, steps):
            index = []
            for start, step, extent in zip(starts, steps, result.shape, strict=True):
                begin, count = evaluate(start, known), evaluate(extent, known)
                index.append(begin + step * np.arange(count))
            return x[np.ix_(*index)]
        case _:
            raise AssertionError(expr)


def _reduce(expr: Reduce, x: Any) -> tuple[Any, ...]:
    if expr.op is ReduceOp.MOMENTS:
        wide = x.astype(np.float64)
        count = np.prod([x.shape[k] for k in expr.axes])
        return np.mean(wide, expr.axes), np.var(wide, expr.axes) * count
    if expr.op in (ReduceOp.ARGMAX, ReduceOp.ARGMIN):
        kept = [k for k in range(x.ndim) if k not in expr.axes]
        flat = np.transpose(x, (*kept, *expr.axes))
        flat = flat.reshape(*(x.shape[k] for k in kept), -1)
        pick = np.argmax if expr.op is ReduceOp.ARGMAX else np.argmin
        return (pick(flat, axis=-1),)
    return (_FOLDS[expr.op](x, axis=expr.axes),)
