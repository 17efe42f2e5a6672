# SPDX-License-Identifier: Apache-2.0
"""Let the elements of an array, or of a view of it, be others: a new version of it."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ops as ops
import nfuser.compiler.trace.numpy.movement.keys as keys
import nfuser.compiler.trace.numpy.names.refusals as refusals
from nfuser.compiler.dtypes.promotion import safe_cast
from nfuser.compiler.ir.expr import ScatterOp
from nfuser.compiler.ir.scalars.functions import equal
from nfuser.compiler.ops.shapes.assign import AssignedPart
from nfuser.compiler.trace.numpy.dispatch.keywords import MISSING
from nfuser.compiler.trace.standins.asked import to_be_assigned
from nfuser.compiler.trace.standins.dialect import NUMPY
from nfuser.compiler.trace.standins.literals import array_of
from nfuser.compiler.trace.standins.sizes import is_sequence
from nfuser.compiler.trace.standins.standin import Standin
from nfuser.errors import MutationError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nfuser.compiler.dtypes import DType
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.trace.tracer import Tracer


def write(t: Tracer, x: Any, value: Any, casting: str) -> None:
    """Let the elements that ``x`` stands for be ``value``."""
    b = t.builder
    b.source = t.turns.line()
    root, views = x._chain()
    if root._is_variable:
        message = (
            "assign to x.copy(): a function that a derivative is taken of cannot "
            "assign to its arguments"
        )
        raise MutationError(message)
    if root._is_shared:
        message = (
            "assign to x.copy(): an array that a loop bound anew may be another "
            "name's array, too, or that of before the loop"
        )
        raise MutationError(message)
    counted = _counted(x)
    if counted is not None:
        _write_counted(t, x, counted, value, casting)
        return
    held = root._operand()
    target = AssignedPart(b, held, views)
    new = fitted(t, value, target.shape, target.dtype, casting)
    if not target.steps and root._slot is None:
        root._is_own = False
        root._hold(new)
        return
    if not root._is_own:
        held = b.point("copy", held)
        root._is_own = True
    root._hold(target.assigned(b, held, new))


def into(name: str, handler: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``handler``, whose result goes into an array that is given as ``out=``.

    It has the dtype and the shape of the result: by another NumPy computes otherwise,
    as it does by one of 16 bits. One without axes NumPy gives back as an array.
    """

    @wraps(handler)
    def writing(t: Tracer, *args: Any, out: Any = None, **options: Any) -> Any:
        found = handler(t, *args, **options)
        if out is None or out is MISSING:
            return found
        if isinstance(out, tuple) or t.dialect is not NUMPY:
            raise refusals.keyword(name, "out")
        if not isinstance(out, Standin):
            if not t.makes:
                raise to_be_assigned()
            raise refusals.plain_output(name, is_in_place=False, is_made=False)
        held, made = t.tensor(out), t.tensor(found)
        pairs = zip(held.shape, made.shape, strict=False)
        is_alike = held.dtype is made.dtype and held.ndim == made.ndim
        is_alike = is_alike and held.ndim > 0 and not held.dtype.is_half
        if not is_alike or not all(
            t.builder.ask(equal(m, n), usual=1) for m, n in pairs
        ):
            raise refusals.keyword(name, "out")
        write(t, out, found, "same_kind")
        return out

    return writing


def _counted(x: Any) -> Any:
    """Return the view at a place that a loop counts which ``x`` is, or is a view of."""
    while x is not None and x._counted is None:
        x = x._base
    return x


def _write_counted(t: Tracer, x: Any, counted: Any, value: Any, casting: str) -> None:
    """Let ``x`` be ``value``, and put all of ``counted`` where the loop counts."""
    b = t.builder
    held = counted._operand()
    target = AssignedPart(b, held, x._chain(counted)[1])
    new = fitted(t, value, target.shape, target.dtype, casting)
    row = target.assigned(b, held, new) if target.steps else new
    whole, key = counted._counted
    scatter(t, whole, key, t.wrap(row), ScatterOp.SET)


def scatter(t: Tracer, x: Any, key: Any, value: Any, op: ScatterOp) -> bool:
    """Put values where the index arrays of a key say, or add them to what is there.

    Return whether there are any.
    """
    part, arrays, places, at = keys.parts_of(t, x, key)
    if not arrays:
        return False
    b = t.builder
    held = t.tensor(part)
    indices = keys.together(b, arrays)
    shape = indices[0].shape
    kept = [n for k, n in enumerate(held.shape) if k not in places]
    wanted = (*kept[:at], *shape, *kept[at:])
    given = fitted(t, value, wanted, held.dtype, "unsafe")
    lead = tuple(range(len(shape)))
    if at:
        given = ops.moveaxis(b, given, tuple(k + at for k in lead), lead)
    rows, back = ops.rows_first(b, held, places)
    made: TensorView = ops.scatter(b, op, rows, indices, given)
    if rows is not held:
        made = ops.permute(b, made, back)
    write(t, part, t.wrap(made), "unsafe")
    return True


def fitted(
    t: Tracer, value: Any, shape: Sequence[Scalar], dtype: DType, casting: str
) -> TensorView:
    """Return a value in the dtype and the shape of the elements that it is for."""
    b = t.builder
    wanted = dtype if casting == "unsafe" else None
    taken = array_of(t, value, wanted) if is_sequence(value) else t.operand(value)
    if casting == "unsafe":
        if isinstance(value, (np.generic, np.ndarray)) and not isinstance(
            value, Standin
        ):
            taken = b.tensor(taken)
        found = b.convert(taken, dtype)
    else:
        found = b.tensor(taken)
        safe_cast(found.dtype, dtype, casting)
        found = b.cast(found, dtype)
    lead = found.ndim - len(shape)
    if casting == "unsafe" and all(
        b.ask(equal(n, 1), usual=1) for n in found.shape[: max(lead, 0)]
    ):
        found = ops.squeeze(b, found, tuple(range(max(lead, 0))))
    pairs = zip(reversed(found.shape), reversed(shape), strict=False)
    known = [(b.today(a), b.today(c)) for a, c in pairs]
    fits = found.ndim <= len(shape) and all(
        a is None or c is None or a in (1, c) for a, c in known
    )
    if not fits:
        given, wanted = b.shape_text(found.shape), b.shape_text(shape)
        raise refusals.does_not_fit(wanted, given, is_item=casting == "unsafe")
    return ops.broadcast_to(b, found, shape)
