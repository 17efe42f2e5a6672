# SPDX-License-Identifier: Apache-2.0
"""What the body of a loop is rewritten to: what a host program can run in place."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.ir.expr import LIBRARY_CALLS, Expr, Loop, Pointwise
from nfuser.ir.fusion import Fusion, Replacement, rebuild
from nfuser.ir.point_op import COPY

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.ir.tensor import TensorView


def with_bodies(fusion: Fusion, change: Callable[[Fusion], Fusion]) -> Fusion:
    """Return ``fusion`` with the body of each of its loops changed."""

    def changed(expr: Expr) -> Replacement | None:
        if not isinstance(expr, Loop):
            return None
        body = _with_kernels_last(change(expr.body), expr.carried)
        if body is expr.body:
            return None
        return Replacement((replace(expr, body=body),), expr.results)

    return rebuild(fusion, changed)


def _with_kernels_last(body: Fusion, carried: int) -> Fusion:
    """Let kernels write what iterations leave where that is to lie.

    A loop inside has memory of its own, and libraries write no row of another array.
    """
    exprs: list[Expr] = list(body.exprs)
    outputs: list[TensorView] = []
    for number, tensor in enumerate(body.outputs):
        expr = body.definition[tensor]
        is_row = isinstance(expr, LIBRARY_CALLS) and number >= carried
        own = tensor
        if is_row or isinstance(expr, Loop):
            own = replace(tensor)
            exprs.append(Pointwise(COPY, (tensor,), own))
        outputs.append(own)
    if tuple(outputs) == body.outputs:
        return body
    return Fusion(body.name, exprs, outputs)
