# SPDX-License-Identifier: Apache-2.0
"""Writes where index arrays say: ``x[i, j] = value``, and ``at`` of ufuncs."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ops as ops
import nfuser.compiler.trace.numpy.movement.indexing as indexing
import nfuser.compiler.trace.numpy.movement.writes as writes
from nfuser.compiler.ir.expr import ScatterOp
from nfuser.compiler.trace.standins.asked import to_be_assigned
from nfuser.compiler.trace.standins.standin import Standin

if TYPE_CHECKING:
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.trace.tracer import Tracer


def _at(name: str, op: ScatterOp, verb: Any) -> Any:
    """Return the handler of ``np.add.at``, or of its like."""

    def handler(t: Tracer, a: Any, indices: Any, b: Any) -> None:
        if not isinstance(a, Standin):
            raise to_be_assigned()
        negated = name == "subtract" and not t.tensor(a).dtype.is_bool
        put(t, a, indices, -b if negated else b, op, verb)

    return handler


def put(
    t: Tracer, x: Any, key: Any, value: Any, op: ScatterOp, verb: Any = None
) -> None:
    """Put values where a key with index arrays says, or add them to what is there."""
    part, arrays, places, at = indexing.parts_of(t, x, key)
    b = t.builder
    if not arrays:  # each element once
        found = value if verb is None else verb(part, value)
        writes.write(t, part, found, "same_kind")
        return
    held = t.tensor(part)
    indices = indexing.together(b, arrays)
    shape = indices[0].shape
    kept = [n for k, n in enumerate(held.shape) if k not in places]
    wanted = (*kept[:at], *shape, *kept[at:])
    given = writes.fitted(t, value, wanted, held.dtype, "unsafe")
    lead = tuple(range(len(shape)))
    if at:
        given = ops.moveaxis(b, given, tuple(k + at for k in lead), lead)
    rows, back = ops.rows_first(b, held, places)
    made: TensorView = ops.scatter(b, op, rows, indices, given)
    if rows is not held:
        made = ops.permute(b, made, back)
    writes.write(t, part, t.wrap(made), "unsafe")


HANDLERS: dict[str, Any] = {
    f"{name}.at": _at(name, op, getattr(np, name))
    for name, op in {
        "add": ScatterOp.ADD,
        "subtract": ScatterOp.ADD,
        "multiply": ScatterOp.MULTIPLY,
        "maximum": ScatterOp.MAX,
        "minimum": ScatterOp.MIN,
    }.items()
}
