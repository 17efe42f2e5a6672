# SPDX-License-Identifier: Apache-2.0
"""Results of a launch that are views of an operand, taken where it lies."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import nfuser.execution.host.ir.statements as st
from nfuser.compiler.ir import expr as ex
from nfuser.compiler.ir.fusion import Fusion, live_exprs
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.tensor import TensorView, tensor
from nfuser.execution.host.run.callee import fusion_of, symbols_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.execution.host.ir.statements import Launch, Statement


def take_view(
    launch: Launch, result: TensorView, owner: TensorView
) -> list[Statement] | None:
    """Return what gives ``result`` as a view of ``owner``, all else by a launch.

    There are no statements if a view of what lies there already is all that is left.
    None if kernels have to compute it: it is no view of that operand, or one that
    libraries have no strides for.
    """
    fusion = fusion_of(launch.function)
    if fusion is None:
        return None
    chain = _chain(fusion, fusion.outputs[launch.results.index(result)])
    if chain is None or launch.operands[chain[0].slot] is not owner:
        return None
    known = symbols_of(launch.operands)
    body: list[Statement] = []
    source = owner
    for expr in chain[1]:
        shape = scalar_walk.substitute(expr.result.shape, known)
        made = tensor(shape, expr.result.dtype, launch.line)
        made = result if expr is chain[1][-1] else made
        body.append(_statement(expr, source, made, known, launch))
        source = made
    return [*body, *_rest(launch, fusion, result)]


def _chain(
    fusion: Fusion, output: TensorView
) -> tuple[ex.Argument, list[ex.View]] | None:
    """Return the argument that ``output`` is a view of, and the views in order."""
    views: list[ex.View] = []
    expr = fusion.definition[output]
    while not isinstance(expr, ex.Argument):
        if isinstance(expr, ex.Pointwise) and expr.op.name == "copy":
            expr = fusion.definition[expr.operands[0]]
            continue
        if not isinstance(expr, ex.VIEWS) or isinstance(expr, ex.Expand | ex.Remap):
            return None
        if isinstance(expr, ex.Slice) and any(step < 1 for step in expr.steps):
            return None
        views.append(expr)
        expr = fusion.definition[expr.source]
    is_whole = not (expr.by_value or expr.part.value)
    return (expr, views[::-1]) if is_whole else None


def _statement(
    expr: ex.View,
    source: TensorView,
    made: TensorView,
    known: Mapping[Scalar, Scalar],
    launch: Launch,
) -> Statement:
    match expr:
        case ex.Permute(order=order):
            return st.PermuteOp(source, order, made, launch.line)
        case ex.Slice(starts=starts, steps=steps):
            first = tuple(scalar_walk.substitute(starts, known))
            spans = zip(first, steps, made.shape, strict=True)
            last = tuple(at + step * n for at, step, n in spans)
            return st.SliceOp(source, first, last, steps, made, launch.line)
        case _:
            return st.ReshapeOp(source, made, launch.line, shares=True)


def _rest(launch: Launch, fusion: Fusion, gone: TensorView) -> list[Statement]:
    """Return the launch of what gives the other results, if there are any."""
    kept = [k for k, t in enumerate(launch.results) if t is not gone]
    if not kept:
        return []
    outputs = [fusion.outputs[k] for k in kept]
    needed = {*live_exprs(outputs, fusion.definition), *fusion.arguments}
    part = Fusion(fusion.name, [e for e in fusion.exprs if e in needed], outputs)
    results = tuple(launch.results[k] for k in kept)
    return [replace(launch, function=part, results=results)]
