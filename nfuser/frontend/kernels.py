# SPDX-License-Identifier: Apache-2.0
"""What a user sees of one kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nfuser.host.program import Launch


class KernelView:
    """One kernel of a call: its source, and how it is launched."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self.name = launch.source.entry
        self.source = launch.source.text
        self.signature = launch.source.signature
        self.grid = launch.grid
        self.block = launch.block
        self.schedule = str(launch.source.kernel.scheduled.heuristic)

    def __repr__(self) -> str:
        return f"<kernel {self.name} grid={self.grid} block={self.block}>"

    def __str__(self) -> str:
        return self.source
