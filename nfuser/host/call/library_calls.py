# SPDX-License-Identifier: Apache-2.0
"""What the library of the arrays computes in the program of a call."""

# Arrays of several libraries have no common static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.device.describe.libraries import Device, Library
from nfuser.dtypes import DType
from nfuser.dtypes.tensors import as_tensor
from nfuser.errors import UnsupportedError, host_error
from nfuser.host.call.functions import function_call
from nfuser.host.call.program import Number
from nfuser.host.call.scatters import scatter_call
from nfuser.host.run.arrays import Arrays, arrays_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nfuser.host.call.program import Call, Operand, Part, ViewOf

_UNSIGNED = (DType.U16, DType.U32, DType.U64)


def library_call(stmt: Call, library: Library, device: Device) -> Callable[..., None]:
    """Return what writes the result from arrays of the call into the last one given.

    Libraries that cannot are refused here, before anything runs.
    """
    _check(stmt, library, device)
    if stmt.scattered is not None:
        arrays = arrays_of(Library.NUMPY, device)
        return scatter_call(stmt, stmt.scattered, _reading(stmt, arrays))
    if stmt.function is not None:
        arrays = arrays_of(Library.NUMPY, device)
        return function_call(stmt, stmt.function, _reading(stmt, arrays))
    library = caller(stmt.name, library, device)
    arrays = arrays_of(library, device)
    reading = _reading(stmt, arrays)
    compute = _function(stmt, arrays)
    name, note = stmt.name, stmt.note

    def call(*given: Any) -> None:
        *operands, out = given
        try:
            compute(*reading(operands), out)
        except Exception as error:
            message = f"{name}: {library.value} failed: {error}{note}"
            raise host_error(message, error) from error

    return call


def _function(stmt: Call, arrays: Arrays) -> Callable[..., Any]:
    axis, stable, dtype = stmt.axis, stmt.stable, stmt.result.dtype
    match stmt.name:
        case "matmul":
            return lambda x, y, out: arrays.matmul(x, y, dtype, out)
        case "sort":
            return lambda x, out: arrays.sort(x, axis, out)
        case "argsort":
            return lambda x, out: arrays.argsort(x, axis, stable, out)
        case _:
            raise AssertionError(stmt)


def _check(stmt: Call, library: Library, device: Device) -> None:
    dtype = stmt.operands[0].dtype if stmt.operands else stmt.result.dtype
    reason, remedy = "", "pass arrays of PyTorch or CuPy, which can share the memory"
    if stmt.scattered is not None and device.is_cuda:
        reason = f"arrays on {device} are not assigned to by arrays of integers yet"
        remedy = "scatter arrays on the CPU, or sum over x[:, None] == arange(n)"
    elif stmt.function is not None and device.is_cuda:
        reason = f"functions of linalg and fft do not run on {device} yet"
        remedy = "call it outside the fused function, or pass arrays on the CPU"
    elif library in (Library.NUMBA, Library.JAX) and device.is_cuda:
        reason = f"{library.value} writes into no array of ours on {device}"
    elif library is Library.TORCH and stmt.name == "matmul":
        if dtype in _UNSIGNED or (dtype.is_integer and device.is_cuda):
            reason = f"torch multiplies no matrices of {dtype} on {device}"
            remedy = "x.astype(np.float64) is exact up to 2**53"
    elif library is Library.TORCH and device.is_cuda and dtype in _UNSIGNED:
        reason = f"torch sorts no arrays of {dtype} on {device}"
        remedy = "x.astype(np.int64) has the same order below 2**63"
    if reason:
        message = f"{stmt.name}: {reason}; {remedy}{stmt.note}"
        raise UnsupportedError(message)


def caller(name: str, library: Library, device: Device) -> Library:
    """Return whose function ``name`` is called for arrays of ``library``.

    What others have on the CPU, NumPy reads. It sorts faster than torch does.
    """
    sorts = name != "matmul" and not device.is_cuda
    return (
        Library.NUMPY if sorts or library in (Library.NUMBA, Library.JAX) else library
    )


def _reading(stmt: Call, arrays: Arrays) -> Callable[[Sequence[Any]], list[Any]]:
    """Return what gives the operands, from the arrays that have their memory."""
    fixed: list[Any] = []  # the numbers
    steps: list[tuple[int, int, Callable[[Any], Any]]] = []
    for k, operand in enumerate(stmt.operands):
        fixed.append(None)
        if isinstance(part := operand.part, Number):
            made = arrays.number(part.value, part.dtype)
            fixed[-1] = _through(operand.views, arrays, [])(made)
        else:
            steps.append((k, len(steps), _reader(operand, part, arrays)))

    def read(given: Sequence[Any]) -> list[Any]:
        found = fixed.copy()
        for k, place, step in steps:
            found[k] = step(given[place])
        return found

    return read


def _reader(operand: Operand, part: Part, arrays: Arrays) -> Callable[[Any], Any]:
    """Return what gives the operand, from the array that has its memory."""
    steps: list[Callable[[Any], Any]] = []
    if arrays.library is Library.TORCH:
        steps.append(_as_torch)
    elif arrays.library is Library.NUMPY:
        steps.append(np.asarray)
    if part.slot.dtype.is_complex:
        steps.append(_imaginary if part.offset else _real)
    return _through(operand.views, arrays, steps)


def _through(
    views: Sequence[ViewOf], arrays: Arrays, before: list[Callable[[Any], Any]]
) -> Callable[[Any], Any]:
    steps = [*before, *(_view(view, arrays) for view in views)]

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
    return as_tensor(array) if isinstance(array, np.ndarray) else array
