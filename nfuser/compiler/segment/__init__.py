# SPDX-License-Identifier: Apache-2.0
"""Cut a fusion into pieces that one kernel each can run."""

from __future__ import annotations

from nfuser.compiler.segment.segment import segment
from nfuser.compiler.segment.segmented import (
    FindScheduler,
    KnownScheduler,
    Rejection,
    Segment,
    Segmented,
    ShouldMerge,
)
from nfuser.compiler.segment.sharding import REPLICATED, Sharding, Shardings

__all__ = [
    "REPLICATED",
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
