# SPDX-License-Identifier: Apache-2.0
"""Cut a fusion into pieces that one kernel each can run."""

from __future__ import annotations

from nfuser.segment.segment import segment
from nfuser.segment.segmented import (
    Cut,
    FindScheduler,
    KnownScheduler,
    Rejection,
    Segment,
    Segmented,
    ShouldMerge,
)
from nfuser.segment.sharding import REPLICATED, Sharding, Shardings

__all__ = [
    "REPLICATED",
    "Cut",
    "FindScheduler",
    "KnownScheduler",
    "Rejection",
    "Segment",
    "Segmented",
    "Sharding",
    "Shardings",
    "ShouldMerge",
    "segment",
]
