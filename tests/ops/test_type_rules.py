# SPDX-License-Identifier: Apache-2.0
"""Each function gives the dtype that NumPy gives, for all dtypes and pairs."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from nfuser.compiler import ops
from nfuser.compiler.dtypes import DType, as_dtype
from nfuser.errors import NfuserError

DTYPES = [d for d in DType if d is not DType.BF16]
COMPLEX_UNARY = [
    "exp",
    "log",
    "sqrt",
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "log2",
    "log10",
    "asin",
    "acos",
    "atan",
    "asinh",
    "acosh",
    "atanh",
    "square",
    "reciprocal",
    "negative",
    "positive",
    "absolute",
    "sign",
    "conj",
    "isnan",
    "isinf",
    "isfinite",
    "logical_not",
]
UNARY = [
    *COMPLEX_UNARY,
    "exp2",
    "expm1",
    "log1p",
    "rint",
    "floor",
    "ceil",
    "trunc",
    "fabs",
    "deg2rad",
    "rad2deg",
    "cbrt",
    "invert",
    "signbit",
]
COMPLEX_BINARY = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "power",
    "float_power",
    "equal",
    "not_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
]
BINARY = [
    *COMPLEX_BINARY,
    "floor_divide",
    "remainder",
    "fmod",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "atan2",
    "hypot",
    "logaddexp",
    "logaddexp2",
    "copysign",
    "nextafter",
    "heaviside",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "gcd",
    "ldexp",
    "lcm",
    "left_shift",
    "right_shift",
]
NUMPY = {"atan2": "arctan2", "asin": "arcsin", "acos": "arccos", "atan": "arctan"}
NUMPY.update({"asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh"})
WEAK = {bool: True, int: 3, float: 2.5, complex: 1j}


def numpy_type(name: str, *kinds: Any) -> DType | None:
    ufunc = getattr(np, NUMPY.get(name, name))
    given = [k.numpy if isinstance(k, DType) else k for k in kinds]
    try:
        return as_dtype(ufunc.resolve_dtypes((*given, None))[-1])
    except TypeError:
        return None


def our_type(name: str, *kinds: Any) -> DType | None:
    b = ops.Builder()
    operands = [
        b.argument(slot, 1, k) if isinstance(k, DType) else WEAK[k]
        for slot, k in enumerate(kinds)
    ]
    try:
        return getattr(ops, name)(b, *operands).dtype
    except NfuserError:
        return None


def left_out(name: str, *kinds: Any) -> bool:
    """Whether nfuser refuses what NumPy computes, by decision."""
    offered = COMPLEX_UNARY if len(kinds) == 1 else COMPLEX_BINARY
    is_complex = any(k is complex or getattr(k, "is_complex", False) for k in kinds)
    if is_complex and name not in offered:
        return True
    # A signed array exponent of an integer: NumPy raises by value, kernels cannot.
    base, exponent = kinds[0], kinds[-1]
    return (
        name == "power"
        and isinstance(exponent, DType)
        and exponent.kind in "bi"
        and (base in (bool, int) or getattr(base, "kind", "") in tuple("biu"))
    )


@pytest.mark.parametrize("name", UNARY)
def test_a_function_of_one_operand_gives_numpys_dtype(name: str) -> None:
    for dtype in DTYPES:
        if not left_out(name, dtype):
            assert our_type(name, dtype) is numpy_type(name, dtype), dtype


@pytest.mark.parametrize("name", BINARY)
def test_a_function_of_two_operands_gives_numpys_dtype(name: str) -> None:
    for pair in itertools.product(DTYPES, DTYPES):
        if not left_out(name, *pair):
            assert our_type(name, *pair) is numpy_type(name, *pair), pair


@pytest.mark.parametrize("name", BINARY)
def test_a_python_number_takes_part_as_numpys_does(name: str) -> None:
    for dtype, weak in itertools.product(DTYPES, (int, float, complex)):
        for pair in ((dtype, weak), (weak, dtype)):
            if not left_out(name, *pair):
                assert our_type(name, *pair) is numpy_type(name, *pair), pair


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "max", "min", "std", "argmax"])
def test_a_reduction_gives_numpys_dtype(name: str) -> None:
    for dtype in DTYPES:
        if dtype.is_complex and name not in ("sum", "mean", "std"):
            continue
        b = ops.Builder()
        found = getattr(ops, name)(b, b.argument(0, 1, dtype), None).dtype
        expected = getattr(np, name)(np.ones(3, dtype.numpy)).dtype
        assert found is as_dtype(expected), dtype


@pytest.mark.parametrize("name", ["add", "divide", "maximum", "hypot", "less"])
def test_bfloat16_stands_where_float16_stands(name: str) -> None:
    for other in DTYPES:
        if other is DType.F16 or other.is_complex:
            continue
        found = our_type(name, DType.BF16, other)
        expected = our_type(name, DType.F16, other)
        assert found is (DType.BF16 if expected is DType.F16 else expected), other
    assert our_type("add", DType.BF16, DType.F16) is DType.F32
    assert our_type("exp", DType.BF16) is DType.BF16
    assert our_type("multiply", DType.BF16, float) is DType.BF16


def test_where_and_clip_promote_as_numpys_do() -> None:
    for one, other in itertools.product(DTYPES, DTYPES):
        b = ops.Builder()
        x, y = b.argument(0, 1, one), b.argument(1, 1, other)
        condition = b.argument(2, 1, DType.BOOL)
        expected = as_dtype(np.result_type(one.numpy, other.numpy))
        assert ops.where(b, condition, x, y).dtype is expected
