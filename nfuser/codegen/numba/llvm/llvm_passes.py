# SPDX-License-Identifier: Apache-2.0
"""Run passes of LLVM, and give back what they took.

llvmlite (0.45 to 0.50 at least) frees no pass manager: what would is defined in a base
class behind one that does nothing. Each kernel would leave 80 kB and more behind.
"""

# llvmlite carries few types.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

from nfuser.codegen.numba.llvm.without_lock import without_lock


def run_passes(passes: Any, builder: Any, module: Any) -> None:
    """Run ``passes``, which serve once, on a module, and free them."""
    from llvmlite.binding.newpassmanagers import NewPassManager

    try:
        without_lock("RunNewModulePassManager")(passes, module, builder)
    finally:
        NewPassManager._dispose(passes)
        passes.detach()  # so nobody frees it again
