# SPDX-License-Identifier: Apache-2.0
"""Promotion is NumPy's, with bfloat16 as one more float."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from nfuser.compiler.dtypes import DType, as_dtype, check_fits, float_of, promote
from nfuser.compiler.dtypes.promotion import safe_cast
from nfuser.errors import DTypeError, NfuserError, RangeError

PLAIN = [d for d in DType if d is not DType.BF16]
WEAK: list[Any] = [bool, int, float, complex]


@pytest.mark.parametrize(("a", "b"), [*itertools.product(PLAIN, PLAIN)], ids=str)
def test_two_dtypes_meet_where_numpys_do(a: DType, b: DType) -> None:
    assert promote(a, b).numpy == np.result_type(a.numpy, b.numpy)


@pytest.mark.parametrize(("a", "kind"), [*itertools.product(PLAIN, WEAK)])
def test_a_python_number_is_weak(a: DType, kind: Any) -> None:
    expected = (np.ones(1, a.numpy) + kind(1)).dtype
    assert promote(a, kind).numpy == expected
    assert promote(kind, a) is promote(a, kind)


BF16_MEETS = {
    DType.BOOL: DType.BF16,
    DType.I8: DType.BF16,
    DType.U8: DType.BF16,
    DType.I16: DType.F32,
    DType.U16: DType.F32,
    DType.I32: DType.F64,
    DType.U32: DType.F64,
    DType.I64: DType.F64,
    DType.U64: DType.F64,
    DType.F16: DType.F32,
    DType.BF16: DType.BF16,
    DType.F32: DType.F32,
    DType.F64: DType.F64,
    DType.C64: DType.C64,
    DType.C128: DType.C128,
}


@pytest.mark.parametrize("other", DType)
def test_bfloat16_meets_every_dtype(other: DType) -> None:
    assert promote(DType.BF16, other) is BF16_MEETS[other]
    assert promote(other, DType.BF16) is BF16_MEETS[other]


def test_bfloat16_keeps_python_numbers_weak() -> None:
    kinds = [promote(DType.BF16, kind) for kind in WEAK]
    assert kinds == [DType.BF16, DType.BF16, DType.BF16, DType.C64]


def test_python_numbers_alone_have_numpys_defaults() -> None:
    for kind in WEAK:
        assert promote(kind).numpy == np.asarray(kind(1)).dtype
    assert promote(int, float) is DType.F64


@pytest.mark.parametrize("dtype", PLAIN)
def test_float_functions_take_what_numpys_take(dtype: DType) -> None:
    with np.errstate(all="ignore"):
        assert float_of(dtype).numpy == np.exp(np.zeros(1, dtype.numpy)).dtype
    assert float_of(DType.BF16) is DType.BF16


@pytest.mark.parametrize("dtype", [d for d in DType if d.is_integer])
def test_an_integer_out_of_range_is_refused(dtype: DType) -> None:
    limits = np.iinfo(dtype.numpy.name)
    for number in (limits.min, limits.max):
        check_fits(int(number), dtype, "x")
    for number in (int(limits.min) - 1, int(limits.max) + 1):
        with pytest.raises(RangeError, match=f"integer {number} out of bounds for"):
            check_fits(number, dtype, "x")
        with pytest.raises(OverflowError):
            np.add(np.ones(1, dtype.numpy), number)


def test_a_float_takes_any_integer() -> None:
    check_fits(10**30, DType.F32, "x")


@pytest.mark.parametrize("casting", ["no", "equiv", "safe", "same_kind", "unsafe"])
def test_casting_rules_are_numpys(casting: Any) -> None:
    for a, b in itertools.product(PLAIN, PLAIN):
        if np.can_cast(a.numpy, b.numpy, casting):
            safe_cast(a, b, casting)
        else:
            with pytest.raises(DTypeError, match=f"cannot cast from {a} to {b}"):
                safe_cast(a, b, casting)


def test_bfloat16_is_cast_as_float16_is() -> None:
    safe_cast(DType.BF16, DType.F32, "safe")
    safe_cast(DType.F32, DType.BF16, "same_kind")
    with pytest.raises(DTypeError):
        safe_cast(DType.F32, DType.BF16, "safe")
    with pytest.raises(DTypeError):
        safe_cast(DType.BF16, DType.I32, "same_kind")


@pytest.mark.parametrize("dtype", DType)
def test_a_dtype_is_found_from_its_numpy_dtype(dtype: DType) -> None:
    assert as_dtype(dtype.numpy) is dtype
    assert as_dtype(dtype.numpy.type) is dtype
    assert as_dtype(dtype) is dtype
    assert dtype.itemsize == dtype.numpy.itemsize
    assert (dtype.kind == "f") == dtype.is_float
    assert np.dtype(dtype.compute.numpy).itemsize >= dtype.itemsize


@pytest.mark.parametrize(
    "spec", ["U5", object, ">f4", np.longdouble, "M8[s]", "no such", np.void]
)
def test_other_dtypes_are_refused_by_name(spec: Any) -> None:
    with pytest.raises(DTypeError) as caught:
        as_dtype(spec)
    assert isinstance(caught.value, NfuserError)
    assert isinstance(caught.value, TypeError)


def test_complex_dtypes_have_real_parts() -> None:
    assert [d.real for d in (DType.C64, DType.C128, DType.F32)] == [
        DType.F32,
        DType.F64,
        DType.F32,
    ]
    assert [d.complex for d in (DType.F32, DType.F64, DType.F16)] == [
        DType.C64,
        DType.C128,
        DType.C64,
    ]
    assert DType.C64.complex is DType.C64
