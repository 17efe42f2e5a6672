# SPDX-License-Identifier: Apache-2.0
"""The shape and dtype of what a statement gives, whatever memory it is given in."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import nfuser.execution.host.ir.rules as rules
import nfuser.execution.host.ir.statements as st
from nfuser.errors import ArgumentError
from nfuser.execution.host.run.callee import fusion_of, program_of, result_forms

if TYPE_CHECKING:
    from nfuser.execution.host.ir.rules import Form
    from nfuser.execution.host.ir.statements import Statement


def forms_of(stmt: Statement) -> list[Form]:
    """Return a form for each result, or none where the results alone say it."""
    match stmt:
        case st.Launch(function, operands):
            is_known = fusion_of(function) or program_of(function)
            return result_forms(function, operands) if is_known else []
        case st.Set(source):
            return [(source.shape, source.dtype)]
        case st.UnaryOp(name, source):
            return [rules.pointwise(name, [source])]
        case st.BinaryOp(name, lhs, rhs):
            return [rules.pointwise(name, [lhs, rhs])]
        case st.ReductionOp(name, source, axes):
            return [rules.reduce(name, source, axes)]
        case st.MatmulOp(lhs, rhs):
            return [rules.matmul(lhs, rhs)]
        case st.SelectOp(source, axis) | st.AliasSelect(source, axis):
            return [rules.select(source, axis)]
        case st.SliceOp(source, starts, stops, steps):
            return [rules.slices(source, starts, stops, steps)]
        case st.PermuteOp(source, order):
            return [rules.permute(source, order)]
        case st.Communicate():
            return [_exchanged(stmt)]
        case _:
            return []


def _exchanged(stmt: st.Communicate) -> Form:
    """Return what an exchange gives; without a mesh, the result says its extents."""
    mesh, along = stmt.mesh, stmt.along
    if not all(0 <= dim < len(mesh) for dim in along) or bool(mesh) != bool(along):
        message = f"{stmt.kind}: dimensions {along} of a mesh of {len(mesh)}"
        raise ArgumentError(message)
    ranks = prod(mesh[dim] for dim in along) if mesh else None
    shape, dtype = rules.exchange(stmt.kind, stmt.source, stmt.axes, stmt.ends, ranks)
    if ranks is None and len(shape) == stmt.result.ndim:
        given = stmt.result.shape
        shape = tuple(given[k] if k in stmt.axes else x for k, x in enumerate(shape))
    return shape, dtype
