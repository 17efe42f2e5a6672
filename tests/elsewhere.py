# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin that pretends another system and processor: ``-p tests.elsewhere``.

What only Linux on x86-64 has is gone before nfuser is imported: its own loader, native
calls and helper threads, what the processor is known to have, and those functions of
Python's library that macOS or Windows lacks. What is left is what runs there. Modules
of the library that take forks for granted here are imported before.
"""

from __future__ import annotations

import ctypes
import logging  # pyright: ignore[reportUnusedImport]  # noqa: F401
import os
import random  # pyright: ignore[reportUnusedImport]  # noqa: F401
import sys
from typing import Any

ABSENT = ("register_at_fork", "sched_getaffinity", "sysconf")

assert "nfuser" not in sys.modules, "start with -p tests.elsewhere"
os.environ["NFUSER_DISABLE"] = "native_calls,object_files"
os.environ["NUMBA_CPU_NAME"] = "generic"
for _name in ABSENT:
    delattr(os, _name)


class _Library(ctypes.CDLL):
    """The process itself is no library, as on Windows."""

    def __init__(self, name: str | None, *args: Any, **options: Any) -> None:
        if name is None:
            raise TypeError("expected the name of a library, not None")
        super().__init__(name, *args, **options)


ctypes.CDLL = _Library
