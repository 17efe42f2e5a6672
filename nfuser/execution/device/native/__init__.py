# SPDX-License-Identifier: Apache-2.0
"""Native entries: a call of a known kind without a line of Python, by llvmlite alone.

``entry`` is the source, in a small part of Python that ``translate`` turns into LLVM's
language: integers of 64 bits, memory, ``if`` and ``while``. ``library`` compiles it
once a process. What a call needs is data: a ``record`` holds what must be alike for a
call to be served, and what is then to be done.
"""

from __future__ import annotations

from nfuser.base.sources import Sources

SOURCES = Sources(__path__)

COMPILED: list[str] = []
"""The names of what this process compiled, as it lay on no disk."""
