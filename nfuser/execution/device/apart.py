# SPDX-License-Identifier: Apache-2.0
"""Results that are given memory: no two may lie in the same."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nfuser.execution.device.describe.libraries import Descriptor

_MOST_WORK = 1 << 16  # of NumPy's search for an address that both have


def _layout(d: Descriptor) -> Any:
    """Return an array at the addresses of another, which NumPy never reads."""
    item = d.dtype.itemsize
    strides = tuple(step * item for step in d.strides)
    ends = [(n - 1) * step for n, step in zip(d.shape, strides, strict=True)]
    below = -sum(end for end in ends if end < 0)
    span = below + sum(end for end in ends if end > 0) + item
    memory: Any = (ctypes.c_char * span).from_address(d.pointer - below)
    # Not by __array_interface__, of which NumPy 2.1.0 reads what is gone.
    return np.ndarray(d.shape, f"V{item}", memory, below, strides)


def share_elements(one: Descriptor, other: Descriptor) -> bool:
    """Tell whether some byte belongs to an element of both.

    Interleaved arrays, such as the even and the odd columns of one, share none.
    """
    if one.device != other.device or not one.meets(other):
        return False
    if 0 in one.shape or 0 in other.shape:
        return False
    shared: Any = np.shares_memory
    try:
        return bool(shared(_layout(one), _layout(other), max_work=_MOST_WORK))
    except np.exceptions.TooHardError:
        return True


def check_apart(outputs: Iterable[tuple[str, Descriptor]]) -> None:
    """Refuse outputs of which one would be written over another."""
    seen: list[tuple[str, Descriptor]] = []
    for what, d in outputs:
        for other, taken in seen:
            if share_elements(d, taken):
                message = (
                    f"{what}: expected memory of its own, found that of {other}; give "
                    "each result another array"
                )
                raise ArgumentError(message)
        seen.append((what, d))
