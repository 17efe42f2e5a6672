# SPDX-License-Identifier: Apache-2.0
"""The interpreter of emitted CUDA source: what runs on the device is what is tested.

It executes the text itself, all threads of many blocks in lock step as NumPy vectors,
and reports what hardware would let pass: out-of-bounds access, reads of memory that
nothing wrote, races, misaligned packets, divergent barriers, overflowing indices.
"""

from __future__ import annotations

from nfuser.errors import InterpreterError
from nfuser.execution.interpret.buffer import PointerArgument, RunReport
from nfuser.execution.interpret.run import run

__all__ = ["InterpreterError", "PointerArgument", "RunReport", "run"]
