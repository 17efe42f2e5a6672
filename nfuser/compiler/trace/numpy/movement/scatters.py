# SPDX-License-Identifier: Apache-2.0
"""Writes where index arrays say: ``x[i, j] = value``, and ``at`` of ufuncs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.trace.numpy.movement.keys as keys
import nfuser.compiler.trace.numpy.movement.writes as writes
from nfuser.compiler.ir.expr import ScatterOp
from nfuser.compiler.trace.standins.asked import to_be_assigned
from nfuser.compiler.trace.standins.literals import array_of
from nfuser.compiler.trace.standins.sizes import is_sequence
from nfuser.compiler.trace.standins.standin import Standin
from nfuser.errors import UnsupportedError

if TYPE_CHECKING:
    from nfuser.compiler.trace.tracer import Tracer


def _at(name: str, op: ScatterOp, verb: Any) -> Any:
    """Return the handler of ``np.add.at``, or of its like."""

    def handler(t: Tracer, a: Any, indices: Any, b: Any) -> None:
        if not isinstance(a, Standin):
            raise to_be_assigned()
        _require_kind(t, name, a, b)
        negated = name == "subtract" and not t.tensor(a).dtype.is_bool
        if negated:
            held = t.tensor(a).dtype.numpy
            value = t.wrap(array_of(t, b) if is_sequence(b) else t.tensor(b))
            put(t, a, indices, -value.astype(held), op, np.add)
        else:
            put(t, a, indices, b, op, verb)

    return handler


def _require_kind(t: Tracer, name: str, a: Any, values: Any) -> None:
    """Refuse values that NumPy takes in another dtype, and casts one after another.

    Sums of wider integers end with the same bits, and those of floats are as good.
    """
    given = array_of(t, values) if is_sequence(values) else t.operand(values)
    held = t.tensor(a)
    dtype, meet = held.dtype, t.builder.promote(held, given)
    if meet is dtype or not (dtype.is_bool or dtype.is_integer):
        return
    is_cut = meet.is_integer and name not in ("maximum", "minimum")
    if is_cut and not dtype.is_bool:
        return
    message = (
        f"write np.{name}.at(x, i, np.asarray(v).astype(x.dtype)), or let x be of "
        f"{meet}: NumPy computes in {meet}, and casts to {dtype} after each value"
    )
    raise UnsupportedError(message)


def put(
    t: Tracer, x: Any, key: Any, value: Any, op: ScatterOp, verb: Any = None
) -> None:
    """Put values where a key with index arrays says, or add them to what is there."""
    if not writes.scatter(t, x, key, value, op):  # each element once
        part = keys.parts_of(t, x, key)[0]
        found = value if verb is None else verb(part, value)
        writes.write(t, part, found, "same_kind")


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
