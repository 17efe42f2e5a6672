# SPDX-License-Identifier: Apache-2.0
"""Sizes and integer arguments: integers that stay open until Python asks."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import math
import sys
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ops as ops
import nfuser.compiler.trace.numpy.names.refusals as refusals
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.functions import equal, less, product
from nfuser.compiler.ir.scalars.scalar import Const, Scalar
from nfuser.compiler.trace.numpy.dispatch.protocols import NumpyProtocols
from nfuser.compiler.trace.standins.asked import ask_of_range, ask_to_convert
from nfuser.compiler.trace.standins.standin import Standin

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.trace.tracer import Tracer


def _of_today(name: str) -> Callable[..., Any]:
    """Return the method of ``int``, which takes the value of today."""

    def method(self: Any, *args: Any, **options: Any) -> Any:
        return getattr(int(self), name)(*args, **options)

    method.__name__ = name
    method.__doc__ = f"Return ``int.{name}`` of today's value, which is guarded."
    return method


_LOG_MAX = math.log(sys.float_info.max)


class SymbolicInt(NumpyProtocols, Standin):
    """Stands for a Python integer that may differ from call to call.

    Arithmetic keeps it open. A comparison, ``hash``, ``int`` or ``range`` takes the
    answer of today and leaves a guard.
    """

    __slots__ = ("_scalar",)

    def __init__(self, tracer: Tracer, scalar: Scalar) -> None:
        self._kind = int
        self._tracer = tracer
        self._scalar = scalar

    def _operand(self) -> Scalar:
        return self._scalar

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Refuse ``x.shape[0](0)``."""
        raise refusals.called()

    def _combine(self, other: Any, fold: Callable[..., Scalar], verb: Any) -> Any:
        if isinstance(other, SymbolicInt):
            return integer(self._tracer, fold(self._scalar, other._scalar))
        if isinstance(other, int) and not isinstance(other, Standin):
            return integer(self._tracer, fold(self._scalar, int(other)))
        if isinstance(other, (int, float, complex)):
            return self._tracer.operate(verb, self, other)
        return NotImplemented

    def __add__(self, other: Any) -> Any:
        return self._combine(other, sc.add, ops.add)

    __radd__ = __add__

    def __mul__(self, other: Any) -> Any:
        return self._combine(other, sc.multiply, ops.multiply)

    __rmul__ = __mul__

    def __sub__(self, other: Any) -> Any:
        return self._combine(other, lambda a, c: a - c, ops.subtract)

    def __rsub__(self, other: Any) -> Any:
        return self._combine(
            other, lambda a, c: c - a, lambda b, x, y: ops.subtract(b, y, x)
        )

    def __floordiv__(self, other: Any) -> Any:
        return self._combine(other, self._divided(sc.floor_divide), ops.floor_divide)

    def __mod__(self, other: Any) -> Any:
        return self._combine(other, self._divided(sc.modulo), ops.remainder)

    def _divided(self, fold: Callable[[Any, Any], Scalar]) -> Callable[..., Scalar]:
        def apply(x: Any, y: Any) -> Scalar:
            dividend, divisor = sc.as_scalar(x), sc.as_scalar(y)
            if not self._tracer.ask(less(0, divisor), usual=1):
                # Scalars divide by positive numbers: the rest is for Python.
                a, c = (self._tracer.consume_scalar(s) for s in (dividend, divisor))
                return sc.const(a // c if fold is sc.floor_divide else a % c)
            if self._is_natural(dividend):
                return fold(dividend, divisor)
            # Scalars divide natural numbers: as ceil(n / d) is written in integers.
            below = -sc.floor_divide(divisor - 1 - dividend, divisor)
            return below if fold is sc.floor_divide else dividend - below * divisor

        return apply

    def _is_natural(self, x: Scalar) -> bool:
        if sc.is_natural(x) or sc.is_natural(-x):
            return sc.is_natural(x)
        return not self._tracer.ask(less(x, 0))

    def __rfloordiv__(self, other: Any) -> Any:
        if isinstance(other, int) and not isinstance(other, Standin):
            divide = self._divided(sc.floor_divide)
            return integer(self._tracer, divide(sc.const(int(other)), self._scalar))
        return self._tracer.operate(ops.floor_divide, other, self)

    def __rmod__(self, other: Any) -> Any:
        if isinstance(other, int) and not isinstance(other, Standin):
            divide = self._divided(sc.modulo)
            return integer(self._tracer, divide(sc.const(int(other)), self._scalar))
        return self._tracer.operate(ops.remainder, other, self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __truediv__(self, other: Any) -> Any:
        if not isinstance(other, (SymbolicInt, int, float, complex)):
            return NotImplemented
        return self._tracer.operate(ops.divide, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._tracer.operate(ops.divide, other, self)

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        if modulus is not None:
            return pow(int(self), _plain(other), _plain(modulus))
        if isinstance(other, SymbolicInt):
            other = int(other)
        if isinstance(other, int) and 0 <= other <= 8:
            return integer(self._tracer, product([self._scalar] * other))
        if isinstance(other, int) and other > 0:
            return int(self) ** other
        if isinstance(other, (int, float)) and not isinstance(other, Standin):
            return self._tracer.operate(ops.power, self, float(other))
        return NotImplemented

    def __rpow__(self, other: Any) -> Any:
        if type(other) is not float:
            return other ** int(self)
        size = abs(other)
        if not 0 < size < math.inf:
            return self._tracer.operate(ops.power, other, self)
        if size != 1:
            # Python raises where a float overflows; a bound is a cheap guard.
            most = math.floor(_LOG_MAX / abs(math.log(size))) - 1
            growing = self._scalar if size > 1 else -self._scalar
            if self._tracer.ask(less(most, growing)):
                return other ** int(self)
        b = self._tracer.builder
        found = ops.power(b, other, self._scalar)
        b.weak[found] = float
        return self._tracer.wrap(found)

    def __neg__(self) -> Any:
        return integer(self._tracer, -self._scalar)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __and__(self, other: Any) -> Any:
        if not isinstance(other, (SymbolicInt, int)):
            return NotImplemented
        return int(self) & _plain(other)

    def __or__(self, other: Any) -> Any:
        if not isinstance(other, (SymbolicInt, int)):
            return NotImplemented
        return int(self) | _plain(other)

    def __xor__(self, other: Any) -> Any:
        if not isinstance(other, (SymbolicInt, int)):
            return NotImplemented
        return int(self) ^ _plain(other)

    def __lshift__(self, other: Any) -> Any:
        if not isinstance(other, (SymbolicInt, int)):
            return NotImplemented
        return self * (1 << int(other))

    def __rshift__(self, other: Any) -> Any:
        if not isinstance(other, (SymbolicInt, int)):
            return NotImplemented
        return self // (1 << int(other))

    def __rlshift__(self, other: Any) -> Any:
        return other << int(self) if isinstance(other, int) else NotImplemented

    def __rrshift__(self, other: Any) -> Any:
        return other >> int(self) if isinstance(other, int) else NotImplemented

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> Any:
        return -self - 1

    def _ask(self, other: Any, compare: Callable[[Any, Any], Scalar]) -> Any:
        if isinstance(other, SymbolicInt):
            other = other._scalar
        elif not isinstance(other, int) or isinstance(other, Standin):
            return None
        return bool(self._tracer.ask(compare(self._scalar, other)))

    def __eq__(self, other: object) -> Any:
        answer = self._ask(other, equal)
        return answer if answer is not None else self._by_value("__eq__", other)

    def __ne__(self, other: object) -> Any:
        answer = self._ask(other, equal)
        return not answer if answer is not None else self._by_value("__ne__", other)

    def __lt__(self, other: Any) -> Any:
        answer = self._ask(other, less)
        return answer if answer is not None else self._by_value("__lt__", other)

    def __ge__(self, other: Any) -> Any:
        answer = self._ask(other, less)
        return not answer if answer is not None else self._by_value("__ge__", other)

    def __gt__(self, other: Any) -> Any:
        answer = self._ask(other, lambda a, c: less(c, a))
        return answer if answer is not None else self._by_value("__gt__", other)

    def __le__(self, other: Any) -> Any:
        answer = self._ask(other, lambda a, c: less(c, a))
        return not answer if answer is not None else self._by_value("__le__", other)

    def _by_value(self, method: str, other: Any) -> Any:
        if not isinstance(other, float) or isinstance(other, Standin):
            return NotImplemented
        return getattr(float(int(self)), method)(other)

    def __hash__(self) -> int:
        return hash(int(self))

    def __int__(self) -> int:
        return self._tracer.consume_scalar(self._scalar)

    def __index__(self) -> int:
        if self._tracer.plain is None:
            ask_of_range(sys._getframe(1))  # pyright: ignore[reportPrivateUsage]
        return int(self)

    __trunc__ = __int__
    __floor__ = __int__
    __ceil__ = __int__

    def __float__(self) -> float:
        return float(int(self))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        """Return today's value: plain NumPy asks for it, as ``np.arange(n)`` does."""
        del copy
        if not self._tracer.converts:
            ask_to_convert()
        return np.asarray(int(self), dtype)

    def __round__(self, digits: int | None = None) -> Any:
        return self if digits is None or digits >= 0 else round(int(self), digits)

    def __bool__(self) -> bool:
        return not self._tracer.ask(equal(self._scalar, 0))

    def __repr__(self) -> str:
        return repr(int(self))

    def __format__(self, spec: str) -> str:
        return format(int(self), spec)

    def is_integer(self) -> bool:
        """Return True, as ``int.is_integer`` does."""
        return True

    def as_integer_ratio(self) -> tuple[SymbolicInt, int]:
        """Return the integer itself, and 1."""
        return self, 1

    def conjugate(self) -> SymbolicInt:
        """Return the integer itself."""
        return self

    bit_length, bit_count = _of_today("bit_length"), _of_today("bit_count")
    to_bytes = _of_today("to_bytes")

    @property
    def real(self) -> SymbolicInt:
        """The integer itself."""
        return self

    numerator = real

    @property
    def imag(self) -> int:
        """The number 0."""
        return 0

    @property
    def denominator(self) -> int:
        """The number 1."""
        return 1


Integral.register(SymbolicInt)


def _plain(x: Any) -> Any:
    return int(x) if isinstance(x, SymbolicInt) else x


class SymbolicCount(SymbolicInt):
    """The number of elements of a tensor, whose ``x.size(dim)`` is an extent of it."""

    __slots__ = ("_shape",)

    def __init__(self, tracer: Tracer, scalar: Scalar, shape: tuple[Any, ...]) -> None:
        super().__init__(tracer, scalar)
        self._shape = shape

    def __call__(self, dim: Any = None) -> Any:
        """Return the extent of an axis, or all."""
        return self._shape if dim is None else self._shape[dim]


def integer(tracer: Tracer, x: Scalar) -> Any:
    """Return ``x`` as a Python integer: one that stays open unless it is constant."""
    return x.value if isinstance(x, Const) else SymbolicInt(tracer, x)
