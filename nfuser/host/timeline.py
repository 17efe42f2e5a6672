# SPDX-License-Identifier: Apache-2.0
"""When the statements of a run were issued, as a Chrome trace."""

from __future__ import annotations

import json
import os
from pathlib import Path
from threading import get_ident
from typing import Any


class Timeline:
    """Collects the events of one or more runs; ``chrome://tracing`` shows them."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.peak_bytes = 0

    def add(self, name: str, begin: int, end: int) -> None:
        """Add what ran from ``begin`` to ``end`` (nanoseconds) on this thread."""
        self.events.append(
            {
                "name": name,
                "ph": "X",
                "ts": begin / 1e3,
                "dur": (end - begin) / 1e3,
                "pid": os.getpid(),
                "tid": get_ident(),
            }
        )

    def save(self, path: str | Path) -> None:
        """Write the trace."""
        Path(path).write_text(json.dumps({"traceEvents": self.events}))
