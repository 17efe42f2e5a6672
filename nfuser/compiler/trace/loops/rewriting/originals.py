# SPDX-License-Identifier: Apache-2.0
"""Which code runs in place of which: functions that were written anew for a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import CodeType

# The user's code by what came of rewriting it; None for functions inside of that.
originals: dict[CodeType, CodeType | None] = {}
