# SPDX-License-Identifier: Apache-2.0
"""Compute what is written twice once."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING

from nfuser.compiler.ir.expr import (
    LIBRARY_CALLS,
    Argument,
    Expr,
    Loop,
    Pointwise,
    Reduce,
    results,
)
from nfuser.compiler.ir.fusion import Fusion, Replacement, rebuild
from nfuser.compiler.ir.point_op import NEAR, POINT_OPS

if TYPE_CHECKING:
    from nfuser.compiler.ir.tensor import TensorView


_COPIED = (*LIBRARY_CALLS, Reduce)
_EXACT = {near: POINT_OPS[name] for name, near in NEAR.items()}


def merge_common_subexpressions(fusion: Fusion) -> Fusion:
    """Use the first of several expressions that say the same of the same tensors.

    What is wanted near at one place and exactly at another is computed exactly, once.
    """
    first: dict[tuple[object, ...], Expr] = {}
    sharpened: set[TensorView] = set()
    outputs = set(fusion.outputs)

    def change(expr: Expr) -> TensorView | None:
        # Outputs stay apart: each is a buffer of its own. But what the library gives,
        # and what a reduction leaves of all that it reads, is copied there rather than
        # computed twice. Reductions with two results have no single tensor to forward
        # to.
        if isinstance(expr, (Argument, Loop)) or len(results(expr)) > 1:
            return None
        found = first.setdefault(_key(expr), expr)
        is_apart = results(expr)[0] in outputs and not isinstance(expr, _COPIED)
        if found is expr or is_apart:
            return None
        if isinstance(expr, Pointwise) and expr.op not in _EXACT:
            sharpened.add(results(found)[0])
        return results(found)[0]

    def sharpen(expr: Expr) -> Replacement | None:
        if not (isinstance(expr, Pointwise) and expr.result in sharpened):
            return None
        exact = replace(expr, op=_EXACT.get(expr.op, expr.op))
        return Replacement((exact,), (expr.result,)) if exact.op != expr.op else None

    return rebuild(rebuild(fusion, change), sharpen)


def _key(expr: Expr) -> tuple[object, ...]:
    result = results(expr)[0]
    skip = ("result", "results")
    own = [getattr(expr, f.name) for f in fields(expr) if f.name not in skip]
    if isinstance(expr, Pointwise):
        own[0] = _EXACT.get(expr.op, expr.op)
    elif own and isinstance(own[0], (bool, int, float, complex)):
        own[:1] = [type(own[0]), repr(own[0])]  # 0.0 and -0.0, 1 and True differ
    return (type(expr), result.dtype, result.shape, *own)
