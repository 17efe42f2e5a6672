# SPDX-License-Identifier: Apache-2.0
"""How much memory a process takes at most, as Linux counts it."""

from __future__ import annotations

import ctypes
import gc
from typing import TYPE_CHECKING

from nfuser.execution.device.reuse import POOL

if TYPE_CHECKING:
    from collections.abc import Callable


def idle() -> int:
    """Return what the process takes now; from here on the peak is counted anew."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return _status("VmRSS")


def peak() -> int:
    """Return the most that the process took since it was :func:`idle`."""
    return _status("VmHWM")


def peak_of(run: Callable[[], object]) -> int:
    """Return the bytes that a process takes for ``run``, beyond what it holds before.

    What was freed goes back to the system before: outputs that wait for the next ones,
    and what the allocator of C keeps. So a run has to pay for all that it writes.
    """
    gc.collect()
    POOL.clear()
    ctypes.CDLL(None).malloc_trim(0)
    before = idle()
    run()
    return peak() - before


def _status(name: str) -> int:
    with open("/proc/self/status") as file:
        row = next(row for row in file if row.startswith(name))
    return int(row.split()[1]) * 1024
