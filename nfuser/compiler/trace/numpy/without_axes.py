# SPDX-License-Identifier: Apache-2.0
"""What NumPy makes of results without axes: arrays of some functions, else numbers.

A number is immutable, and comes back as a scalar; an array without axes is written in
place, seen through every name, and comes back as an array.
"""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

from nfuser.compiler.trace.standins.standin import Standin

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.trace.tracer import Tracer

_ARRAYS = frozenset(
    (
        *("where", "select", "piecewise", "copy", "meshgrid", "expand_dims"),
        *("full", "zeros", "ones", "empty", "broadcast_to", "broadcast_arrays"),
        *("full_like", "zeros_like", "ones_like", "empty_like"),
    )
)
_LIKE_THEIR_SOURCE = frozenset(
    (
        *("squeeze", "transpose", "matrix_transpose", "permute_dims", "swapaxes"),
        *("moveaxis", "real", "imag", "astype", "flip", "reshape"),
    )
)


def told(name: str, handler: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``handler``, whose results say whether NumPy gives arrays.

    What it calls itself says so first, for itself: the call of the user decides.
    """
    if name in _LIKE_THEIR_SOURCE:

        @wraps(handler)
        def telling(t: Tracer, *args: Any, **options: Any) -> Any:
            found = handler(t, *args, **options)
            mark(found, args, is_array=not is_number(args[0] if args else None))
            return found

    else:
        are_arrays = name in _ARRAYS

        @wraps(handler)
        def telling(t: Tracer, *args: Any, **options: Any) -> Any:
            found = handler(t, *args, **options)
            mark(found, args, is_array=are_arrays)
            return found

    return telling


def is_number(x: Any) -> bool:
    """Tell whether ``x`` is no array, as far as the trace knows it."""
    return isinstance(x, Standin) and getattr(x, "_is_number", True)


def mark(found: Any, given: tuple[Any, ...], *, is_array: bool) -> Any:
    """Say of what a call gave, unless it was given to it; return it."""
    if isinstance(found, Standin):  # asked first, as what it says it is takes longer
        if hasattr(type(found), "_remake") and not any(found is x for x in given):
            found._is_array = is_array  # pyright: ignore[reportAttributeAccessIssue]
    elif isinstance(found, (tuple, list)):
        for x in found:
            mark(x, given, is_array=is_array)
    return found
