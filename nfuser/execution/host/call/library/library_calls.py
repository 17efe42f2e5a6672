# SPDX-License-Identifier: Apache-2.0
"""What the library of the arrays computes in the program of a call."""

# Arrays of several libraries have no common static type.
# pyright: reportUnknownVariableType=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.dtypes import DType
from nfuser.errors import UnsupportedError, host_error
from nfuser.execution.device.describe.libraries import Device, Library
from nfuser.execution.host.call.library.functions import function_call
from nfuser.execution.host.call.library.generators import draw_of
from nfuser.execution.host.call.library.scatters import scatter_call
from nfuser.execution.host.call.library.small_products import by_blas, small_product
from nfuser.execution.host.call.library.sorted_scatters import (
    lacks_scatter,
    sorted_scatter,
)
from nfuser.execution.host.call.program import ProgramNumber, slots_of
from nfuser.execution.host.run.arrays_of import arrays_of
from nfuser.execution.host.run.library_functions import lacks_function

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nfuser.execution.host.call.library.small_products import SmallProduct
    from nfuser.execution.host.call.program import (
        CallLibrary,
        LibraryOperation,
        Operand,
        SlotPart,
        ViewOf,
    )
    from nfuser.execution.host.run.arrays import Arrays

_UNSIGNED = (DType.U16, DType.U32, DType.U64)


def library_call(
    stmt: CallLibrary, library: Library, device: Device
) -> Callable[..., None]:
    """Return what writes the result from arrays of the call into the last one given.

    Libraries that cannot are refused here, before anything runs.
    """
    given = library
    if stmt.operation is None:
        _check(stmt, library, device)
        library = caller(stmt.name, library, device)
    arrays = arrays_of(library, device)
    reading = _reading(stmt, arrays)
    if stmt.scattered is not None:
        if device.is_cuda:
            return sorted_scatter(stmt, stmt.scattered, arrays, reading)
        return scatter_call(stmt, stmt.scattered, reading)
    if stmt.function is not None:
        return function_call(stmt, stmt.function, arrays, reading)
    compute = _function(stmt, arrays)
    name, note = stmt.name, stmt.note

    def call(*given: Any) -> None:
        *operands, out = given
        try:
            compute(*reading(operands), out)
        except Exception as error:
            if stmt.operation is not None:  # the program names its statement
                raise
            message = f"{name}: {library.value} failed: {error}{note}"
            raise host_error(message, error) from error

    made = blas_product(stmt, given, device)
    return by_blas(made, slots_of(stmt), call) if made else call


def blas_product(
    stmt: CallLibrary, library: Library, device: Device
) -> SmallProduct | None:
    """Return the small product that ``stmt`` asks for, where the arrays are NumPy's."""
    is_here = library is Library.NUMPY and not device.is_cuda
    is_product = stmt.name == "matmul" and stmt.operation is None
    return small_product(stmt) if is_here and is_product else None


def _function(stmt: CallLibrary, arrays: Arrays) -> Callable[..., Any]:
    axis, kth, dtype = stmt.axis, stmt.kth, stmt.result.dtype
    if stmt.operation is not None:
        return _operation(stmt.name, stmt.operation, dtype, arrays)
    match stmt.name:
        case "matmul" if arrays.library is Library.NUMPY and not _has_halves(stmt):
            return np.matmul  # at once: of small matrices, what is asked takes longer
        case "matmul":
            return lambda x, y, out: arrays.matmul(x, y, dtype, out)
        case "sort":
            return lambda x, out: arrays.sort(x, axis, out, kth)
        case "argsort":
            return lambda x, out: arrays.argsort(x, axis, stmt.stable, out, kth)
        case _:
            raise AssertionError(stmt)


def _operation(
    name: str, operation: LibraryOperation, dtype: DType, arrays: Arrays
) -> Callable[..., Any]:
    """Return what performs an operation of a host program, the result given last."""
    compute = _computation(name, operation, dtype, arrays)
    target = view_reader(operation.views, arrays)
    if arrays.library is not Library.TORCH and not operation.views:
        return compute
    if arrays.library is not Library.TORCH:
        return lambda *given: compute(*given[:-1], target(given[-1]))

    def run(*given: Any) -> None:
        *read, out = given
        if arrays.records(read):  # what is told where to write records nothing
            arrays.copy(compute(*read, None), target(out))
        else:
            compute(*read, target(out))

    return run


def _computation(
    name: str, operation: LibraryOperation, dtype: DType, arrays: Arrays
) -> Callable[..., Any]:
    types, axes = operation.types, operation.axes
    match name:
        case _ if types:
            return lambda *given: arrays.compute(name, given[:-1], types, given[-1])
        case "matmul":
            return lambda x, y, out: arrays.matmul(x, y, dtype, out)
        case "copy":
            return arrays.copy
        case _:
            return lambda x, out: arrays.reduce(name, x, axes, dtype, out)


def _has_halves(stmt: CallLibrary) -> bool:
    return any(operand.dtype.is_half for operand in stmt.operands)


def _check(stmt: CallLibrary, library: Library, device: Device) -> None:
    dtype = stmt.operands[0].dtype if stmt.operands else stmt.result.dtype
    reason, remedy = "", "pass arrays of PyTorch or CuPy, which can share the memory"
    if draw_of(stmt.function) is not None and device.is_cuda:
        reason = f"a generator of NumPy's does not draw on {device}"
        remedy = "draw with nfuser.random.default_rng(seed)"
    elif library in (Library.NUMBA, Library.JAX) and device.is_cuda:
        reason = f"{library.value} writes into no array of ours on {device}"
    elif stmt.function is not None and device.is_cuda:
        reason, remedy = lacks_function(library, stmt.name), "or pass arrays on the CPU"
    elif stmt.scattered is not None and device.is_cuda:
        reason, remedy = lacks_scatter(library, stmt.scattered.op, stmt.result.dtype)
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


def _reading(stmt: CallLibrary, arrays: Arrays) -> Callable[[Sequence[Any]], list[Any]]:
    """Return what gives the operands, from the arrays that have their memory."""
    fixed: list[Any] = []  # the numbers
    steps: list[tuple[int, int, Callable[[Any], Any]]] = []
    for k, operand in enumerate(stmt.operands):
        fixed.append(None)
        if isinstance(part := operand.part, ProgramNumber):
            if stmt.operation is not None:  # libraries know what a number may become
                fixed[-1] = part.value
                continue
            made = arrays.number(part.value, part.dtype)
            fixed[-1] = _through(operand.views, arrays, [])(made)
        else:
            is_whole = stmt.operation is not None
            steps.append((k, len(steps), _reader(operand, part, arrays, is_whole)))

    if len(steps) == len(fixed) == 2:
        one, other = (step for _, _, step in steps)
        return lambda given: [one(given[0]), other(given[1])]

    def read(given: Sequence[Any]) -> list[Any]:
        found = fixed.copy()
        for k, place, step in steps:
            found[k] = step(given[place])
        return found

    return read


def _reader(
    operand: Operand, part: SlotPart, arrays: Arrays, is_whole: bool
) -> Callable[[Any], Any]:
    """Return what gives the operand, from the array that has its memory."""
    steps: list[Callable[[Any], Any]] = []
    if arrays.library is Library.TORCH:
        steps.append(arrays.own)
    elif arrays.library is Library.NUMPY:
        steps.append(np.asarray)
    if part.slot.dtype.is_complex and not is_whole:
        steps.append(_imaginary if part.offset else _real)
    return _through(operand.views, arrays, steps)


def view_reader(views: Sequence[ViewOf], arrays: Arrays) -> Callable[[Any], Any]:
    """Return what makes ``views`` of an array of the library."""
    return _through(views, arrays, []) if views else _same


def _same(array: Any) -> Any:
    return array


def _through(
    views: Sequence[ViewOf], arrays: Arrays, before: list[Callable[[Any], Any]]
) -> Callable[[Any], Any]:
    steps = [*before, *(_view(view, arrays) for view in views)]
    if len(steps) == 1:
        return steps[0]

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
        case "select":
            axis, at = numbers
            lead = (slice(None),) * axis
            return lambda array: arrays.index(array, (*lead, at))
        case "slice":
            key = tuple(slice(*numbers[k : k + 3]) for k in range(0, len(numbers), 3))
            return lambda array: arrays.index(array, key)


def _real(array: Any) -> Any:
    return array.real


def _imaginary(array: Any) -> Any:
    return array.imag
