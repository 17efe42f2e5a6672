# SPDX-License-Identifier: Apache-2.0
"""What LLVM does for several threads at once, each with a context of its own.

llvmlite lets one thread at a time ask LLVM anything. LLVM itself asks for less: that no
two threads have the same context, target machine or builder of passes.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from llvmlite.binding import ffi


@cache
def without_lock(name: str) -> Any:
    """Return a function of llvmlite's library; the one with the lock if need be."""
    function = getattr(ffi.lib, f"LLVMPY_{name}")
    return getattr(function, "_cfn", function)


def emit_object(machine: Any, module: Any) -> bytes:
    """Return the object file that ``machine`` makes of a module."""
    ask = without_lock
    with ffi.OutputString() as error:
        buffer = ask("TargetMachineEmitToMemory")(machine, module, 1, error)
        if not buffer:
            raise RuntimeError(str(error))
    try:
        begin, size = ask("GetBufferStart")(buffer), ask("GetBufferSize")(buffer)
        return ctypes.string_at(begin, size)
    finally:
        ask("DisposeMemoryBuffer")(buffer)
