# SPDX-License-Identifier: Apache-2.0
"""Assignment to arrays and to parts of them: ``x[key] = value``, ``x += y``, ``out=``.

What is assigned to a view is assigned to the array that it is a view of. That array
then holds a new version, which every name and every view of it sees.
"""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.ops as ops
import nfuser.trace.numpy.movement.indexing as indexing
import nfuser.trace.numpy.movement.scatters as scatters
import nfuser.trace.numpy.movement.writes as writes
import nfuser.trace.numpy.names.refusals as refusals
from nfuser.errors import MutationError, UnsupportedError
from nfuser.ir import scalar as sc
from nfuser.ir.expr import ScatterOp
from nfuser.ops.shapes.assign import Target
from nfuser.trace.standins.literals import array_of
from nfuser.trace.standins.sizes import is_sequence
from nfuser.trace.standins.standin import Standin, is_ndarray

if TYPE_CHECKING:
    from nfuser.trace.tracer import Tracer


def set_item(t: Tracer, x: Any, key: Any, value: Any) -> None:
    """Do ``x[key] = value``."""
    if x._is_number:
        message = f"{x.dtype.name} is a number here: it takes no item assignment"
        raise MutationError(message)
    mask = _mask_of(t, key)
    if mask is not None:
        _set_where(t, x, mask, value)
        return
    part = indexing.get_item(t, x, key)
    is_counted = part is not x and part._is_shared  # by a loop, and looked up anew
    if is_counted or _is_apart(x, part):
        scatters.put(t, x, key, value, ScatterOp.SET)
        return
    if not _is_itself(t, part, value):
        writes.write(t, part, value, "unsafe")


def _mask_of(t: Tracer, key: Any) -> Any:
    """Return a key that is a mask, as an array."""
    listed = key if isinstance(key, tuple) else (key,)
    found = [k for k in listed if _is_mask(t, k)]
    if not found:
        return None
    if len(listed) > 1:
        raise UnsupportedError(refusals.SCATTER)
    return found[0]


def _is_mask(t: Tracer, key: Any) -> bool:
    if isinstance(key, (bool, np.bool_)) and not isinstance(key, Standin):
        return True
    if isinstance(key, Standin) and hasattr(key, "_remake"):
        return t.tensor(key).dtype.is_bool
    if is_ndarray(key):
        return key.dtype == bool
    return (
        is_sequence(key)
        and bool(np.asarray(key, object).size)
        and (isinstance(np.asarray(key, object).flat[0], (bool, np.bool_)))
    )


def _set_where(t: Tracer, x: Any, mask: Any, value: Any) -> None:
    """Assign one value, or one for each place of the last axes, where a mask holds."""
    held = t.tensor(x)
    chosen = array_of(t, mask)
    if chosen.ndim > held.ndim:
        message = (
            f"too many indices for array: array is {held.ndim}-dimensional, but "
            f"{chosen.ndim} were indexed"
        )
        raise refusals.AxisError(message)
    b = t.builder
    rest = held.shape[chosen.ndim :]
    for extent, wanted in zip(chosen.shape, held.shape, strict=False):
        _require_equal(t, extent, wanted, chosen, held)
    given = b.convert(t.operand(value), held.dtype) if _is_plain(value) else None
    new = array_of(t, value) if given is None else given
    if new.ndim > len(rest):
        lead = new.shape[: new.ndim - len(rest)]
        if not all(b.ask(sc.equal(n, 1), usual=1) for n in lead):
            raise UnsupportedError(refusals.MASKED_VALUES)
        new = ops.squeeze(b, new, tuple(range(len(lead))))
    chosen = ops.expand_dims(b, chosen, tuple(range(chosen.ndim, held.ndim)))
    found = ops.where(b, chosen, b.cast(new, held.dtype), held)
    writes.write(t, x, t.wrap(found), "unsafe")


def _require_equal(t: Tracer, extent: Any, wanted: Any, mask: Any, held: Any) -> None:
    b = t.builder
    if b.ask(sc.equal(extent, wanted), usual=1):
        return
    message = (
        f"boolean index of shape {b.shape_text(mask.shape)} did not match the indexed "
        f"array of shape {b.shape_text(held.shape)}"
    )
    raise refusals.AxisError(message)


def _is_plain(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex)) and not isinstance(
        value, Standin
    )


def _is_apart(x: Any, part: Any) -> bool:
    """Tell whether indexing gave a copy, as it does by arrays of integers."""
    return part is not x and part._base is None


def _is_itself(t: Tracer, part: Any, value: Any) -> bool:
    """Tell whether a part is assigned to itself, as ``x[k] += y`` ends."""
    if not hasattr(value, "_remake"):
        return False
    root, views = part._chain()
    other, others = value._chain()
    if root is not other or value._is_number:
        return False
    held = root._operand()
    one, two = (Target(t.builder, held, v) for v in (views, others))
    return one.spelling == two.spelling
