# SPDX-License-Identifier: Apache-2.0
"""Python's collector of cycles, which a compile makes work for and gives nothing to."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator


@contextmanager
def no_collection() -> Generator[None]:
    """Hold the cycle collector off: a full pass takes longer than a kernel."""
    was_enabled = gc.isenabled()
    try:
        gc.disable()
        yield
    finally:
        if was_enabled:
            gc.enable()
