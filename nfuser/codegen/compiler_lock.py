# SPDX-License-Identifier: Apache-2.0
"""One compile at a time, and no fork in the middle of one.

Numba's compiler is not safe under threads. LLVM below it has locks of its own, which
nobody could release in a forked child: so a fork waits until a compile is done. So it
does for modules that are imported late: one half imported would stay so in the child.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

from nfuser.locks import waited_for

if TYPE_CHECKING:
    from collections.abc import Iterator

COMPILER = threading.RLock()
_NUMBA = ("numba.core.compiler_lock", "numba.cuda.core.compiler_lock")


def _locks() -> Iterator[Any]:
    """Give our lock, then those that a compile takes, of libraries that are loaded."""
    yield COMPILER
    for name in _NUMBA:
        if (module := sys.modules.get(name)) is not None:
            yield module.global_compiler_lock
    if (module := sys.modules.get("llvmlite.binding.ffi")) is not None:
        yield module.lib._lock


waited_for(_locks)
