# SPDX-License-Identifier: Apache-2.0
"""Numba asks LLVM how many references it has pruned: kernels count none."""

# Numba and llvmlite carry few types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from contextlib import contextmanager
from threading import get_ident
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator


@contextmanager
def not_counted(managers: Any) -> Generator[None]:
    """Let a ``newpassmanagers`` of llvmlite's answer without LLVM.

    Who asks LLVM anything waits until it is done with the kernel before.
    """
    count, here = managers.dump_refprune_stats, get_ident()

    def stats(printout: bool = False) -> Any:
        is_ours = get_ident() == here
        return managers.PruneStats(0, 0, 0, 0) if is_ours else count(printout)

    managers.dump_refprune_stats = stats
    try:
        yield
    finally:
        managers.dump_refprune_stats = count
