# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: A001 (a verb has the name that NumPy gives it)
"""Arithmetic on numbers of any kind."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

import nfuser.compiler.ops.elementwise.complex.parts as parts
import nfuser.compiler.ops.elementwise.complex.powers as powers
import nfuser.compiler.ops.python_integers as integers
import nfuser.compiler.ops.rules as rules
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import Pointwise
from nfuser.compiler.ir.point_op import POINT_OPS, PointOp, copy_in
from nfuser.compiler.ir.scalars.functions import less
from nfuser.compiler.ir.tensor import TensorView
from nfuser.errors import DTypeError, ShapeError, UnsupportedError

if TYPE_CHECKING:
    from nfuser.compiler.ir.point_op import NamedOrder
    from nfuser.compiler.ops.builder import Builder, Operand
    from nfuser.compiler.ops.elementwise.of_rows import BinaryVerb


def add(b: Builder, x: Operand, y: Operand) -> TensorView:
    """Return ``x + y``; for bool, or."""
    dtype = b.promote(x, y)
    name = "bit_or" if dtype.is_bool else "add"
    return b.point(name, b.convert(x, dtype), b.convert(y, dtype))


def subtract(b: Builder, x: Operand, y: Operand) -> TensorView:
    """Return ``x - y``; NumPy has none for bool."""
    dtype = b.promote(x, y)
    if dtype.is_bool:
        message = (
            "numpy boolean subtract, the `-` operator, is not supported, "
            "use the bitwise_xor, the `^` operator, or logical_xor instead."
        )
        raise DTypeError(message)
    return b.point("subtract", b.convert(x, dtype), b.convert(y, dtype))


def multiply(b: Builder, x: Operand, y: Operand) -> TensorView:
    """Return ``x * y``; for bool, and."""
    dtype = b.promote(x, y)
    name = "bit_and" if dtype.is_bool else "multiply"
    return b.point(name, b.convert(x, dtype), b.convert(y, dtype))


def divide(b: Builder, x: Operand, y: Operand) -> TensorView:
    """Return ``x / y``; integers divide in f64."""
    dtype = b.promote(x, y)
    if dtype.is_integer or dtype.is_bool:
        dtype = DType.F64
    left, right = b.convert(x, dtype), b.convert(y, dtype)
    if dtype.is_complex:
        return parts.divide(b, left, right)
    return b.point("divide", left, right)


def _real_pair(name: str, says: str) -> BinaryVerb:
    def verb(b: Builder, x: Operand, y: Operand) -> TensorView:
        dtype = rules.real_type(b, name, x, y)
        return b.point(name, b.convert(x, dtype), b.convert(y, dtype))

    verb.__name__ = name
    verb.__doc__ = f"Return {says}."
    return verb


floor_divide = _real_pair("floor_divide", "``x // y``")
remainder = _real_pair("remainder", "``x % y``, with the sign of ``y``")
fmod = _real_pair("fmod", "the remainder with the sign of ``x``")


def divmod(b: Builder, x: Operand, y: Operand) -> tuple[TensorView, TensorView]:
    """Return ``(x // y, x % y)``."""
    return floor_divide(b, x, y), remainder(b, x, y)


def power(b: Builder, x: Operand, y: Operand) -> TensorView:
    """Return ``x ** y``; integers take non-negative exponents only, as NumPy's."""
    dtype = rules.number_type(b, "power", x, y)
    if dtype.is_integer and dtype.is_signed:
        _check_exponent(b, y)
    if not isinstance(y, TensorView) and (special := _fixed_power(b, x, y, dtype)):
        return special
    left, right = b.convert(x, dtype), b.convert(y, dtype)
    if dtype.is_complex:
        return powers.power(b, left, right, is_int=_is_int(b, y))
    found = b.point("power", left, right)
    if isinstance(y, TensorView) and left.ndim and not y.ndim and dtype.is_float:
        # NumPy's own short cut for a number: sqrt, and not pow, as in _fixed_power.
        is_half = b.point("equal", right, b.constant(0.5, dtype))
        found = b.point("select", is_half, b.point("sqrt", left), found)
    return found


def _is_int(b: Builder, y: Operand) -> bool:
    """Tell whether ``y`` is an integer of Python's."""
    if isinstance(y, TensorView):
        return b.weak.get(y) is int
    return not isinstance(y, (bool, float, complex, np.generic))


def _fixed_power(b: Builder, x: Operand, y: Operand, dtype: DType) -> TensorView | None:
    """Write small constant exponents as products."""
    if dtype.is_complex and isinstance(y, (int, float, complex)):
        return powers.fixed_power(
            b, b.convert(x, dtype), complex(y), is_int=_is_int(b, y)
        )
    if not isinstance(y, (int, float)):
        return None
    base = b.convert(x, dtype)
    if y == 1:
        return b.point("copy", base)
    if y in _PRODUCTS:
        return _product(b, base, int(y))
    if not dtype.is_float:
        return None
    if y == 0.5:
        # NumPy's own short cut: sqrt, and not pow, which differ at -0.0 and -inf.
        return b.point("sqrt", base)
    if y in _QUOTIENTS:
        return _quotient(b, base, int(-y))
    if y not in _HALVES:
        return None
    made = _half_power(b, base, y)
    exponent = b.constant(float(y), dtype)
    b.meant[made] = Pointwise(POINT_OPS["power"], (base, exponent), made)
    return made


_PRODUCTS = (2, 3, 4, 5)  # exponents whose products round three times at most
_QUOTIENTS = (-1, -2, -3)
_HALVES = (-2.5, -1.5, -0.5, 1.5, 2.5)


def _product(b: Builder, x: TensorView, count: int) -> TensorView:
    square = b.point("multiply", x, x)
    if count == 2:
        return square
    if count == 3:
        return b.point("multiply", square, x)
    fourth = b.point("multiply", square, square)
    return fourth if count == 4 else b.point("multiply", fourth, x)


def _quotient(b: Builder, x: TensorView, count: int) -> TensorView:
    """Return ``x ** -count``; a product below might be too large, or too small."""
    found = b.point("reciprocal", x)
    for _ in range(count - 1):
        found = b.point("divide", found, x)
    return found


def _half_power(b: Builder, x: TensorView, y: float) -> TensorView:
    """Return ``x ** y`` by way of the root, which rounds as often as a product.

    Of minus infinity a power is that of infinity, and of -0.0 that of 0.0.
    """
    below = b.point("equal", x, b.constant(-math.inf, x.dtype))
    sized = b.point("select", below, b.constant(math.inf, x.dtype), x)
    base = b.point("add", sized, b.constant(0.0, x.dtype))
    root = b.point("sqrt", base)
    if y > 0:
        above = base if y == 1.5 else b.point("multiply", base, base)
        return b.point("multiply", above, root)
    # Of a small base the product of both might be too small, or of a large one too
    # large, where the quotient is not.
    whole = int(-y)
    above = _quotient(b, base, whole) if whole else b.constant(1.0, x.dtype)
    return b.point("divide", above, root)


def _check_exponent(b: Builder, y: Operand) -> None:
    if isinstance(y, TensorView):
        if not y.dtype.is_signed or integers.is_never_negative(b, y):
            return
        if not y.ndim:
            message = (
                "an integer to the power of a NumPy integer: NumPy raises where that "
                "is negative, which a kernel cannot; write x ** int(n)"
            )
            raise UnsupportedError(message)
        message = (
            "an integer to an array of signed integer powers: NumPy raises where one "
            "is negative, which a kernel cannot; write x ** y.astype(np.uint32) where "
            "none is, or x ** y.astype(float)"
        )
        raise UnsupportedError(message)
    if isinstance(y, (int, float, complex, np.generic)):
        negative = y.real < 0
    else:
        from_sizes = b.today(y)
        negative = from_sizes is not None and from_sizes < 0
        b.ask(less(y, 0))
    if negative:
        message = "Integers to negative integer powers are not allowed."
        raise ShapeError(message)


def float_power(b: Builder, x: Operand, y: Operand) -> TensorView:
    """Return ``x ** y`` in f64."""
    dtype = DType.C128 if b.promote(x, y).is_complex else DType.F64
    left, right = b.convert(x, dtype), b.convert(y, dtype)
    if dtype.is_complex:
        return powers.power(b, left, right)
    return b.point("power", left, right)  # by no square root, as NumPy's


def square(b: Builder, x: Operand) -> TensorView:
    """Return ``x * x``."""
    operand = b.convert(x, rules.number_type(b, "square", x))
    return b.point("multiply", operand, operand)


def reciprocal(b: Builder, x: Operand) -> TensorView:
    """Return ``1 / x``; integers divide as integers."""
    operand = b.convert(x, rules.number_type(b, "reciprocal", x))
    one = b.constant(1, operand.dtype)
    if operand.dtype.is_complex:
        return parts.reciprocal(b, operand)
    if operand.dtype.is_float:
        return b.point("reciprocal", operand)
    return _integer_reciprocal(b, operand, one)


def _integer_reciprocal(b: Builder, x: TensorView, one: TensorView) -> TensorView:
    """Return NumPy's 1 / x: truncated; 1 / 0 is the least number, 0 for narrow ones."""
    zero = b.constant(0, x.dtype)
    unit = b.point("equal", x, one)
    quotient = b.point("select", unit, one, zero)
    if x.dtype.is_signed:
        minus = b.constant(-1, x.dtype)
        quotient = b.point("select", b.point("equal", x, minus), minus, quotient)
    with np.errstate(all="ignore"):
        by_zero = np.reciprocal(np.zeros(1, x.dtype.numpy))[0].item()
    fill = b.constant(by_zero, x.dtype)
    return b.point("select", b.point("equal", x, zero), fill, quotient)


def negative(b: Builder, x: Operand) -> TensorView:
    """Return ``-x``."""
    operand = b.tensor(x)
    if operand.dtype.is_bool:
        message = (
            "The numpy boolean negative, the `-` operator, is not supported, use the "
            "`~` operator or the logical_not function instead."
        )
        raise DTypeError(message)
    return b.point("negative", operand)


def positive(b: Builder, x: Operand) -> TensorView:
    """Return ``+x``."""
    operand = b.tensor(x)
    if operand.dtype.is_bool:
        message = "positive does not take bool; cast with astype"
        raise DTypeError(message)
    return b.point("copy", operand)


def absolute(b: Builder, x: Operand) -> TensorView:
    """Return ``|x|``; of a complex number, a real one."""
    operand = b.tensor(x)
    if operand.dtype.is_complex:
        return parts.absolute(b, operand)
    name = "copy" if operand.dtype.is_bool else "absolute"
    return b.point(name, operand)


def sign(b: Builder, x: Operand) -> TensorView:
    """Return -1, 0 or 1; of a complex number, ``x / |x|``."""
    operand = b.tensor(x)
    if operand.dtype.is_bool:
        message = "sign does not take bool; cast with astype"
        raise DTypeError(message)
    if operand.dtype.is_complex:
        return parts.sign(b, operand)
    return b.point("sign", operand)


def _extremum(name: str, of_bool: str, says: str) -> BinaryVerb:
    def verb(b: Builder, x: Operand, y: Operand) -> TensorView:
        dtype = rules.reals(b, name, x, y)
        primitive = of_bool if dtype.is_bool else name
        return b.point(primitive, b.convert(x, dtype), b.convert(y, dtype))

    verb.__name__ = name
    verb.__doc__ = f"Return the {says}."
    return verb


maximum = _extremum("maximum", "bit_or", "larger of the two; NaN where either is")
minimum = _extremum("minimum", "bit_and", "smaller of the two; NaN where either is")
fmax = _extremum("fmax", "bit_or", "larger of the two; the number where one is NaN")
fmin = _extremum("fmin", "bit_and", "smaller of the two; the number where one is NaN")


def clip(
    b: Builder, x: Operand, low: Operand | None = None, high: Operand | None = None
) -> TensorView:
    """Return ``x`` held between ``low`` and ``high``, where all three meet."""
    given = [bound for bound in (low, high) if bound is not None]
    dtype = rules.reals(b, "clip", x, *given)
    result = b.convert(x, dtype)
    if low is not None:
        low = integers.lower_bound(b, x, low, dtype)
        result = maximum(b, result, b.convert(low, dtype))
    if high is not None:
        high = integers.upper_bound(b, x, high, dtype)
        result = minimum(b, result, b.convert(high, dtype))
    return result if given else b.point("copy", result)


def clamp(
    b: Builder, x: Operand, low: Operand | None = None, high: Operand | None = None
) -> TensorView:
    """Return ``clip``, with slope 1 in ``x`` at its bounds, too, as torch has it."""
    result = x
    for bound, verb, name in ((low, "low", "at_least"), (high, "high", "at_most")):
        if bound is None:
            continue
        made = clip(b, result, **{verb: bound})
        dtype = made.dtype
        if dtype.is_float:
            operands = b.convert(result, dtype), b.convert(bound, dtype)
            b.meant[made] = Pointwise(PointOp(name, 2, "real"), operands, made)
        result = made
    return clip(b, result) if result is x else b.tensor(result)


def astype(
    b: Builder, x: TensorView, dtype: DType, order: str | None = "K"
) -> TensorView:
    """Return ``x`` with ``dtype``, as a new array in memory order ``order``."""
    made = b.cast(x, dtype)
    wanted = memory_order(order)
    return made if made is not x and wanted == "K" else copy(b, made, wanted)


def copy(b: Builder, x: Operand, order: str | None = "K") -> TensorView:
    """Return a new array with the same elements, in memory order ``order``."""
    operand = b.tensor(x)
    result = b.new(operand.shape, operand.dtype)
    wanted = memory_order(order)
    op = copy_in("like" if wanted == "K" else wanted)
    b.emit(Pointwise(op, (operand,), result))
    return result


def stride_order(b: Builder, x: TensorView, fastest: tuple[int, ...]) -> TensorView:
    """Return a new array with the same elements, whose axes are dense in this order."""
    result = b.new(x.shape, x.dtype)
    b.emit(Pointwise(copy_in(fastest), (x,), result))
    return result


def memory_order(order: str | None) -> NamedOrder:
    """Return ``order`` as NumPy reads it: K, A, C or F, in either case."""
    found = "K" if order is None else order.upper()
    if found not in ("K", "A", "C", "F"):
        message = f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})"
        raise ShapeError(message)
    return found
