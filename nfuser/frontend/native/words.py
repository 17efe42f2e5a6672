# SPDX-License-Identifier: Apache-2.0
"""What native code reads of arguments, and what it can read of numbers."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.execution.host.call.native.number_steps import GREATEST, LEAST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.dtypes import DType


NESTS = (tuple, list, dict)


def rows_of(args: Sequence[Any]) -> tuple[list[Any], list[range]]:
    """Return what is read of arguments, and which of it each of them is.

    A nest comes before what it holds.
    """
    rows: list[Any] = []
    places: list[range] = []
    for item in args:
        first = len(rows)
        stack = [item]
        while stack:
            found = stack.pop()
            rows.append(found)
            if type(found) in NESTS:
                held = found.values() if type(found) is dict else found
                stack.extend(reversed(list(held)))
        places.append(range(first, len(rows)))
    return rows, places


def limits_of(dtype: DType) -> tuple[int, int]:
    """Return the least and the greatest integer that ``dtype`` and a word hold."""
    if not dtype.is_integer:
        return LEAST, GREATEST
    limits = np.iinfo(dtype.numpy.name)
    return int(limits.min), min(int(limits.max), GREATEST)


def bits_of(value: Any) -> int:
    """Return what native code reads of a number."""
    if isinstance(value, int):
        return value
    if isinstance(value, np.generic):
        signed = value.dtype.kind == "i" or value.nbytes == 8
        return int.from_bytes(value.tobytes(), "little", signed=signed)
    return struct.unpack("<q", struct.pack("<d", value))[0]
