# SPDX-License-Identifier: Apache-2.0
"""NumPy's meaning of each expression of a fusion, traced or rewritten."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.ir.expr import (
    Argument,
    Assign,
    Called,
    Concatenate,
    Constant,
    Expand,
    ExpandDims,
    Expr,
    FromScalar,
    Iota,
    Loop,
    Matmul,
    Pad,
    Part,
    PartialSum,
    Permute,
    Pointwise,
    Reduce,
    ReduceOp,
    Remap,
    Reshape,
    Scan,
    Scatter,
    ScatterOp,
    Slice,
    Sort,
    Squeeze,
    SumTo,
    Take,
    results,
    sources,
)
from nfuser.compiler.ir.scalars.scalar_walk import evaluate, evaluate_all, loops_in
from tests.oracle import emulate
from tests.oracle.emulate import Emulated
from tests.oracle.views import padded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from tests.oracle.number_types import Array

_NAMES = {
    "exp_near": "exp",
    "exp2_near": "exp2",
    "sqrt_near": "sqrt",
    "log_positive": "log",
    "tanh_near": "tanh",
    "divide_near": "divide",
    "reciprocal_near": "reciprocal",
    "atan2": "arctan2",
    "bit_and": "bitwise_and",
    "bit_or": "bitwise_or",
    "bit_xor": "bitwise_xor",
    "select": "where",
}
_FOLDS = {
    ReduceOp.SUM: np.add,
    ReduceOp.PROD: np.multiply,
    ReduceOp.MAX: np.maximum,
    ReduceOp.MIN: np.minimum,
    ReduceOp.FMAX: np.fmax,
    ReduceOp.FMIN: np.fmin,
    ReduceOp.ANY: np.logical_or,
    ReduceOp.ALL: np.logical_and,
}


class Evaluator:
    """Runs a fusion on the arguments of one call."""

    def __init__(self, arguments: Sequence[Any], sizes: Mapping[Scalar, int]) -> None:
        self._arguments = arguments
        self._sizes = sizes
        self._held: dict[TensorView, Emulated] = {}

    def run(self, fusion: Fusion) -> list[Array]:
        """Return the outputs, rounded to their dtypes."""
        with np.errstate(all="ignore"):
            for expr in fusion.exprs:
                is_loop = isinstance(expr, Loop)
                found = self._looped(expr) if is_loop else self._results(expr)
                for tensor, array in zip(results(expr), found, strict=True):
                    self._keep(tensor, array)
        return [self._held[t].result() for t in fusion.outputs]

    def _keep(self, tensor: TensorView, array: Any) -> None:
        dtype = tensor.dtype.numpy
        if isinstance(array, Emulated):
            assert array.dtype == dtype, (array.dtype, tensor)
        held = array if isinstance(array, Emulated) else Emulated(array, dtype)
        shape = tuple(evaluate_all(tensor.shape, self._sizes))
        assert held.shape == shape, (held.shape, shape, tensor)
        self._held[tensor] = held

    def _results(self, expr: Expr) -> list[Any]:
        assert not isinstance(expr, (Loop, Called))  # NumPy itself is their oracle
        match expr:
            case Argument(slot, _, _, part):
                return [_part(self._arguments[slot], part)]
            case Constant(number):
                return [number]
            case FromScalar(scalar):
                return [evaluate(scalar, self._sizes)]
            case Iota(result):
                return [np.arange(evaluate(result.shape[0], self._sizes))]
            case Pointwise():
                return [self._point(expr)]
            case Reduce():
                return _fold(expr, self._held[expr.source].data)
            case Scan(op, source, _, axis):
                data = self._held[source].data
                return [_FOLDS[op].accumulate(data, axis=axis, dtype=data.dtype)]
            case Concatenate(parts, _, axis):
                return [np.concatenate([self._held[t].data for t in parts], axis)]
            case Take():
                return [self._taken(expr)]
            case SumTo(source, result):
                shape = evaluate_all(result.shape, self._sizes)
                return [_summed(self._held[source].data, shape)]
            case Matmul() | Sort() | Assign() | Scatter() | PartialSum():
                return [self._called(expr)]
            case _:
                return [self._view(expr, self._held[expr.source].data)]

    def _in_parts(self, expr: PartialSum) -> Array:
        data = self._held[expr.source].data
        lead = len(expr.axes)
        rows = np.moveaxis(data, expr.axes, range(lead))
        rows = rows.reshape(-1, *rows.shape[lead:])
        share = evaluate(expr.share, self._sizes)
        starts = range(0, len(rows), share)
        parts = [rows[k : k + share].sum(0, dtype=data.dtype) for k in starts]
        return np.stack(parts) if parts else rows

    def _looped(self, expr: Loop) -> list[Array]:
        """Run the body by itself, as often as it says."""
        held = [self._held[t].result() for t in expr.operands]
        trips = None if expr.trips is None else evaluate(expr.trips, self._sizes)
        rows: list[list[Array]] = []
        while len(rows) != trips and (expr.flag is None or held[expr.flag]):
            inside = Evaluator([*held, np.int64(len(rows))], self._sizes)
            found = inside.run(expr.body)
            held[: expr.carried] = found[: expr.carried]
            rows.append(found[expr.carried :])
        columns = zip(*(reversed(rows) if expr.backwards else rows), strict=True)
        empty = (np.zeros(evaluate_all(t.shape, self._sizes)) for _, t in expr.added)
        stacked = [np.stack(c) for c in columns] if rows else list(empty)
        return [*held[: expr.carried], *stacked]

    def _assigned(self, expr: Assign) -> Emulated:
        whole = self._held[expr.source]
        data, value = whole.data.copy(), self._held[expr.value].data
        starts = evaluate_all(expr.starts, self._sizes)
        axes = zip(value.shape, starts, expr.steps, strict=True)
        data[np.ix_(*(start + step * np.arange(n) for n, start, step in axes))] = value
        return Emulated(data, whole.dtype)

    def _scattered(self, expr: Scatter) -> Emulated:
        source, index, value = (self._held[t].data for t in sources(expr))
        rows = source.copy().reshape(-1, *source.shape[expr.lead :])
        flat = value.reshape(-1, *rows.shape[1:])
        if expr.op is ScatterOp.SET:
            for place, one in zip(index.reshape(-1), flat, strict=True):
                rows[place] = one
        else:
            longer = {"max": "maximum", "min": "minimum"}
            name = longer.get(expr.op.value, expr.op.value)
            getattr(np, name).at(rows, index.reshape(-1), flat)
        return Emulated(rows.reshape(source.shape), self._held[expr.source].dtype)

    def _called(self, expr: Matmul | Sort | Assign | Scatter | PartialSum) -> Any:
        match expr:
            case PartialSum():
                return self._in_parts(expr)
            case Scatter():
                return self._scattered(expr)
            case Assign():
                return self._assigned(expr)
            case Matmul(lhs, rhs):
                made = np.matmul(self._held[lhs].result(), self._held[rhs].result())
                return made.astype(expr.result.dtype.numpy)  # rounded, as it is stored
            case Sort(source, _, axis, places) if expr.kth:
                part = np.argpartition if places else np.partition
                return part(self._held[source].data, expr.kth, axis)
            case Sort(source, _, axis, True):
                return np.argsort(self._held[source].data, axis, stable=expr.stable)
            case Sort(source, _, axis):
                return np.sort(self._held[source].data, axis)

    def _point(self, expr: Pointwise) -> Emulated:
        operands = [self._held[t] for t in expr.operands]
        dtype = expr.result.dtype.numpy
        match expr.op.name:
            case "cast":
                return emulate.astype(operands[0], dtype)
            case "copy":
                return operands[0]
            case "complex":
                re, im = np.broadcast_arrays(*(x.data for x in operands))
                made = np.empty(re.shape, dtype)
                made.real, made.imag = re, im
                return Emulated(made, dtype)
            case name:
                return emulate.compute(_NAMES.get(name, name), tuple(operands), {})

    def _view(
        self,
        expr: Expand | ExpandDims | Squeeze | Permute | Slice | Reshape | Pad | Remap,
        data: Array,
    ) -> Array:
        match expr:
            case Expand(_, result):
                return np.broadcast_to(data, evaluate_all(result.shape, self._sizes))
            case ExpandDims(_, _, axes):
                return np.expand_dims(data, axes)
            case Squeeze(_, _, axes):
                return np.squeeze(data, axes)
            case Permute(_, _, order):
                return np.transpose(data, order)
            case Slice(_, result, starts, steps):
                extents = evaluate_all(result.shape, self._sizes)
                first = evaluate_all(starts, self._sizes)
                for k, (n, at, step) in enumerate(
                    zip(extents, first, steps, strict=True)
                ):
                    data = np.take(data, at + step * np.arange(n), axis=k)
                return data
            case Reshape(_, result):
                return data.reshape(evaluate_all(result.shape, self._sizes))
            case Pad(source, fill, result, lefts):
                new, old, before = (
                    evaluate_all(x, self._sizes)
                    for x in (result.shape, source.shape, lefts)
                )
                zipped = zip(new, old, before, strict=True)
                widths = [(left, n - m - left) for n, m, left in zipped]
                return padded(data, widths, self._held[fill].data)
            case Remap(_, result, index):
                shape = evaluate_all(result.shape, self._sizes)
                places = [self._places(x, result, shape) for x in index]
                return np.broadcast_to(data[tuple(places)], shape)

    def _places(self, x: Scalar, result: TensorView, shape: list[int]) -> Array:
        """Return the index ``x`` of a source for every place of ``result``."""
        symbols = [
            scalar_symbols.place(k, extent) for k, extent in enumerate(result.shape)
        ]
        used = loops_in(x)
        ranges = [n if s in used else 1 for s, n in zip(symbols, shape, strict=True)]
        found = np.zeros(ranges, int)
        for at in np.ndindex(*ranges):
            here = dict(zip(symbols, at, strict=True))
            found[at] = evaluate(x, {**self._sizes, **here})
        return found

    def _taken(self, expr: Take) -> Array:
        source, index = self._held[expr.source].data, self._held[expr.index].data
        if not expr.along:
            return np.take(source, index, axis=expr.axis)
        return np.take_along_axis(source, index, axis=expr.axis)


def _part(argument: Any, part: Part) -> Any:
    if part is Part.REAL:
        return np.real(argument)
    return np.imag(argument) if part is Part.IMAG else argument


def _fold(expr: Reduce, data: Array) -> list[Any]:
    kept = [k for k in range(data.ndim) if k not in expr.axes]
    order = [*kept, *expr.axes]
    # The folded axes last: only there does NumPy add up in pairs.
    stored = np.array(data.transpose(order), order="C")
    count = int(np.prod([data.shape[k] for k in expr.axes], dtype=int))
    rows = stored.reshape(*stored.shape[: len(kept)], count)
    if expr.op in (ReduceOp.ARGMAX, ReduceOp.ARGMIN):
        name = "argmax" if expr.op is ReduceOp.ARGMAX else "argmin"
        return [getattr(np, name)(rows, axis=-1)]
    if expr.op is ReduceOp.MOMENTS:
        mean = np.add.reduce(rows, axis=-1, keepdims=True) / data.dtype.type(count)
        away = rows - mean
        return [mean[..., 0], np.add.reduce(away * away, axis=-1)]
    return [_FOLDS[expr.op].reduce(rows, axis=-1, dtype=data.dtype)]


def _summed(data: Array, shape: Sequence[int]) -> Array:
    lead = data.ndim - len(shape)
    axes = [k + lead for k, n in enumerate(shape) if n == 1 != data.shape[k + lead]]
    return np.add.reduce(data, axis=(*range(lead), *axes)).reshape(shape)
