# SPDX-License-Identifier: Apache-2.0
"""Let a rank compute only what it owns."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, get_args

import nfuser.execution.host.ir.statements as st
from nfuser.compiler.ir.scalars import scalar as sc

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.execution.host.ir.statements import Statement

Guard: TypeAlias = "tuple[Scalar, ...]"  # what holds on the ranks that own a tensor
Guards: TypeAlias = "dict[TensorView, Guard]"
_VIEWS: tuple[type, ...] = get_args(st.View)


def guard_owners(
    body: Sequence[Statement], guards: Mapping[TensorView, Guard]
) -> tuple[Statement, ...]:
    """Return ``body`` with an If around what is computed for some ranks alone.

    All have memory for the result: others may be sent it. Views are taken by all.
    """
    done: list[Statement] = []
    for stmt in body:
        results = st.writes(stmt)
        guard = guards.get(results[0], ()) if results else ()
        if not guard or isinstance(stmt, _VIEWS):
            done.append(stmt)
            continue
        condition = sc.const(1)
        for one in guard:
            condition = condition * one
        inside: tuple[Statement, ...] = (stmt,)
        if (
            done
            and isinstance(last := done[-1], st.IfThenElse)
            and last.condition is condition
        ):
            inside = (*last.body, stmt)
            done.pop()
        done.append(st.Allocate(results[0], stmt.line))
        done.append(st.IfThenElse(condition, inside, (), stmt.line))
    return tuple(done)
