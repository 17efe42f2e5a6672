# SPDX-License-Identifier: Apache-2.0
"""What ranks that run the same program tell each other."""

from __future__ import annotations

from typing import Any, Protocol


class Communicator(Protocol):
    """One rank's end of the collectives; all ranks call them in the same order."""

    rank: int
    size: int

    def communicate(self, kind: str, array: Any, axes: tuple[int, ...]) -> Any:
        """Return this rank's result of the collective ``kind``."""
        ...
