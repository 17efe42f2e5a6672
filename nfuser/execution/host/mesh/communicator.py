# SPDX-License-Identifier: Apache-2.0
"""What ranks that run the same program tell each other."""

from __future__ import annotations

from typing import Any, Protocol


class Communicator(Protocol):
    """One rank's end of the exchanges; ranks of a group call them in the same order."""

    rank: int
    size: int

    def communicate(
        self,
        kind: str,
        array: Any,
        axes: tuple[int, ...] = (),
        ends: tuple[int, ...] = (),
        ranks: tuple[int, ...] | None = None,
    ) -> Any:
        """Return this rank's result of the exchange ``kind`` among ``ranks``.

        None stands for all ranks. ``ends`` are places in ``ranks``: the rank that has
        what is broadcast, scattered or sent, or gets what is gathered, reduced or
        sent. A rank that gets nothing is given an array of the shape that it would
        get; one that gives nothing passes an array of the shape that it would give.
        """
        ...
