# SPDX-License-Identifier: Apache-2.0
"""The product of matrices in the BLAS that NumPy itself calls, as a C function."""

from __future__ import annotations

import ctypes
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from nfuser.dtypes import DType
from nfuser.ir.base import value

if TYPE_CHECKING:
    from collections.abc import Iterator

_LETTERS = {DType.F32: "s", DType.F64: "d"}


@value
class Gemm:
    """``cblas_?gemm``: where it lies, and the kinds of its parameters."""

    address: int
    kinds: tuple[str, ...]


@cache
def gemm(dtype: DType) -> Gemm | None:
    """Return the product of matrices of ``dtype``; None where NumPy names none."""
    if dtype not in _LETTERS:
        return None
    try:
        # What a library is linked to is looked through as well.
        numpy = ctypes.CDLL(import_module("numpy._core._multiarray_umath").__file__)
    except (ImportError, OSError):
        return None
    for name, size in _names(_LETTERS[dtype]):
        if hasattr(numpy, name):
            address = ctypes.cast(getattr(numpy, name), ctypes.c_void_p).value or 0
            return Gemm(address, _kinds(str(dtype), size))
    return None


def _names(letter: str) -> Iterator[tuple[str, str]]:
    """Yield under which names it goes, with the kind of its sizes: 64 bits first."""
    for prefix in ("scipy_", ""):
        yield f"{prefix}cblas_{letter}gemm64_", "i64"
        yield f"{prefix}cblas_{letter}gemm", "i32"


def _kinds(number: str, size: str) -> tuple[str, ...]:
    matrix = "pointer", size
    ways = ("i32",) * 3  # how the matrices are stored
    return (*ways, *(size,) * 3, number, *matrix, *matrix, number, *matrix)
