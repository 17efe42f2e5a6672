# SPDX-License-Identifier: Apache-2.0
"""What each dtype computes in, how it rounds, and NumPy's promotion with bfloat16."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Type = np.dtype[Any]

F16, F32, F64 = (np.dtype(name) for name in ("float16", "float32", "float64"))
BF16: Type = np.dtype(ml_dtypes.bfloat16)
BOOL, I64 = np.dtype(bool), np.dtype(np.int64)
LONG = np.dtype(np.longdouble)
HALVES = (F16, BF16)


@dataclass(frozen=True)
class Precision:
    """The arithmetic that kernels do for a dtype, and the one of the reference.

    ``unit`` is half the distance of 1 to the next number, ``top`` the largest finite
    number, ``floor`` the smallest positive one.
    """

    compute: Type
    reference: Type
    unit: float
    top: float
    floor: float


_SINGLE = (2.0**-24, float(np.finfo(F32).max), 2.0**-149)
_DOUBLE = (2.0**-53, float(np.finfo(F64).max), 2.0**-1074)


@cache
def precision(dtype: Type) -> Precision:
    """Return how a float or complex ``dtype`` is computed and referred to."""
    if dtype == np.complex64:
        return Precision(dtype, np.dtype(np.complex128), *_SINGLE)
    if dtype == np.complex128:
        return Precision(dtype, np.dtype(np.clongdouble), *_DOUBLE)
    if dtype == F64:
        return Precision(dtype, LONG, *_DOUBLE)
    return Precision(F32, F64, *_SINGLE)


def is_float(dtype: Type) -> bool:
    """Tell whether ``dtype`` is a real float, bfloat16 among them."""
    return dtype.kind == "f" or dtype == BF16


def is_inexact(dtype: Type) -> bool:
    """Tell whether ``dtype`` rounds."""
    return is_float(dtype) or dtype.kind == "c"


def refuse_complex(dtype: Type, what: str) -> None:
    """Raise for what NumPy has for complex numbers, and fused functions do not."""
    if dtype.kind == "c":
        message = f"no {what} of complex numbers here"
        raise TypeError(message)


def round_to(dtype: Type, values: Array) -> Array:
    """Round reals to the nearest number of a float ``dtype``, once, ties to even.

    The result has the dtype of ``values``, or of the reference if that is wider.
    """
    with np.errstate(all="ignore"):
        if dtype in HALVES:
            # NumPy rounds doubles to float16 twice on some processors.
            rounded = _to_odd(values).astype(dtype).astype(F32)
        else:
            rounded = values.astype(dtype)
        return rounded.astype(np.promote_types(values.dtype, F64))


def _to_odd(values: Array) -> Array:
    """Round to float32 such that rounding again gives what rounding once would."""
    near = values.astype(F32)
    back = near.astype(values.dtype)
    beyond = (np.abs(back) > np.abs(values)) & np.isfinite(values)
    near = np.where(beyond, np.nextafter(near, np.float32(0)), near)
    inexact = near.astype(values.dtype) != values
    bits = near.view(np.uint32) | (inexact & np.isfinite(near)).astype(np.uint32)
    return bits.view(F32)


@cache
def loop(ufunc: np.ufunc, *operands: Any) -> tuple[Type, ...]:
    """Return the dtypes in which ``ufunc`` takes its operands, and of its results.

    An operand is a dtype or, for a weak scalar, its Python type. bfloat16 stands
    where float16 does; the two together are float32.
    """
    has = [half in operands for half in HALVES]
    if all(has):
        operands = tuple(F32 if x in HALVES else x for x in operands)
    stand_in = has[1] and not has[0]
    if stand_in:
        operands = tuple(F16 if x == BF16 else x for x in operands)
    found = ufunc.resolve_dtypes((*operands, *[None] * ufunc.nout))
    return tuple(BF16 if stand_in and x == F16 else x for x in found)


def common(*operands: Any) -> Type:
    """Return the dtype in which operands meet (as ``where`` and ``clip`` have them)."""
    meet = operands[0]
    for other in operands[1:]:
        meet = loop(np.add, meet, other)[0]
    if isinstance(meet, type):
        return np.dtype(meet)
    return meet
