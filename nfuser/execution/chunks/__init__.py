# SPDX-License-Identifier: Apache-2.0
"""Arrays in chunks: from a fusion and chunkings to stages, folds and exchanges."""

from __future__ import annotations

from typing import Literal, TypeAlias

Rechunk: TypeAlias = Literal["refuse", "warn"]
"""Whether chunks may become many times as large."""
