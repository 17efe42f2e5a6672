# SPDX-License-Identifier: Apache-2.0
"""Conversions of float16 in integer arithmetic, for processors that have none.

There LLVM would call library functions that are not part of every process.
"""

from __future__ import annotations

from functools import cache

import nfuser.codegen.primitives.cpu.features as cpu_features
from nfuser.base.system import machine
from nfuser.codegen.primitives.cpu.math.value import (
    Value,
    absolute,
    bits,
    from_bits,
    select,
)


@cache
def converts_halves() -> bool:
    """Whether the processor that Numba compiles for converts float16 itself."""
    return machine() not in ("x86_64", "AMD64") or cpu_features.has("f16c")


def half_to_single(x: Value) -> Value:
    """Return the float32 of float16 bits, given in a 32-bit integer."""
    size = x & 0x7FFF
    # The float32 with these exponent bits is 2^-112 of the number, subnormal or not.
    number = bits(from_bits(size << 13) * _constant_single(x, 2.0**112))
    number = select(size >= 0x7C00, number | 0x7F800000, number)
    return from_bits(number | ((x & 0x8000) << 16))


def _constant_single(x: Value, number: float) -> Value:
    """Return a float32 constant, under the builder of an integer value."""
    return from_bits(x.constant(0)).constant(number)


def single_to_half(x: Value) -> Value:
    """Return the bits of the nearest float16, ties to even, in a 32-bit integer."""
    size = absolute(x)
    pattern = bits(size)
    # The last digit of 1/2 + size is that of a float16 subnormal.
    subnormal = bits(size + 0.5) - 0x3F000000
    odd = pattern.logical_right(13) & 1
    normal = (pattern + odd + (0xFFF - (112 << 23))) >> 13
    finite = select(size < 2.0**-14, subnormal, normal)
    result = select(size >= 65520.0, pattern.constant(0x7C00), finite)
    result = select(x.is_nan(), pattern.constant(0x7E00), result)
    return result | (bits(x).logical_right(16) & 0x8000)
