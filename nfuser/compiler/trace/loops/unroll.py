# SPDX-License-Identifier: Apache-2.0
"""A loop that is written down turn by turn, because the user says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

T = TypeVar("T")


def unroll(turns: Iterable[T]) -> tuple[T, ...]:
    """Return the items of ``turns``: a fused function writes a loop over them down.

    Each turn is traced by itself, as Python runs it, and may do what it likes. Open
    bounds of a range become part of the program.

    Parameters
    ----------
    turns
        What a loop runs over, as ``range(n)``.

    Examples
    --------
    >>> total = 0
    >>> for k in unroll(range(3)):
    ...     total = 10 * total + k
    >>> total
    12
    """
    return tuple(turns)
