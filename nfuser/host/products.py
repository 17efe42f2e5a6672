# SPDX-License-Identifier: Apache-2.0
"""Products of matrices in the program of a call: by the library of the arrays."""

# Arrays of several libraries have no common static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.device.libraries import Device, Library, module
from nfuser.dtypes import DType
from nfuser.errors import HostError, UnsupportedError
from nfuser.host.arrays import Arrays, arrays_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.host.program import Matmul, Operand, ViewOf

_UNSIGNED = (DType.U16, DType.U32, DType.U64)


def multiplier(
    stmt: Matmul, library: Library, device: Device
) -> Callable[[Any, Any, Any], None]:
    """Return what writes the product of two arrays of the call into the third.

    Libraries that cannot are refused here, before anything runs.
    """
    arrays = _arrays(stmt, library, device)
    lhs, rhs = (_reader(x, arrays) for x in (stmt.lhs, stmt.rhs))
    dtype, note = stmt.result.dtype, stmt.note

    def multiply(x: Any, y: Any, out: Any) -> None:
        try:
            arrays.matmul(lhs(x), rhs(y), dtype, out)
        except Exception as error:
            message = f"matmul: {library.value} failed: {error}{note}"
            raise HostError(message) from error

    return multiply


def _arrays(stmt: Matmul, library: Library, device: Device) -> Arrays:
    dtype = stmt.result.dtype
    reason, remedy = "", "pass arrays of PyTorch or CuPy, which can share the memory"
    if library in (Library.NUMBA, Library.JAX) and device.is_cuda:
        reason = f"arrays of {library.value} on {device} cannot be multiplied in place"
    elif library is Library.TORCH and (
        dtype in _UNSIGNED or (dtype.is_integer and device.is_cuda)
    ):
        reason = f"torch multiplies no matrices of {dtype} on {device}"
        remedy = "x.astype(np.float64) is exact up to 2**53"
    if reason:
        message = f"matmul: {reason}; {remedy}{stmt.note}"
        raise UnsupportedError(message)
    if library in (Library.NUMBA, Library.JAX):
        return Arrays(Library.NUMPY, device)  # what they have on the CPU, NumPy reads
    return arrays_of(library, device)


def _reader(operand: Operand, arrays: Arrays) -> Callable[[Any], Any]:
    """Return what gives the operand, from the array that has its memory."""
    steps: list[Callable[[Any], Any]] = []
    if arrays.library is Library.TORCH:
        steps.append(_as_torch)
    elif arrays.library is Library.NUMPY:
        steps.append(np.asarray)
    part = operand.part
    if part.slot.dtype.is_complex:
        steps.append(_imaginary if part.offset else _real)
    steps += [_view(view, arrays) for view in operand.views]

    def read(array: Any) -> Any:
        for step in steps:
            array = step(array)
        return array

    return read


def _view(view: ViewOf, arrays: Arrays) -> Callable[[Any], Any]:
    numbers = view.numbers
    match view.how:
        case "permute":
            return lambda array: arrays.permute(array, numbers)
        case "reshape":
            return lambda array: arrays.reshape(array, numbers)
        case "expand":
            return lambda array: arrays.module.broadcast_to(array, numbers)
        case "slice":
            key = tuple(slice(*numbers[k : k + 3]) for k in range(0, len(numbers), 3))
            return lambda array: arrays.index(array, key)


def _real(array: Any) -> Any:
    return array.real


def _imaginary(array: Any) -> Any:
    return array.imag


def _as_torch(array: Any) -> Any:
    """Return a NumPy array beside torch's as a tensor, which shares it where it can."""
    if not isinstance(array, np.ndarray):
        return array
    torch = module(Library.TORCH)
    is_shared = array.flags.writeable and min(array.strides, default=0) >= 0
    held = array if is_shared else array.copy()
    if held.dtype.name == "bfloat16":
        return torch.from_numpy(held.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(held)
