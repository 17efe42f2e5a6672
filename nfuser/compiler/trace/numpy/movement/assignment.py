# SPDX-License-Identifier: Apache-2.0
"""Assignment to arrays and to parts of them: ``x[key] = value``, ``x += y``, ``out=``.

What is assigned to a view is assigned to the array that it is a view of. That array
then holds a new version, which every name and every view of it sees.
"""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nfuser.compiler.trace.numpy.movement.indexing as indexing
import nfuser.compiler.trace.numpy.movement.masks as masks
import nfuser.compiler.trace.numpy.movement.scatters as scatters
import nfuser.compiler.trace.numpy.movement.writes as writes
import nfuser.compiler.trace.numpy.names.refusals as refusals
from nfuser.compiler.ir.expr import ScatterOp
from nfuser.compiler.ops.shapes.assign import AssignedPart
from nfuser.compiler.trace.standins.standin import chosen_by_masks
from nfuser.errors import MutationError, UnsupportedError

if TYPE_CHECKING:
    from nfuser.compiler.trace.tracer import Tracer


def set_item(t: Tracer, x: Any, key: Any, value: Any) -> None:
    """Do ``x[key] = value``."""
    if x._is_number:
        message = f"{x.dtype.name} is a number here: it takes no item assignment"
        raise MutationError(message)
    listed = masks.spelled(t, x, key if isinstance(key, tuple) else (key,))
    if any(type(k) in chosen_by_masks for k in listed):
        raise UnsupportedError(refusals.MASKED_PLACES)
    if any(masks.is_mask(t, k) for k in listed):
        masks.put(t, x, listed, value)
        return
    part = indexing.get_item(t, x, key)
    if _is_apart(x, part):
        scatters.put(t, x, key, value, ScatterOp.SET)
        return
    if not _is_itself(t, part, value):
        writes.write(t, part, value, "unsafe")


def _is_apart(x: Any, part: Any) -> bool:
    """Tell whether indexing gave a copy, as it does by arrays of integers."""
    return part is not x and part._base is None


def _is_itself(t: Tracer, part: Any, value: Any) -> bool:
    """Tell whether a part is assigned to itself, as ``x[k] += y`` ends.

    That is no assignment of the caller's array only if there was one before: NumPy
    refuses it for one that is read-only.
    """
    if not hasattr(value, "_remake"):
        return False
    root, views = part._chain()
    other, others = value._chain()
    if root is not other or value._is_number:
        return False
    if root._slot is not None and all(root is not x for _, x in t.written()):
        return False
    held = root._operand()
    one, two = (AssignedPart(t.builder, held, v) for v in (views, others))
    return one.spelling == two.spelling
