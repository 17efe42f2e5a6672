# SPDX-License-Identifier: Apache-2.0
"""Products in the BLAS that NumPy itself calls, as C functions."""

from __future__ import annotations

import ctypes
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.base import value

if TYPE_CHECKING:
    from collections.abc import Iterator

_LETTERS = {DType.F32: "s", DType.F64: "d"}


@value
class BlasFunction:
    """Where a function of the BLAS lies, and the kinds of its parameters."""

    address: int
    kinds: tuple[str, ...]


@cache
def gemm(dtype: DType) -> BlasFunction | None:
    """Return the product of matrices of ``dtype``; None where NumPy names none."""
    return _named("gemm", dtype, ways=3, sizes=3)  # a way: how a matrix is stored


@cache
def gemv(dtype: DType) -> BlasFunction | None:
    """Return the product of a matrix and a vector; None where NumPy names none."""
    return _named("gemv", dtype, ways=2, sizes=2)


def _named(name: str, dtype: DType, ways: int, sizes: int) -> BlasFunction | None:
    if dtype not in _LETTERS:
        return None
    try:
        # What a library is linked to is looked through as well.
        numpy = ctypes.CDLL(import_module("numpy._core._multiarray_umath").__file__)
    except (ImportError, OSError):
        return None
    for full, size in _names(f"{_LETTERS[dtype]}{name}"):
        if hasattr(numpy, full):
            address = ctypes.cast(getattr(numpy, full), ctypes.c_void_p).value or 0
            array, number = ("pointer", size), str(dtype)
            read = (number, *array, *array)
            kinds = (*("i32",) * ways, *(size,) * sizes, *read, number, *array)
            return BlasFunction(address, kinds)
    return None


def _names(name: str) -> Iterator[tuple[str, str]]:
    """Yield under which names it goes, with the kind of its sizes: 64 bits first."""
    for prefix in ("scipy_", ""):
        yield f"{prefix}cblas_{name}64_", "i64"
        yield f"{prefix}cblas_{name}", "i32"
