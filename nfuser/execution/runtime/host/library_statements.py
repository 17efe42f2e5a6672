# SPDX-License-Identifier: Apache-2.0
"""Statements that the array library performs: what it reads, and what it gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import nfuser.execution.host.call.program as flat
import nfuser.execution.host.ir.rules as rules
import nfuser.execution.host.ir.statements as st
from nfuser.execution.device.describe.libraries import Library

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.dtypes import DType


def operands_of(stmt: st.Compute) -> list[tuple[st.Operand, DType]]:
    """Return what is read, each with the dtype in which it is read."""
    if isinstance(stmt, st.BinaryOp):
        read = stmt.lhs, stmt.rhs
        return [*zip(read, rules.loop_types(stmt.name, read), strict=False)]
    return [(x, x.dtype) for x in st.reads(stmt)]


def given_shape(
    stmt: st.Compute, shapes: Sequence[tuple[int, ...]]
) -> tuple[int, ...] | None:
    """Return the shape of what the library computes; None if it refuses to."""
    match stmt:
        case st.Set():
            return shapes[0]
        case st.MatmulOp():
            return _product(*shapes)
        case st.ReductionOp(axes=axes):
            return tuple(n for k, n in enumerate(shapes[0]) if k not in axes)
        case _:
            try:
                return np.broadcast_shapes(*shapes)
            except ValueError:
                return None


def _product(lhs: tuple[int, ...], rhs: tuple[int, ...]) -> tuple[int, ...]:
    if lhs[-1] != rhs[-min(len(rhs), 2)]:
        message = f"matmul: operands of shapes {lhs} and {rhs} do not fit"
        raise ValueError(message)
    batch = np.broadcast_shapes(lhs[:-2], rhs[:-2])
    return (*batch, *lhs[-2:-1], *(rhs[-1:] if len(rhs) > 1 else ()))


def operation_of(
    stmt: st.Compute, views: tuple[flat.ViewOf, ...], library: Library
) -> tuple[str, flat.LibraryOperation | None]:
    """Return the name of what the library does, and how; ``views`` give the result.

    Products of NumPy's real matrices may be small, and then are made without it.
    """
    match stmt:
        case st.Set():
            return "copy", flat.LibraryOperation(views=views)
        case st.UnaryOp(name, source):
            types = rules.loop_types(name, (source,))
            return name, flat.LibraryOperation(types, views=views)
        case st.BinaryOp(name, lhs, rhs):
            types = rules.loop_types(name, (lhs, rhs))
            return name, flat.LibraryOperation(types, views=views)
        case st.ReductionOp(name, _, axes):
            return name, flat.LibraryOperation(axes=axes, views=views)
        case _:
            has_parts = any(t.dtype.is_complex for t in st.reads(stmt))
            is_plain = library is Library.NUMPY and not has_parts
            return "matmul", None if is_plain else flat.LibraryOperation()
