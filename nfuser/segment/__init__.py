# SPDX-License-Identifier: Apache-2.0
"""Cut a fusion into pieces that one kernel each can run."""

from __future__ import annotations

from nfuser.segment.segment import ShouldMerge, segment
from nfuser.segment.segmented import (
    Cut,
    FindScheduler,
    Rejection,
    Scheduler,
    Segment,
    Segmented,
)

__all__ = [
    "Cut",
    "FindScheduler",
    "Rejection",
    "Scheduler",
    "Segment",
    "Segmented",
    "ShouldMerge",
    "segment",
]
