# SPDX-License-Identifier: Apache-2.0
"""NEP 50 promotion, with bfloat16 as one more 16-bit float.

Python scalars are weak: they take part by kind, not by width. bfloat16 stands where
float16 stands in NumPy's table; the two together give float32.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from nfuser.compiler.dtypes.dtype import DType, as_dtype
from nfuser.errors import DTypeError, RangeError

if TYPE_CHECKING:
    from collections.abc import Iterable

Weak = type[bool] | type[int] | type[float] | type[complex]
_KINDS = {bool: 0, int: 1, float: 2, complex: 3}
_KIND_OF_DTYPE = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
_DEFAULT = {bool: DType.BOOL, int: DType.I64, float: DType.F64, complex: DType.C128}


@cache
def promote(*operands: DType | Weak) -> DType:
    """Return the dtype in which ``operands`` meet; a Python type is a weak scalar.

    >>> promote(DType.F32, float), promote(DType.U8, int), promote(DType.I32, float)
    (f32, u8, f64)
    >>> promote(DType.BF16, DType.F16), promote(DType.BF16, DType.I16)
    (f32, f32)
    >>> promote(DType.I16, DType.U16, DType.F32)
    f32
    """
    strong = [x for x in operands if isinstance(x, DType)]
    weak = [x for x in operands if not isinstance(x, DType)]
    if not strong:
        return _DEFAULT[max(weak, key=_KINDS.__getitem__)]
    meet = _joint(strong)
    for kind in weak:
        meet = _with_weak(meet, kind)
    return meet


def widest(kinds: Iterable[Weak]) -> Weak | None:
    """Return the one of Python's types that holds the numbers of all, if there is one.

    >>> widest([int, float, bool])
    <class 'float'>
    """
    return max(kinds, key=_KINDS.__getitem__, default=None)


def _joint(dtypes: list[DType]) -> DType:
    """Return where dtypes meet all at once, which is not where pairs of them meet.

    (int16, uint16, float32) meet in float32; the two integers alone in int32, which
    meets float32 in float64.
    """
    if DType.BF16 not in dtypes:
        return as_dtype(np.result_type(*(x.numpy for x in dtypes)))
    both = DType.F16 in dtypes
    half = DType.F32 if both else DType.F16
    found = _joint([half if x is DType.BF16 else x for x in dtypes])
    return DType.BF16 if found is DType.F16 else found


def _with_weak(dtype: DType, kind: Weak) -> DType:
    if _KINDS[kind] <= _KIND_OF_DTYPE[dtype.kind]:
        return dtype
    if kind is complex and dtype.is_float:
        return dtype.complex
    return _DEFAULT[kind]


def float_of(dtype: DType) -> DType:
    """Return the float type in which NumPy's float functions take ``dtype``.

    >>> float_of(DType.U8), float_of(DType.I16), float_of(DType.I32)
    (f16, f32, f64)
    >>> float_of(DType.BF16)
    bf16
    """
    if dtype.is_float or dtype.is_complex:
        return dtype
    widths = {8: DType.F16, 16: DType.F32}
    return widths.get(dtype.bits, DType.F64)


def check_fits(number: int, dtype: DType, what: str) -> None:
    """Refuse a Python integer that ``dtype`` cannot hold, as NEP 50 does."""
    if not holds(dtype, number):
        raise RangeError(out_of_bounds(number, dtype, what))


def holds(dtype: DType, number: int) -> bool:
    """Tell whether a Python integer fits; every one fits what is no integer.

    >>> holds(DType.U8, 255), holds(DType.U8, -1), holds(DType.F32, -1)
    (True, False, True)
    """
    if not dtype.is_integer:
        return True
    limits = np.iinfo(dtype.numpy.name)
    return int(limits.min) <= number <= int(limits.max)


def out_of_bounds(number: object, dtype: DType, what: str) -> str:
    """Return the message for a number that ``dtype`` cannot hold."""
    limits = np.iinfo(dtype.numpy.name)
    return (
        f"Python integer {number} out of bounds for {dtype.numpy.name} ({what}), which "
        f"holds {limits.min} to {limits.max}; use a number in that range, or a wider "
        "array, x.astype(np.int64)"
    )


def safe_cast(source: DType, target: DType, casting: str) -> None:
    """Refuse a cast that NumPy's ``casting`` rule does not admit."""
    if source is target or casting == "unsafe":
        return
    stand_in = {DType.BF16: DType.F16}
    a, b = (stand_in.get(d, d).numpy for d in (source, target))
    if not np.can_cast(a, b, casting):  # pyright: ignore[reportArgumentType]
        message = f"cannot cast from {source} to {target} with casting={casting!r}"
        raise DTypeError(message)
