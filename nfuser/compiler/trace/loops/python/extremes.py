# SPDX-License-Identifier: Apache-2.0
"""Python's ``max`` and ``min`` of numbers that are not known while tracing."""

# What a traced function is given, and gives, has no static type.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import operator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.dtypes import DType, promote
from nfuser.compiler.trace.loops.forms import between
from nfuser.compiler.trace.standins.array import TracedArray

if TYPE_CHECKING:
    from collections.abc import Callable

_COMPARED = ((max, operator.gt), (min, operator.lt))


def extreme(function: Any) -> Callable[..., Any] | None:
    """Return what runs in place of ``max`` or ``min``; None for other functions."""
    for plain, is_better in _COMPARED:
        if function is plain:
            return partial(_extreme, plain, is_better)
    return None


def _extreme(
    plain: Callable[..., Any],
    is_better: Callable[[Any, Any], Any],
    *items: Any,
    **options: Any,
) -> Any:
    """Choose as Python does, one after the other: the first one of equals."""
    if options or len(items) < 2 or not _are_numbers(items):
        return plain(*items, **options)
    best = items[0]
    for item in items[1:]:
        found = is_better(item, best)
        if isinstance(found, TracedArray):
            best = between(found._tracer, found, item, best, "what is chosen")
        elif found:
            best = item
    return best


def _are_numbers(items: tuple[Any, ...]) -> bool:
    """Tell whether one dtype holds all, whichever is chosen."""
    arrays = [x for x in items if isinstance(x, TracedArray)]
    is_number = (isinstance(x, (TracedArray, np.generic, int, float)) for x in items)
    if not arrays or not all(is_number) or any(x.ndim for x in arrays):
        return False
    t = arrays[0]._tracer
    kinds = {t.builder.type_of(t.operand(x)) for x in items}
    dtypes = kinds & set(DType)
    return not dtypes or {promote(*kinds)} == dtypes
