# SPDX-License-Identifier: Apache-2.0
"""The printed form of a fusion; names depend on the fusion alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, assert_never

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
    Group,
    Iota,
    LibraryCall,
    Loop,
    Matmul,
    Pad,
    PartialSum,
    Permute,
    Pointwise,
    Reduce,
    Remap,
    Reshape,
    Scan,
    Scatter,
    Slice,
    Sort,
    Squeeze,
    SumTo,
    Take,
    View,
    results,
)
from nfuser.compiler.ir.point_op import CAST
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.scalar import (
    Knob,
    LoopIndex,
    Scalar,
    ScalarInput,
    Size,
    Stride,
)

if TYPE_CHECKING:
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.tensor import TensorView


class Names:
    """Names of tensors and symbols, given out in order of first use."""

    def __init__(self) -> None:
        self._tensors: dict[TensorView, str] = {}
        self._sizes: dict[Scalar, str] = {}
        self._strides: dict[Scalar, str] = {}

    def tensor(self, tensor: TensorView) -> str:
        """Return ``T0``, ``T1``, ... for tensors as they are met."""
        return self._tensors.setdefault(tensor, f"T{len(self._tensors)}")

    def symbol(self, symbol: Scalar) -> str | None:
        """Return ``n0`` for sizes, ``s0`` for strides, ``i0`` for loops."""
        match symbol:
            case LoopIndex(number):
                return f"i{number}"
            case Knob(name):
                return name
            case Stride():
                return self._strides.setdefault(symbol, f"s{len(self._strides)}")
            case Size() | ScalarInput():
                return self._sizes.setdefault(symbol, f"n{len(self._sizes)}")
            case _:
                return None

    def scalar(self, x: Scalar) -> str:
        """Render ``x``."""
        return scalar_walk.text(x, self.symbol)

    def typed(self, tensor: TensorView) -> str:
        """Render ``T0: f32[n0, n1]``."""
        axes = (f"{a.iter_type.value}{self.scalar(a.extent)}" for a in tensor.axes)
        return f"{self.tensor(tensor)}: {tensor.dtype}[{', '.join(axes)}]"


def fusion_lines(fusion: Fusion, names: Names | None = None) -> list[str]:
    """Render ``fusion`` as lines."""
    names = names or Names()
    parameters = ", ".join(names.typed(a.result) for a in fusion.arguments)
    body: list[str] = []
    for expr in fusion.exprs:
        if isinstance(expr, Argument):
            continue
        text = expr_text(expr, names)
        left = ", ".join(names.typed(t) for t in results(expr))
        source = results(expr)[0].source
        note = f"  # {Path(source.file).name}:{source.line}" if source else ""
        body.append(f"  {left} = {text}{note}")
        if isinstance(expr, Loop):
            body += [f"    {line}" for line in fusion_lines(expr.body, names)]
    outputs = ", ".join(names.tensor(t) for t in fusion.outputs)
    return [f"fusion {fusion.name}({parameters}) -> {outputs}", *body]


def text(fusion: Fusion) -> str:
    """Render ``fusion``."""
    return "\n".join(fusion_lines(fusion)) + "\n"


def expr_text(expr: Expr, names: Names) -> str:
    """Render the right-hand side of ``expr``."""
    match expr:
        case Argument(slot):
            return f"argument({slot}){expr.part.value}"
        case Constant(value, _, is_unset):
            return "unset" if is_unset else repr(value)
        case FromScalar(scalar):
            return names.scalar(scalar)
        case Iota():
            return "iota()"
        case Pointwise(op, operands):
            listed = ", ".join(names.tensor(t) for t in operands)
            if op is CAST:
                return f"cast({listed}, {expr.result.dtype})"
            order = "" if op.order == "K" else f", order={op.order}"
            return f"{op.name}({listed}{order})"
        case Reduce(op, source, _, axes):
            return f"{op.value}({names.tensor(source)}, axes={axes})"
        case Scan(op, source, _, axis):
            return f"cum{op.value}({names.tensor(source)}, axis={axis})"
        case SumTo(source):
            return f"sum_to({names.tensor(source)})"
        case (
            Pad()
            | Concatenate()
            | Take()
            | Assign()
            | PartialSum()
            | Matmul()
            | Sort()
            | Scatter()
            | Called()
        ):
            return _joined_text(expr, names)
        case Loop():
            return _loop_text(expr, names)
        case _:
            return _view_text(expr, names)


def _joined_text(
    expr: Pad | Concatenate | Take | Assign | PartialSum | LibraryCall, names: Names
) -> str:
    match expr:
        case PartialSum(source, _, axes, share):
            parts = f"axes={axes}, share={names.scalar(share)}"
            return f"partial_sum({names.tensor(source)}, {parts})"
        case Sort(source, _, axis):
            said = f", kth={expr.kth}" if expr.kth else ""
            said += ", stable" if expr.stable else ""
            return f"{expr.name}({names.tensor(source)}, axis={axis}{said})"
        case Called(name, operands, options=options):
            listed = [names.tensor(t) for t in operands]
            said = [f"{key}={given}" for key, given in options]
            return f"{name}({', '.join([*listed, *said])})"
        case Matmul(lhs, rhs):
            return f"matmul({names.tensor(lhs)}, {names.tensor(rhs)})"
        case Scatter(op, source, index, value):
            listed = ", ".join(names.tensor(t) for t in (source, index, value))
            told = f", complaint={expr.complaint!r}" if expr.complaint else ""
            return f"scatter_{op.value}({listed}{told})"
        case Assign(source, value, _, starts, steps):
            begin = ", ".join(names.scalar(s) for s in starts)
            operands = f"{names.tensor(source)}, {names.tensor(value)}"
            return f"assign({operands}, starts=({begin}), steps={steps})"
        case Pad(source, fill):
            operands = f"{names.tensor(source)}, {names.tensor(fill)}"
            return f"pad({operands}, {_expansions(expr, names)})"
        case Concatenate(parts, _, axis):
            listed = ", ".join(names.tensor(t) for t in parts)
            return f"concatenate({listed}, axis={axis})"
        case Take(source, index, _, axis, along):
            verb = "take_along_axis" if along else "take"
            return f"{verb}({names.tensor(source)}, {names.tensor(index)}, axis={axis})"


def _loop_text(expr: Loop, names: Names) -> str:
    operands = [names.tensor(t) for t in expr.operands]
    first, rest = operands[: expr.carried], operands[expr.carried :]
    said = [f"carry=({', '.join(first)})", f"read=({', '.join(rest)})"]
    if expr.trips is not None:
        said.append(f"trips={names.scalar(expr.trips)}")
    if expr.flag is not None:
        said.append(f"while={operands[expr.flag]}")
    if expr.backwards:
        said.append("backwards")
    return f"loop({', '.join(said)})"


def _expansions(expr: Pad, names: Names) -> str:
    """Render how many elements each axis gains, or loses, before and after."""
    axes = zip(expr.source.shape, expr.result.shape, expr.lefts, strict=True)
    rights = [new - old - left for old, new, left in axes]
    before, after = (
        ", ".join(names.scalar(x) for x in side) for side in (expr.lefts, rights)
    )
    return f"left=({before}), right=({after})"


def groups_text(groups: tuple[Group, ...]) -> str:
    """Render which axes meet: ``0 -> 0*1`` is a split, ``0*1 -> 0`` a merge."""
    sides = [["*".join(map(str, axes)) for axes in group] for group in groups]
    return ", ".join(f"{old} -> {new}" for old, new in sides)


def _view_text(expr: View, names: Names) -> str:
    source = names.tensor(expr.source)
    match expr:
        case Expand():
            return f"expand({source})"
        case ExpandDims(_, _, axes):
            return f"expand_dims({source}, axes={axes})"
        case Squeeze(_, _, axes):
            return f"squeeze({source}, axes={axes})"
        case Permute(_, _, order):
            return f"permute({source}, order={order})"
        case Slice(_, _, starts, steps):
            begin = ", ".join(names.scalar(s) for s in starts)
            return f"slice({source}, starts=({begin}), steps={steps})"
        case Reshape(_, _, groups):
            listed = f", {groups_text(groups)}" if groups else ""
            return f"reshape({source}{listed})"
        case Remap(_, _, index):
            at = ", ".join(names.scalar(x) for x in index)
            return f"remap({source}, index=({at}))"
        case _:
            assert_never(expr)
