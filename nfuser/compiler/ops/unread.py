# SPDX-License-Identifier: Apache-2.0
"""Results that nobody reads: sizes or values of a later call may not fit them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.expr import (
    Concatenate,
    Expand,
    Iota,
    Loop,
    Matmul,
    Pad,
    Pointwise,
    Remap,
    Reshape,
    Squeeze,
    Take,
    results,
)
from nfuser.compiler.ir.fusion import live_exprs, may_fail
from nfuser.compiler.ir.scalars import scalar as sc

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView


def live_or_checked(
    outputs: Iterable[TensorView],
    exprs: Iterable[Expr],
    definition: Mapping[TensorView, Expr],
) -> list[Expr]:
    """Return what ``outputs`` need, and those of ``exprs`` that raise in some calls.

    That is where sizes may not fit, or values. With all that these read, definitions
    first.
    """
    checked = (results(e)[0] for e in exprs if may_raise(e))
    return live_exprs([*outputs, *checked], definition)


def may_raise(expr: Expr) -> bool:
    """Tell whether there may be sizes or values that ``expr`` refuses."""
    return may_misfit(expr) or may_fail(expr)


def may_misfit(expr: Expr) -> bool:
    """Tell whether there may be sizes that ``expr`` refuses, as far as is seen."""
    match expr:
        case Pointwise(_, operands):
            return _may_clash([t.shape for t in operands])
        case Expand(source, result):
            pairs = zip(reversed(source.shape), reversed(result.shape), strict=False)
            return any(a is not b and a is not sc.const(1) for a, b in pairs)
        case Matmul(lhs, rhs):
            inner = rhs.shape[-min(2, rhs.ndim)]
            stacks = [lhs.shape[:-2], rhs.shape[:-2]]
            return lhs.shape[-1] is not inner or _may_clash(stacks)
        case Concatenate(parts, _, axis):
            rest = [t.shape[:axis] + t.shape[axis + 1 :] for t in parts]
            return len(set(rest)) > 1
        case Squeeze(source, _, axes):
            return any(source.shape[k] is not sc.const(1) for k in axes)
        case Take(source, _, _, axis):
            return not isinstance(source.shape[axis], sc.Const)
        case Reshape() | Remap():
            return True
        case Loop():
            changes = (a.shape != b.shape for a, b, _ in expr.pairs)
            return any(changes) or any(map(may_misfit, expr.body.exprs))
        case Pad(_, _, result) | Iota(result):
            return not all(sc.is_natural(n) for n in result.shape)
        case _:
            return False


def _may_clash(shapes: Sequence[Sequence[Scalar]]) -> bool:
    """Tell whether two extents that stretch to each other may be different."""
    if shapes.count(shapes[0]) == len(shapes):
        return False
    for back in range(1, max(map(len, shapes)) + 1):
        extents = {s[-back] for s in shapes if len(s) >= back} - {sc.const(1)}
        if len(extents) > 1:
            return True
    return False
