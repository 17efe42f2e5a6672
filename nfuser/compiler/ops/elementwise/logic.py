# SPDX-License-Identifier: Apache-2.0
"""Comparisons, predicates, logic and choice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import nfuser.compiler.ops.elementwise.complex.parts as parts
import nfuser.compiler.ops.python_integers as integers
import nfuser.compiler.ops.rules as rules
from nfuser.compiler.dtypes import DType, promote
from nfuser.compiler.ir.tensor import TensorView

if TYPE_CHECKING:
    from nfuser.compiler.ops.builder import Builder, Operand
    from nfuser.compiler.ops.elementwise.of_rows import BinaryVerb, Unary

_MIRRORED = {
    "equal": "equal",
    "not_equal": "not_equal",
    "less": "greater",
    "greater": "less",
    "less_equal": "greater_equal",
    "greater_equal": "less_equal",
}


def _comparison(name: str) -> BinaryVerb:
    def verb(b: Builder, x: Operand, y: Operand) -> TensorView:
        if not isinstance(x, TensorView) and isinstance(y, TensorView):
            return _compare(b, _MIRRORED[name], y, x)
        return _compare(b, name, x, y)

    verb.__name__ = name
    verb.__doc__ = f"Return bool: ``{name}`` of each pair of elements."
    return verb


def _compare(b: Builder, name: str, x: Operand, y: Operand) -> TensorView:
    dtype = b.promote(x, y)
    if dtype.is_complex and name not in ("equal", "not_equal"):
        is_array = any(isinstance(b.type_of(v), DType) for v in (x, y))
        if not (is_array and b.orders_complex):
            raise parts.refuse(f"comparison by {name}")
        return _compare_parts(b, name, b.convert(x, dtype), b.convert(y, dtype))
    if integers.is_integer_array(x, b) and integers.is_python_integer(y, b):
        return integers.compare(b, name, x, y)
    kinds = [b.type_of(v) for v in (x, y)]
    if dtype.is_integer:  # by value, also numbers of Python's that turns compute
        for k, v in enumerate((x, y)):
            kinds[k] = v.dtype if isinstance(v, TensorView) else kinds[k]
        dtype = promote(*kinds)
    if DType.U64 in kinds and any(
        isinstance(k, DType) and k.kind == "i" for k in kinds
    ):
        return _compare_mixed(b, name, b.tensor(x), b.tensor(y))
    return b.point(name, b.convert(x, dtype), b.convert(y, dtype))


def _compare_parts(b: Builder, name: str, x: TensorView, y: TensorView) -> TensorView:
    """Compare complex numbers as NumPy does: real parts first, then imaginary ones."""
    (xr, xi), (yr, yi) = ((parts.real(b, v), parts.imag(b, v)) for v in (x, y))
    apart = b.point(name.removesuffix("_equal"), xr, yr)
    for one in (xi, yi):
        is_number = b.point("invert", b.point("isnan", one))
        apart = b.point("bit_and", apart, is_number)
    beside = b.point("bit_and", b.point("equal", xr, yr), b.point(name, xi, yi))
    return b.point("bit_or", apart, beside)


def _compare_mixed(b: Builder, name: str, x: TensorView, y: TensorView) -> TensorView:
    """Compare a signed with a u64 number by value, as NumPy does."""
    if x.dtype is DType.U64:
        return _compare_mixed(b, _MIRRORED[name], y, x)
    signed = b.cast(x, DType.I64)
    below = b.point("less", signed, b.constant(0, DType.I64))
    compared = b.point(name, b.cast(signed, DType.U64), y)
    answer = b.constant(name in ("not_equal", "less", "less_equal"), DType.BOOL)
    return b.point("select", below, answer, compared)


equal, not_equal = _comparison("equal"), _comparison("not_equal")
less, less_equal = _comparison("less"), _comparison("less_equal")
greater, greater_equal = _comparison("greater"), _comparison("greater_equal")


def truth(b: Builder, x: Operand) -> TensorView:
    """Return whether each element is not zero."""
    return b.cast(b.tensor(x), DType.BOOL)


def _logical(name: str, bits: str) -> BinaryVerb:
    def verb(b: Builder, x: Operand, y: Operand) -> TensorView:
        return b.point(bits, truth(b, x), truth(b, y))

    verb.__name__ = name
    verb.__doc__ = f"Return bool: ``{name}`` of the truth of each pair."
    return verb


logical_and = _logical("logical_and", "bit_and")
logical_or = _logical("logical_or", "bit_or")
logical_xor = _logical("logical_xor", "bit_xor")


def logical_not(b: Builder, x: Operand) -> TensorView:
    """Return bool: whether each element is zero."""
    return b.point("invert", truth(b, x))


def _predicate(name: str, of_parts: str, of_integers: str) -> Unary:
    def verb(b: Builder, x: Operand) -> TensorView:
        operand = b.tensor(x)
        if operand.dtype.is_complex:
            re, im = parts.real(b, operand), parts.imag(b, operand)
            return b.point(of_parts, b.point(name, re), b.point(name, im))
        if operand.dtype.is_float:
            return b.point(name, operand)
        return b.point(of_integers, operand, operand)

    verb.__name__ = name
    verb.__doc__ = f"Return bool: ``{name}`` of each element."
    return verb


isnan = _predicate("isnan", "bit_or", "not_equal")
isinf = _predicate("isinf", "bit_or", "not_equal")
isfinite = _predicate("isfinite", "bit_and", "equal")


def signbit(b: Builder, x: Operand) -> TensorView:
    """Return bool: whether the sign is set, also that of -0.0 and NaN."""
    return b.point("signbit", b.convert(x, rules.float_type(b, "signbit", x)))


def _infinite(name: str, limit: float) -> Unary:
    def verb(b: Builder, x: Operand) -> TensorView:
        operand = b.tensor(x)
        if operand.dtype.is_complex:
            raise parts.refuse(name)
        if not operand.dtype.is_float:
            return b.point("not_equal", operand, operand)
        return b.point("equal", operand, b.constant(limit, operand.dtype))

    verb.__name__ = name
    verb.__doc__ = f"Return bool: whether each element is {limit:+}."
    return verb


isposinf, isneginf = _infinite("isposinf", np.inf), _infinite("isneginf", -np.inf)


def where(b: Builder, condition: Operand, x: Operand, y: Operand) -> TensorView:
    """Return ``x`` where ``condition`` holds, else ``y``."""
    dtype = b.promote(x, y)
    chosen = truth(b, condition)
    choices = (integers.wrapped(b, x, dtype), integers.wrapped(b, y, dtype))
    return b.point("select", chosen, *choices)


def isclose(
    b: Builder,
    x: Operand,
    y: Operand,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    *,
    equal_nan: bool = False,
) -> TensorView:
    """Return bool: whether each pair is within ``atol + rtol |y|``."""
    dtype = rules.float_type(b, "isclose", x, y)
    left, right = b.convert(x, dtype), b.convert(y, dtype)
    wide = DType.F64 if dtype is DType.F64 else DType.F32
    a, c = b.cast(left, wide), b.cast(right, wide)
    gap = b.point("absolute", b.point("subtract", a, c))
    relative = b.point("multiply", b.convert(rtol, wide), b.point("absolute", c))
    near = b.point("less_equal", gap, b.point("add", b.convert(atol, wide), relative))
    near = b.point("bit_and", near, b.point("isfinite", c))
    near = b.point("bit_or", near, b.point("equal", a, c))
    if equal_nan:
        both = b.point("bit_and", b.point("isnan", a), b.point("isnan", c))
        near = b.point("bit_or", near, both)
    return near


def nan_to_num(
    b: Builder,
    x: Operand,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
) -> TensorView:
    """Return ``x`` with NaN and infinities replaced."""
    operand = b.tensor(x)
    if operand.dtype.is_complex:
        raise parts.refuse("nan_to_num")
    if not operand.dtype.is_float:
        return b.point("copy", operand)
    largest = _largest(operand.dtype)
    fills = (
        (isnan(b, operand), nan),
        (isposinf(b, operand), largest if posinf is None else posinf),
        (isneginf(b, operand), -largest if neginf is None else neginf),
    )
    result = operand
    for condition, fill in fills:
        replacement = b.convert(fill, operand.dtype)
        result = b.point("select", condition, replacement, result)
    return result


def _largest(dtype: DType) -> float:
    if dtype is DType.BF16:
        return float.fromhex("0x1.fep127")
    return float(np.finfo(dtype.numpy.name).max)
