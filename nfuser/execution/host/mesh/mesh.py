# SPDX-License-Identifier: Apache-2.0
"""Ranks as a grid: the last dimension of a mesh counts fastest."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from nfuser.execution.host.ir.rules import RANK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.scalars.scalar import Scalar


def coordinate(mesh: Sequence[int], dim: int) -> Scalar:
    """Return where along ``dim`` the rank lies that runs the program."""
    later = prod(mesh[dim + 1 :])
    outer = RANK if later == 1 else RANK // later
    return outer if dim == 0 else outer % mesh[dim]


def peers(mesh: Sequence[int], along: Sequence[int], rank: int) -> tuple[int, ...]:
    """Return the ranks that differ from ``rank`` only ``along`` these dimensions.

    >>> peers((2, 3), (0,), 4), peers((2, 3), (1,), 4), peers((2, 3), (0, 1), 4)
    ((1, 4), (3, 4, 5), (0, 1, 2, 3, 4, 5))
    """
    found = [0]
    for dim, size in enumerate(mesh):
        own = rank // prod(mesh[dim + 1 :]) % size
        places = range(size) if dim in along else (own,)
        found = [base * size + place for base in found for place in places]
    return tuple(found)
