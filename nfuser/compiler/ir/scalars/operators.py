# SPDX-License-Identifier: Apache-2.0
"""The operators that the normal form of scalars does not dissolve."""

from __future__ import annotations

from enum import Enum


class Op(Enum):
    """An operator that the normal form does not dissolve; the value is its spelling."""

    FLOORDIV = "//"
    MOD = "%"
    MIN = "min"
    MAX = "max"
    LT = "<"
    EQ = "=="
    # Numbers that the host prepares for an exact division by multiplication.
    MULTIPLIER = "multiplier"
    SHIFT = "shift"

    __hash__ = object.__hash__  # Enum's own takes the name


PLACES = {op: place for place, op in enumerate(Op)}
