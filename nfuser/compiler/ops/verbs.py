# SPDX-License-Identifier: Apache-2.0
"""The verbs of elementwise operations, found by their signature."""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any

import nfuser.compiler.ops as ops

if TYPE_CHECKING:
    from collections.abc import Callable


def elementwise_verbs(count: int) -> dict[str, Callable[..., Any]]:
    """Return the verbs that take ``count`` operands and no more, by their names.

    >>> from nfuser.compiler.ops.verbs import elementwise_verbs
    >>> {"exp", "clip"} & {*elementwise_verbs(1)}, "hypot" in elementwise_verbs(2)
    ({'exp'}, True)
    """
    found = [x for x in vars(ops).values() if isinstance(x, FunctionType)]
    return {verb.__name__: verb for verb in found if _operands(verb) == count}


def _operands(verb: FunctionType) -> int | None:
    """Return how many operands ``verb`` takes, if it takes nothing else."""
    if not verb.__module__.startswith("nfuser.compiler.ops.elementwise"):
        return None
    kinds = [k for n, k in verb.__annotations__.items() if n not in ("b", "return")]
    is_plain = not verb.__defaults__ and {*kinds} == {"Operand"}
    return len(kinds) if is_plain else None
