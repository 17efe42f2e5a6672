# SPDX-License-Identifier: Apache-2.0
"""What the processor has that Numba compiles for: this one, or the one it is told."""

# Numba and llvmlite carry few types.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from functools import cache

from llvmlite.binding import get_host_cpu_features
from numba.core import config


@cache
def has(feature: str) -> bool:
    """Tell whether it has ``feature``, by LLVM's name for it."""
    told: str | None = getattr(config, "CPU_FEATURES", None)
    if told is not None:
        return f"+{feature}" in told.split(",")
    return bool(get_host_cpu_features().get(feature, False))


def keeps_its_clock() -> bool:
    """Whether 512-bit vectors leave the clock as it is: since Ice Lake and Zen 4.

    LLVM takes halves of them on all processors of Intel's, for the sake of older ones.
    """
    return has("avx512vbmi2")


def vector_bits() -> int:
    """Return the bits of the vectors that LLVM fills; 0: leave it to LLVM."""
    if keeps_its_clock():
        return 512
    return 256 if has("avx2") else 0
