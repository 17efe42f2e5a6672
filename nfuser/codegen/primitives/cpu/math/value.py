# SPDX-License-Identifier: Apache-2.0
"""Expressions over one LLVM value, written with Python operators.

Everything here emits straight-line IR: no branches and no calls but LLVM intrinsics
that have vector forms, so that a loop around an expression stays vectorisable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir

if TYPE_CHECKING:
    from collections.abc import Sequence

FLOAT: Any = ir.FloatType()
DOUBLE: Any = ir.DoubleType()
HALF: Any = ir.HalfType()
BOOL: Any = ir.IntType(1)
I16: Any = ir.IntType(16)
I32: Any = ir.IntType(32)
I64: Any = ir.IntType(64)


class Value:
    """A scalar LLVM value and the builder that extends its expression.

    Operators take another `Value` of the same type or a Python number. Integer `>>`
    keeps the sign and `<`, `>` compare integers as signed.
    """

    __slots__ = ("builder", "ir")

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder = builder
        self.ir = value

    @property
    def type(self) -> Any:
        """The LLVM type."""
        return self.ir.type

    @property
    def is_float(self) -> bool:
        """Whether this is a float rather than an integer."""
        return isinstance(self.ir.type, ir.FloatType | ir.DoubleType)

    def constant(self, number: float) -> Value:
        """Return `number` in this value's type."""
        return Value(self.builder, ir.Constant(self.type, number))

    def make(self, value: Any) -> Value:
        """Wrap an LLVM value under the same builder."""
        return Value(self.builder, value)

    def _binary(self, floating: str, integer: str, other: Value | float) -> Value:
        method = getattr(self.builder, floating if self.is_float else integer)
        return self.make(method(self.ir, self._operand(other)))

    def _reversed(self, floating: str, integer: str, other: float) -> Value:
        method = getattr(self.builder, floating if self.is_float else integer)
        return self.make(method(self._operand(other), self.ir))

    def _operand(self, other: Value | float) -> Any:
        return other.ir if isinstance(other, Value) else self.constant(other).ir

    def _compare(self, operator: str, other: Value | float) -> Value:
        if self.is_float:
            return self.make(
                self.builder.fcmp_ordered(operator, self.ir, self._operand(other))
            )
        return self.make(
            self.builder.icmp_signed(operator, self.ir, self._operand(other))
        )

    def __add__(self, other: Value | float) -> Value:
        return self._binary("fadd", "add", other)

    def __sub__(self, other: Value | float) -> Value:
        return self._binary("fsub", "sub", other)

    def __mul__(self, other: Value | float) -> Value:
        return self._binary("fmul", "mul", other)

    def __truediv__(self, other: Value | float) -> Value:
        return self._binary("fdiv", "sdiv", other)

    def __radd__(self, other: float) -> Value:
        return self._reversed("fadd", "add", other)

    def __rsub__(self, other: float) -> Value:
        return self._reversed("fsub", "sub", other)

    def __rmul__(self, other: float) -> Value:
        return self._reversed("fmul", "mul", other)

    def __rtruediv__(self, other: float) -> Value:
        return self._reversed("fdiv", "sdiv", other)

    def __neg__(self) -> Value:
        return self.make(
            self.builder.fneg(self.ir) if self.is_float else self.builder.neg(self.ir)
        )

    def __and__(self, other: Value | int) -> Value:
        return self.make(self.builder.and_(self.ir, self._operand(other)))

    def __or__(self, other: Value | int) -> Value:
        return self.make(self.builder.or_(self.ir, self._operand(other)))

    def __xor__(self, other: Value | int) -> Value:
        return self.make(self.builder.xor(self.ir, self._operand(other)))

    def __invert__(self) -> Value:
        return self.make(self.builder.not_(self.ir))

    def __lshift__(self, other: Value | int) -> Value:
        return self.make(self.builder.shl(self.ir, self._operand(other)))

    def __rshift__(self, other: Value | int) -> Value:
        return self.make(self.builder.ashr(self.ir, self._operand(other)))

    def logical_right(self, other: Value | int) -> Value:
        """Shift right, filling with zeros."""
        return self.make(self.builder.lshr(self.ir, self._operand(other)))

    def __lt__(self, other: Value | float) -> Value:
        return self._compare("<", other)

    def __le__(self, other: Value | float) -> Value:
        return self._compare("<=", other)

    def __gt__(self, other: Value | float) -> Value:
        return self._compare(">", other)

    def __ge__(self, other: Value | float) -> Value:
        return self._compare(">=", other)

    def equals(self, other: Value | float) -> Value:
        """Compare for equality; false if either is NaN."""
        return self._compare("==", other)

    def differs(self, other: Value | float) -> Value:
        """Compare for inequality; true if either is NaN."""
        return ~self.equals(other)

    def is_nan(self) -> Value:
        """Whether the float is NaN."""
        return self.make(self.builder.fcmp_unordered("uno", self.ir, self.ir))


def call(name: str, first: Value, *rest: Value, flags: Sequence[str] = ()) -> Value:
    """Call the LLVM intrinsic `name`, overloaded on the operands' one type."""
    operands = (first, *rest)
    function_type = ir.FunctionType(first.type, [first.type] * len(operands))
    function: Any = first.builder.module.declare_intrinsic(
        name, [first.type], function_type
    )
    return first.make(
        first.builder.call(function, [v.ir for v in operands], fastmath=flags)
    )


def fma(a: Value, b: Value | float, c: Value | float) -> Value:
    """Return ``a * b + c`` rounded once."""
    b = b if isinstance(b, Value) else a.constant(b)
    c = c if isinstance(c, Value) else a.constant(c)
    return call("llvm.fma", a, b, c)


def ldexp(x: Value, n: Value) -> Value:
    """Return ``x * 2**n`` rounded once; ``n`` has the width of ``x``."""
    builder: Any = x.builder
    power = n.ir if n.type == I32 else builder.trunc(n.ir, I32)
    function_type = ir.FunctionType(x.type, [x.type, I32])
    function: Any = builder.module.declare_intrinsic(
        "llvm.ldexp", [x.type, I32], function_type
    )
    return x.make(builder.call(function, [x.ir, power]))


def absolute(x: Value) -> Value:
    """Clear the sign of a float."""
    return call("llvm.fabs", x)


def rint(x: Value) -> Value:
    """Round a float to the nearest integer, ties to even."""
    return call("llvm.rint", x)


def sqrt(x: Value) -> Value:
    """Return the correctly rounded square root."""
    return call("llvm.sqrt", x)


def copysign(magnitude: Value, sign: Value) -> Value:
    """Return `magnitude` with the sign of `sign`."""
    return call("llvm.copysign", magnitude, sign)


def select(condition: Value, a: Value | float, b: Value | float) -> Value:
    """Return `a` where the condition holds, else `b`; one of them is a `Value`."""
    if not isinstance(a, Value):
        assert isinstance(b, Value)
        a = b.constant(a)
    if not isinstance(b, Value):
        b = a.constant(b)
    return a.make(a.builder.select(condition.ir, a.ir, b.ir))


def clamp(x: Value, low: float, high: float) -> Value:
    """Limit `x`, leaving NaN as it is."""
    x = select(x < low, low, x)
    return select(x > high, high, x)


def bits(x: Value) -> Value:
    """Return the bits of a float as an integer."""
    integer = I32 if isinstance(x.type, ir.FloatType) else I64
    return x.make(x.builder.bitcast(x.ir, integer))


def from_bits(x: Value) -> Value:
    """Return the float of these bits."""
    floating = FLOAT if x.type.width == 32 else DOUBLE
    return x.make(x.builder.bitcast(x.ir, floating))


def to_float(x: Value) -> Value:
    """Return a 32-bit integer as a float32."""
    return x.make(x.builder.sitofp(x.ir, FLOAT))


def to_double(x: Value) -> Value:
    """Widen a float32."""
    return x.make(x.builder.fpext(x.ir, DOUBLE))


def to_single(x: Value) -> Value:
    """Round a float64 to float32."""
    return x.make(x.builder.fptrunc(x.ir, FLOAT))


LONG_POLYNOMIAL = 8
"""Coefficients from which on two short chains of FMAs replace a long one."""


def polynomial(x: Value, coefficients: Sequence[Value | float]) -> Value:
    """Evaluate by Horner's rule; the constant coefficient comes first.

    Each step waits for the one before it. Of a long polynomial the even and the odd
    powers take turns: one product more, and half of the wait.
    """
    if len(coefficients) < LONG_POLYNOMIAL:
        return _horner(x, coefficients)
    square = x * x
    odd = _horner(square, coefficients[1::2])
    return fma(odd, x, _horner(square, coefficients[::2]))


def _horner(x: Value, coefficients: Sequence[Value | float]) -> Value:
    last = coefficients[-1]
    result = last if isinstance(last, Value) else x.constant(last)
    for coefficient in reversed(coefficients[:-1]):
        result = fma(result, x, coefficient)
    return result


def two_sum(a: Value, b: Value) -> tuple[Value, Value]:
    """Return the rounded sum and its exact error."""
    total = a + b
    shadow = total - a
    return total, (a - (total - shadow)) + (b - shadow)


def fast_two_sum(a: Value, b: Value) -> tuple[Value, Value]:
    """Return the rounded sum and its exact error, given ``|a| >= |b|`` or a zero."""
    total = a + b
    return total, b - (total - a)


def two_product(a: Value, b: Value | float) -> tuple[Value, Value]:
    """Return the rounded product and its exact error."""
    product = a * b
    return product, fma(a, b, -product)
