# SPDX-License-Identifier: Apache-2.0
"""What a user sees of one kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nfuser.codegen.printers.source import Source
    from nfuser.execution.host.call.program import LaunchKernel


class KernelView:
    """One kernel of a call: its source, and how it is launched.

    ``grid`` and ``block`` are None where no device is there to launch it.
    """

    def __init__(self, source: Source, launch: LaunchKernel | None = None) -> None:
        self.name = source.entry
        self.source = source.text
        self.signature = source.signature
        self.grid = None if launch is None else launch.grid
        self.block = None if launch is None else launch.block
        self.schedule = str(source.kernel.scheduled.heuristic)

    def __repr__(self) -> str:
        shape = "" if self.grid is None else f" grid={self.grid} block={self.block}"
        return f"<kernel {self.name}{shape}>"

    def __str__(self) -> str:
        return self.source
