# SPDX-License-Identifier: Apache-2.0
"""Make one exchange of two along different dimensions of a mesh."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import nfuser.execution.host.ir.statements as st

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.execution.host.ir.statements import Statement


def merge_exchanges(
    body: tuple[Statement, ...], outputs: Sequence[TensorView]
) -> tuple[Statement, ...]:
    """Complete a fold, or gather an axis, along several dimensions at once.

    >>> from nfuser.compiler.dtypes import DType
    >>> from nfuser.compiler.ir.tensor import tensor
    >>> a, b, c = (tensor([4], DType.F32) for _ in range(3))
    >>> first = st.Communicate("allreduce_sum", a, (), b, None, (), (2, 3), (0,))
    >>> second = st.Communicate("allreduce_sum", b, (), c, None, (), (2, 3), (1,))
    >>> [s.along for s in merge_exchanges((first, second), [c])]
    [(0, 1)]
    """
    reads: dict[TensorView, int] = {}
    for tensor in (*outputs, *(t for s in st.walk(body) for t in st.reads(s))):
        reads[tensor] = reads.get(tensor, 0) + 1
    done: list[Statement] = []
    made: dict[TensorView, int] = {}  # where in `done` an exchange gives a tensor
    for stmt in body:
        if isinstance(stmt, st.Communicate):
            place = made.get(stmt.source)
            before = None if place is None else done[place]
            if (
                place is not None
                and isinstance(before, st.Communicate)
                and reads[stmt.source] == 1
                and _is_one(before, stmt)
            ):
                along = tuple(sorted((*before.along, *stmt.along)))
                del done[place]
                made = {t: k - (k > place) for t, k in made.items()}
                stmt = replace(stmt, source=before.source, along=along)
            made[stmt.result] = len(done)
        done.append(stmt)
    return body if len(done) == len(body) else tuple(done)


def _is_one(first: st.Communicate, second: st.Communicate) -> bool:
    """Tell whether the two are what one of all their ranks does.

    Parts are gathered in the order of ranks, whose last dimension counts fastest.
    """
    same = (first.kind, first.axes, first.mesh) == (
        second.kind,
        second.axes,
        second.mesh,
    )
    if not same or set(first.along) & set(second.along):
        return False
    if first.kind == "allgather":
        return min(first.along) > max(second.along)
    return first.kind.startswith("allreduce_")
