# SPDX-License-Identifier: Apache-2.0
"""Arrays that have two names after a branch: what is written into one may be lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.trace.call.tree as tree
from nfuser.compiler.trace.loops.python.state import is_array
from nfuser.compiler.trace.standins.asked import to_be_assigned
from nfuser.compiler.trace.standins.standin import Standin

if TYPE_CHECKING:
    from nfuser.compiler.trace.loops.python.state import State
    from nfuser.compiler.trace.tracer import Tracer


def mark_shared(
    t: Tracer, found: Any, before: State, sides: tuple[Any, Any], others: dict[int, Any]
) -> Any:
    """Mark what was chosen, if one side is an array that another name may have.

    A side that was itself chosen may be one of ``others``. What is written into one
    that may be an array of plain NumPy's would not be seen there, nor the other way.
    """
    if found is sides[0]:
        return found
    leaves = tree.flatten(sides)[0]
    ends = [x for x in leaves if isinstance(x, Standin)]
    arrays = [x for x in ends if not before.is_own(x)]
    arrays += [a for x in ends for a in others.get(id(x), ())]
    is_plain = any(type(x) is np.ndarray for x in leaves)
    if is_plain and not t.makes:
        raise to_be_assigned()
    for x in filter(is_array, tree.flatten(found)[0]):
        if arrays:
            x._choose(filter(is_array, arrays))
        x._is_shared |= is_plain
    return found
