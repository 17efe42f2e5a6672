# SPDX-License-Identifier: Apache-2.0
"""What an element is: its kind, width, NumPy type, storage and compute type."""

from __future__ import annotations

from enum import Enum
from functools import cache

import ml_dtypes
import numpy as np

from nfuser.errors import DTypeError


class DType(Enum):
    """An element type; the value is the name printed for it."""

    BOOL = "bool"
    I8 = "i8"
    I16 = "i16"
    I32 = "i32"
    I64 = "i64"
    U8 = "u8"
    U16 = "u16"
    U32 = "u32"
    U64 = "u64"
    F16 = "f16"
    BF16 = "bf16"
    F32 = "f32"
    F64 = "f64"
    C64 = "c64"
    C128 = "c128"

    def __init__(self, name: str) -> None:
        self.kind = "b" if name in ("bool", "bf16") else name[0]
        self.kind = "f" if name == "bf16" else self.kind
        self.bits = 8 if name == "bool" else int(name.lstrip("biufc"))
        self.is_float = self.kind == "f"
        self.is_complex = self.kind == "c"
        self.is_integer = self.kind in "iu"
        self.is_signed = self.kind in "ifc"
        self.is_bool = self.kind == "b"
        self.is_half = name in ("f16", "bf16")
        self.itemsize = self.bits // 8

    __hash__ = object.__hash__  # Enum's own takes the name

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """The NumPy dtype (bfloat16 is ml_dtypes')."""
        return _NUMPY[self]

    @property
    def compute(self) -> DType:
        """The type a kernel computes in: f32 for 16-bit floats, else itself."""
        return DType.F32 if self.is_half else self

    @property
    def real(self) -> DType:
        """The type of the real part of a complex type; else itself."""
        return _REAL.get(self, self)

    @property
    def complex(self) -> DType:
        """The complex type with parts of this float type."""
        return DType.C128 if self.bits == 64 and not self.is_complex else DType.C64

    def __repr__(self) -> str:
        return self.value

    __str__ = __repr__


_REAL = {DType.C64: DType.F32, DType.C128: DType.F64}
_NUMPY_NAMES = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex"}
_NUMPY: dict[DType, np.dtype[np.generic]] = {
    dtype: np.dtype(
        ml_dtypes.bfloat16
        if dtype is DType.BF16
        else _NUMPY_NAMES[dtype.kind] + ("" if dtype.is_bool else str(dtype.bits))
    )
    for dtype in DType
}
_FROM_NUMPY = {numpy_dtype: dtype for dtype, numpy_dtype in _NUMPY.items()}


@cache
def as_dtype(spec: object) -> DType:
    """Return the DType that ``spec`` (a dtype of NumPy, a type, a name) stands for.

    >>> as_dtype(np.float32), as_dtype("bfloat16"), as_dtype(int)
    (f32, bf16, i64)
    """
    if isinstance(spec, DType):
        return spec
    name = (
        str(spec).removeprefix("torch.") if type(spec).__module__ == "torch" else spec
    )
    if name == "bfloat16":
        return DType.BF16
    try:
        numpy_dtype = np.dtype(name)  # pyright: ignore[reportArgumentType, reportCallIssue]
    except TypeError as error:
        message = f"{spec!r} is not a dtype"
        raise DTypeError(message) from error
    return _from_numpy(numpy_dtype, spec)


def _from_numpy(numpy_dtype: np.dtype[np.generic], spec: object) -> DType:
    found = _FROM_NUMPY.get(numpy_dtype)
    if found is None:
        message = (
            f"arrays of dtype {spec} are not supported; nfuser computes with bool, "
            "int8-64, uint8-64, float16, bfloat16, float32, float64, complex64 and "
            f"complex128; {_remedy(numpy_dtype, spec)}"
        )
        raise DTypeError(message)
    return found


def _remedy(numpy_dtype: np.dtype[np.generic], spec: object) -> str:
    if type(spec).__module__ == "torch":
        return "convert it with x.to(torch.float32)"
    if numpy_dtype.kind == "V" and numpy_dtype.names is None:
        return _CONVERT
    return _REMEDY.get(numpy_dtype.kind, _CONVERT)


_CONVERT = "convert it with x.astype(np.float32)"
_TEXT = "turn text into numbers before the call, with x.astype(np.float64) for digits"
_REMEDY = {
    "O": "if it holds numbers, pass x.astype(np.float64)",
    "U": _TEXT,
    "S": _TEXT,
    "T": _TEXT,
    "M": "pass x.view(np.int64), where NaT is the smallest integer",
    "m": "pass x.view(np.int64), where NaT is the smallest integer",
    "V": "pass the fields of records one by one, x['name'], and others converted",
    "f": "pass x.astype(np.float64)",
    "c": "pass x.astype(np.complex128)",
}
