# SPDX-License-Identifier: Apache-2.0
"""Sizes, counts and places that a user passes: open integers stay open."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.errors import ArgumentError
from nfuser.trace.standin import Standin
from nfuser.trace.symbolic import SymbolicInt

if TYPE_CHECKING:
    from nfuser.ir.scalar import Scalar
    from nfuser.trace.tracer import Tracer


def is_sequence(x: Any) -> bool:
    """Tell whether ``x`` lists several things, as NumPy sees it."""
    if isinstance(x, np.ndarray):
        return x.ndim > 0
    return isinstance(x, (tuple, list, range)) and not isinstance(x, Standin)


def size(t: Tracer, x: Any, name: str) -> Scalar | int:
    """Return an integer as verbs take it; one of NumPy's or 0-d becomes a guard."""
    if isinstance(x, SymbolicInt):
        return t.operand(x)
    try:
        return x.__index__()
    except (AttributeError, TypeError) as error:
        message = (
            f"{name}: expected an integer, found {x!r} ({type(x).__name__}); "
            "write int(n) or n // m for a whole number"
        )
        raise ArgumentError(message) from error


def sizes(t: Tracer, x: Any, name: str) -> list[Scalar | int]:
    """Return the integers that ``x`` lists, or the one that it is."""
    listed = x if is_sequence(x) else (x,)
    return [size(t, n, name) for n in listed]
