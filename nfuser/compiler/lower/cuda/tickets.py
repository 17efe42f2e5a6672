# SPDX-License-Identifier: Apache-2.0
"""Tickets, by which the block, or thread, that ends last finds that it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.functions import equal
from nfuser.compiler.lower.kernel.kernel_ir import (
    Barrier,
    Buffer,
    Call,
    Element,
    IndexValue,
    Memory,
    SetElement,
    Stmt,
    TakeTicket,
    Value,
    Var,
    guarded,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.lower.elements.values import Values


def comes_last(
    values: Values,
    place: tuple[Buffer, Scalar],
    splits: Scalar,
    threads: Iterable[Scalar],
    *,
    alone: bool,
) -> Value:
    """Take a ticket at ``place``; return whether ``splits`` have been taken.

    The first of the ``threads`` of a block takes it for all, who meet then.
    """
    ticket = Var(DType.I32)
    last = IndexValue(splits - 1, DType.I32)
    if alone:
        values.emit(TakeTicket(ticket, *place))
        return Call("equal", (ticket, last), DType.BOOL)
    zero = sc.const(0)
    flag = values.array(DType.I32, 1, Memory.SHARED)
    body: tuple[Stmt, ...] = (
        TakeTicket(ticket, *place),
        SetElement(flag, zero, ticket),
    )
    for thread in threads:
        body = guarded(equal(thread, 0), body)
    values.emit_all((*body, Barrier()))
    seen = values.let(Element(flag, zero))
    return Call("equal", (seen, last), DType.BOOL)
