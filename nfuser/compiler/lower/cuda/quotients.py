# SPDX-License-Identifier: Apache-2.0
"""Division of a whole row, or column, by one number: its inverse once, then products.

A division that is IEEE's to the last bit takes a dozen instructions on a GPU, with a
branch that keeps those of several elements from overlapping.
"""

from __future__ import annotations

from math import inf

from nfuser.compiler.dtypes import DType
from nfuser.compiler.lower.kernel.kernel_ir import Call, Let, Number, Stmt, Value, Var

TINY = 2.0**-64  # below this a divisor is scaled


class Exact:
    """f32 quotients to the last bit, by way of f64.

    The quotient of two numbers of 24 bits lies at least 2**-49 of itself away from what
    is halfway between two others, or exactly there; that of two roundings in f64 lies
    within 2**-52 of it. Zeros, infinities and NaN come out as in a division; only a
    subnormal quotient that lies exactly halfway may be the other of its neighbours.
    """

    def inverse(
        self,
        divisor: Value,
        stmts: list[Stmt],
        least: float = -inf,
    ) -> tuple[Var, ...]:
        """Append what computes the inverse of ``divisor``."""
        inverse = Var(DType.F64)
        wide = Call("to_f64", (divisor,), DType.F64)
        quotient = Call("divide", (Number(1.0, DType.F64), wide), DType.F64)
        stmts.append(Let(inverse, quotient))
        return (inverse,)

    def product(self, x: Value, inverse: tuple[Value, ...]) -> Value:
        """Return ``x`` divided by what ``inverse`` is of."""
        wide = Call("to_f64", (x,), DType.F64)
        product = Call("multiply", (wide, *inverse), DType.F64)
        return Call("to_f32", (product,), DType.F32)


class Near:
    """Quotients within 3 ulp of f32, of what is rounded to 16 bits.

    The inverse of a tiny divisor would overflow: both operands are scaled then, unless
    the divisor is known to be at least ``least``.
    """

    def inverse(
        self, divisor: Value, stmts: list[Stmt], least: float = -inf
    ) -> tuple[Var, ...]:
        """Append what computes a scale, and the inverse of ``divisor`` times that."""
        dtype = DType.F32
        if least > TINY:
            whole = Var(dtype)
            stmts.append(Let(whole, Call("reciprocal_near", (divisor,), dtype)))
            return (whole,)
        scale, inverse = Var(dtype), Var(dtype)
        size = Call("absolute", (divisor,), dtype)
        is_tiny = Call("less", (size, Number(TINY, dtype)), DType.BOOL)
        chosen = (is_tiny, Number(1 / TINY, dtype), Number(1.0, dtype))
        scaled = Call("multiply", (divisor, scale), dtype)
        stmts += [
            Let(scale, Call("select", chosen, dtype)),
            Let(inverse, Call("reciprocal_near", (scaled,), dtype)),
        ]
        return scale, inverse

    def product(self, x: Value, inverse: tuple[Value, ...]) -> Value:
        """Return ``x`` divided by what ``inverse`` is of."""
        for factor in inverse:
            x = Call("multiply", (x, factor), DType.F32)
        return x


exact, near = Exact(), Near()
