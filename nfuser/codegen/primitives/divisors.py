# SPDX-License-Identifier: Apache-2.0
"""Greatest common divisors, as LLVM IR for the CPU and for CUDA alike."""

from __future__ import annotations

from typing import Any

from llvmlite import ir


def greatest_common_divisor(builder: Any, a: Any, b: Any) -> Any:
    """Return the greatest common divisor of two unsigned integers, 0 of 0 and 0.

    Of two odd numbers the difference takes the larger one's place, less its factors
    of 2: no step divides, and each takes a bit of one of them at least.
    """
    kind = a.type
    zero = ir.Constant(kind, 0)
    is_zero = builder.icmp_unsigned("==", a, zero)
    first = builder.select(is_zero, b, a)
    rest = builder.select(is_zero, zero, b)
    twos = _twos(builder, builder.or_(a, b))
    first = builder.lshr(first, _twos(builder, first))
    start = builder.block
    loop = builder.append_basic_block("gcd")
    body = builder.append_basic_block("gcd_step")
    done = builder.append_basic_block("gcd_end")
    shift = _twos(builder, rest)
    builder.branch(loop)
    builder.position_at_end(loop)
    odd, left, factors = (builder.phi(kind) for _ in range(3))
    builder.cbranch(builder.icmp_unsigned("==", left, zero), done, body)
    builder.position_at_end(body)
    other = builder.lshr(left, factors)
    gap = builder.sub(odd, other)
    is_less = builder.icmp_unsigned("<", odd, other)
    lesser = builder.select(is_less, odd, other)
    distance = builder.select(is_less, builder.sub(other, odd), gap)
    # A number and its negative have as many: this need not wait for the distance.
    following = _twos(builder, gap)
    builder.branch(loop)
    for phi, before, after in (
        (odd, first, lesser),
        (left, rest, distance),
        (factors, shift, following),
    ):
        phi.add_incoming(before, start)
        phi.add_incoming(after, body)
    builder.position_at_end(done)
    return builder.shl(odd, twos)


def _twos(builder: Any, x: Any) -> Any:
    """Return how often 2 divides ``x``; 0 for 0, whose bits have no lowest one."""
    count = builder.cttz(x, ir.Constant(ir.IntType(1), 0))
    return builder.and_(count, ir.Constant(x.type, x.type.width - 1))
