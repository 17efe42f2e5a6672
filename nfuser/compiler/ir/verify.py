# SPDX-License-Identifier: Apache-2.0
"""Check the invariants of a fusion; each failure shows the lines around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import (
    SCANS,
    Assign,
    Called,
    Concatenate,
    Expand,
    ExpandDims,
    Expr,
    Loop,
    Matmul,
    Pad,
    PartialSum,
    Permute,
    Pointwise,
    Reduce,
    ReduceOp,
    Remap,
    Reshape,
    Scan,
    Scatter,
    Slice,
    Sort,
    Squeeze,
    SumTo,
    Take,
    results,
    sources,
)
from nfuser.compiler.ir.fusion import remembered
from nfuser.compiler.ir.point_op import SELECT, is_copy
from nfuser.compiler.ir.text import fusion_lines
from nfuser.errors import VerifyError

if TYPE_CHECKING:
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.tensor import TensorView


def verify_fusion(fusion: Fusion) -> None:
    """Raise VerifyError unless ``fusion`` is in order and well typed."""
    defined: set[TensorView] = set()
    for expr in fusion.exprs:
        for tensor in sources(expr):
            _require(tensor in defined, "used before its definition", expr, fusion)
        for tensor in results(expr):
            _require(tensor not in defined, "defined twice", expr, fusion)
            defined.add(tensor)
        if problem := _problem(expr):
            _require(False, problem, expr, fusion)
        if isinstance(expr, Loop):
            verify_fusion(expr.body)
    for tensor in fusion.outputs:
        if tensor not in defined:
            message = f"an output of {fusion.name} has no definition"
            raise VerifyError(message)


verify_once = remembered(verify_fusion)
"""The same, of which the answer is kept with the fusion."""


def _require(holds: bool, problem: str, expr: Expr, fusion: Fusion) -> None:
    if holds:
        return
    lines = fusion_lines(fusion)
    at = fusion.exprs.index(expr)
    message = f"{type(expr).__name__} (expression {at} of {fusion.name}): {problem}"
    raise VerifyError("\n".join([message, *lines]))


def _problem(expr: Expr) -> str | None:
    match expr:
        case Pointwise():
            return _pointwise_problem(expr)
        case Reduce(op, source, _, axes):
            kept = [e for k, e in enumerate(source.shape) if k not in axes]
            fits = all(t.shape == tuple(kept) for t in expr.results)
            fits &= len(expr.results) == (2 if op is ReduceOp.MOMENTS else 1)
            return None if fits else "the results' axes do not fit"
        case PartialSum(source, result, axes):
            kept = [e for k, e in enumerate(source.shape) if k not in axes]
            fits = result.shape[1:] == tuple(kept) and source.dtype is result.dtype
            return None if fits else "the result has a row for each part"
        case Scan(op, source, result, axis):
            fits = source.shape == result.shape and source.dtype is result.dtype
            fits &= op in SCANS and 0 <= axis < source.ndim
            return None if fits else "a scan keeps shape and dtype"
        case Matmul(lhs, rhs, result):
            kept = [max(t.ndim - 2, 0) for t in (lhs, rhs)]
            cores = (lhs.ndim > 1) + (rhs.ndim > 1)
            fits = min(lhs.ndim, rhs.ndim) > 0 and result.ndim == max(kept) + cores
            fits &= lhs.dtype is rhs.dtype
            fits &= result.dtype in (lhs.dtype, lhs.dtype.compute)
            return None if fits else "a product has its operands' dtype, and fewer axes"
        case Sort(source, result, axis, places):
            kind = DType.I64 if places else source.dtype
            fits = source.shape == result.shape and result.dtype is kind
            fits &= 0 <= axis < source.ndim and not source.dtype.is_complex
            return None if fits else "what is sorted is real, and keeps its shape"
        case Scatter(_, source, index, value, result):
            fits = index.dtype is DType.I64 and 0 < expr.lead <= source.ndim
            fits &= source.dtype is value.dtype is result.dtype
            fits &= source.shape == result.shape
            fits &= value.ndim >= index.ndim
            return None if fits else "a scatter is of one dtype, and keeps its shape"
        case Called(_, operands, made, given, types):
            listed = ((operands, given), (made, types))
            fits = all(
                len(ts) in (len(ks), sum(1 + k.is_complex for k in ks))
                for ts, ks in listed
            )
            return None if fits else "a call has a tensor, or two, for each array"
        case Loop():
            return _loop_problem(expr)
        case Assign():
            return _assigned_problem(expr)
        case _:
            return _axes_problem(expr)


def _loop_problem(expr: Loop) -> str | None:
    count, body = len(expr.operands), expr.body
    slots = sorted(a.slot for a in body.arguments)
    if slots[:count] != list(range(count)) or slots[count:] not in ([], [count]):
        return "the body has an argument for each operand, and one that counts"
    if len(body.outputs) != len(expr.results) or expr.carried > min(count, len(slots)):
        return "the body has an output for each result"
    for inner, outer in expr.given:
        if inner.dtype is not outer.dtype or inner.ndim != outer.ndim:
            return "an argument of the body is not as its operand"
    for before, after, result in expr.pairs:
        if len({(t.dtype, t.ndim) for t in (before, after, result)}) > 1:
            return "a carried value keeps its dtype and its number of axes"
    for inner, outer in expr.added:
        if inner.dtype is not outer.dtype or inner.ndim + 1 != outer.ndim:
            return "what iterations add is one element of a result"
    if expr.flag is None:
        return "it has no end" if expr.trips is None else None
    flag = expr.operands[expr.flag] if expr.flag < expr.carried else None
    is_flag = flag is not None and flag.dtype.is_bool and not flag.ndim
    return None if is_flag else "a carried truth value says whether it goes on"


def _assigned_problem(expr: Assign) -> str | None:
    source, value, result = expr.source, expr.value, expr.result
    ranks = {source.ndim, value.ndim, len(expr.starts), len(expr.steps)}
    fits = len(ranks) == 1 and source.shape == result.shape
    fits &= source.dtype is value.dtype is result.dtype
    return None if fits else "a value has the rank and the dtype of the whole"


def _axes_problem(expr: Expr) -> str | None:
    match expr:
        case Permute(source, result, order):
            fits = sorted(order) == list(range(source.ndim))
            fits &= result.shape == tuple(source.shape[k] for k in order)
            return None if fits else "the order does not fit the axes"
        case ExpandDims(source, result, axes):
            kept = [e for k, e in enumerate(result.shape) if k not in axes]
            return None if tuple(kept) == source.shape else "axes do not fit"
        case Squeeze(source, result, axes):
            kept = [e for k, e in enumerate(source.shape) if k not in axes]
            return None if tuple(kept) == result.shape else "axes do not fit"
        case Slice(source, result, starts, steps):
            ranks = {source.ndim, result.ndim, len(starts), len(steps)}
            return None if len(ranks) == 1 else "ranks differ"
        case Reshape():
            return None if _fits(expr) else "the groups do not cover the axes"
        case Remap(source, _, index):
            return None if len(index) == source.ndim else "an index for each axis"
        case Pad(source, fill, result, lefts):
            ranks = {source.ndim, result.ndim, len(lefts)}
            return None if len(ranks) == 1 and not fill.ndim else "ranks differ"
        case Concatenate(parts, result):
            ranks = {result.ndim, *(t.ndim for t in parts)}
            return None if len(ranks) == 1 else "ranks differ"
        case Take(source, index, result, _, along):
            rank = source.ndim if along else source.ndim - 1 + index.ndim
            fits = result.ndim == rank and index.dtype.is_integer
            return None if fits else "an integer index for one axis"
        case Expand(source, result):
            return None if source.ndim <= result.ndim else "drops axes"
        case SumTo(source, result):
            lead = source.ndim - result.ndim
            return None if expr.axes == tuple(range(lead)) else "axes do not fit"
        case _:
            return None


def _fits(expr: Reshape) -> bool:
    """Tell whether each axis that is not of extent 1 lies in one group."""
    if expr.groups is None:
        return True
    for side, tensor in enumerate((expr.source, expr.result)):
        listed = [k for group in expr.groups for k in group[side]]
        wide = [k for k, axis in enumerate(tensor.axes) if not axis.is_broadcast]
        if listed != wide and expr.groups:
            return False
    return True


def _pointwise_problem(expr: Pointwise) -> str | None:
    op, operands = expr.op, expr.operands
    if len(operands) != op.arity:
        return f"{op} takes {op.arity} operands"
    typed = operands[1:] if op is SELECT else operands
    if len({t.dtype for t in typed}) != 1:
        return "operands differ in dtype"
    given, made = typed[0].dtype, expr.result.dtype
    is_unrounded = is_copy(op) and given is DType.F32 and made.is_half
    if op.gives == "same" and made is not given and not is_unrounded:
        return "the result's dtype differs from its operands'"
    if op.gives == "bool" and not expr.result.dtype.is_bool:
        return "a predicate gives bool"
    if max((t.ndim for t in operands), default=0) > expr.result.ndim:
        return "an operand has more axes than the result"
    return None
