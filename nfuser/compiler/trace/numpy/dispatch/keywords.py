# SPDX-License-Identifier: Apache-2.0
"""Keywords and integers of NumPy's functions, as all that handle them take them."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np

import nfuser.compiler.trace.numpy.names.refusals as refusals
from nfuser.compiler.trace.standins.symbolic import SymbolicInt

MISSING: Any = np._NoValue  # pyright: ignore[reportPrivateUsage]


def given(name: str, options: dict[str, Any]) -> None:
    """Refuse keywords that are not honoured; a default value passes."""
    for option, setting in options.items():
        harmless = setting is None or setting is MISSING
        if not (harmless or (option == "where" and setting is True)):
            raise refusals.keyword(name, option)


def plain(number: Any) -> Any:
    """Return today's integers for sizes of the trace: a size as an axis is a guard."""
    if isinstance(number, (tuple, list)):
        return tuple(plain(n) for n in number)
    return int(number) if isinstance(number, SymbolicInt) else number


def keeps(keepdims: Any) -> bool:
    """Tell whether the axes that are folded stay."""
    return keepdims is not MISSING and bool(keepdims)
