# SPDX-License-Identifier: Apache-2.0
"""Results that are given memory: no two may lie in the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nfuser.device.libraries import Descriptor

_MOST_WORK = 1 << 16  # of NumPy's search for an address that both have


class _Layout:
    """Addresses for NumPy to reason about, which it never reads."""

    def __init__(self, d: Descriptor) -> None:
        item = d.dtype.itemsize
        self.__array_interface__ = {
            "version": 3,
            "data": (d.pointer, True),
            "shape": d.shape,
            "strides": tuple(step * item for step in d.strides),
            "typestr": f"|V{item}",
        }


def share_elements(one: Descriptor, other: Descriptor) -> bool:
    """Tell whether some byte belongs to an element of both.

    Interleaved arrays, such as the even and the odd columns of one, share none.
    """
    if one.device != other.device or not one.meets(other):
        return False
    if 0 in one.shape or 0 in other.shape:
        return False
    layouts: list[Any] = [np.asarray(_Layout(d)) for d in (one, other)]
    shared: Any = np.shares_memory
    try:
        return bool(shared(*layouts, max_work=_MOST_WORK))
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
