# SPDX-License-Identifier: Apache-2.0
"""Operations on integers: their bits, those of bool, and what divides them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import nfuser.compiler.ops.rules as rules

if TYPE_CHECKING:
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.builder import Builder, Operand
    from nfuser.compiler.ops.elementwise.of_rows import BinaryVerb


def _pair(name: str, primitive: str, *, boolean: bool) -> BinaryVerb:
    def verb(b: Builder, x: Operand, y: Operand) -> TensorView:
        dtype = rules.bits_type(b, name, x, y, boolean=boolean)
        return b.point(primitive, b.convert(x, dtype), b.convert(y, dtype))

    verb.__name__ = name
    verb.__doc__ = f"Return ``{name}`` of each pair of elements."
    return verb


bitwise_and = _pair("bitwise_and", "bit_and", boolean=True)
bitwise_or = _pair("bitwise_or", "bit_or", boolean=True)
bitwise_xor = _pair("bitwise_xor", "bit_xor", boolean=True)
left_shift = _pair("left_shift", "left_shift", boolean=False)
right_shift = _pair("right_shift", "right_shift", boolean=False)


def gcd(b: Builder, x: Operand, y: Operand) -> TensorView:
    """Return the greatest common divisor of each pair of integers."""
    dtype = rules.integer_type(b, "gcd", x, y)
    return b.point("gcd", b.convert(x, dtype), b.convert(y, dtype))


def lcm(b: Builder, x: Operand, y: Operand) -> TensorView:
    """Return the least common multiple of each pair of integers, wrapping."""
    dtype = rules.integer_type(b, "lcm", x, y)
    left, right = (b.point("absolute", b.convert(v, dtype)) for v in (x, y))
    divisor = b.point("gcd", left, right)
    # Over 0, of which both are then, a quotient is 0.
    return b.point("multiply", b.point("floor_divide", left, divisor), right)


def invert(b: Builder, x: Operand) -> TensorView:
    """Return each element with its bits turned over; for bool, not."""
    dtype = rules.bits_type(b, "invert", x, boolean=True)
    return b.point("invert", b.convert(x, dtype))
