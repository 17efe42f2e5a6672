# SPDX-License-Identifier: Apache-2.0
"""Functions of the array library as statements of a program; on the CPU, NumPy's.

What they read and give lies in memory of the program; all of it is computed before any
of it is stored, so that one that fails has changed nothing.
"""

# Arrays of several libraries have no common static type.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.errors import host_error
from nfuser.execution.host.call.library.generators import draw_call, draw_of
from nfuser.execution.host.run.library_functions import CHECKS, library_function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nfuser.compiler.dtypes import DType
    from nfuser.execution.host.call.program import (
        CallLibrary,
        LibraryFunction,
        SlotPart,
    )
    from nfuser.execution.host.run.arrays import Arrays


def function_call(
    stmt: CallLibrary,
    function: LibraryFunction,
    arrays: Arrays,
    reading: Callable[[Sequence[Any]], list[Any]],
) -> Callable[..., None]:
    """Return what calls the function with arrays of the call, the last the results.

    One that draws is given the generator before them.
    """
    draw = draw_of(function)
    is_drawn, count = draw is not None, len(function.parts)
    compute = (
        _computed(stmt, function, arrays) if draw is None else draw_call(stmt, draw)
    )

    def call(*given: Any) -> None:
        targets = [arrays.own(x) for x in given[len(given) - count :]]
        read = reading(given[is_drawn : len(given) - count])
        made = compute(*given[:is_drawn], *_joined(arrays, function.given, read))
        left = iter(targets)
        _check_shapes(made, targets, stmt, function)
        for result, parts in zip(made, function.results, strict=True):
            _store(arrays, arrays.own(result), parts, left)

    return call


def _computed(
    stmt: CallLibrary, function: LibraryFunction, arrays: Arrays
) -> Callable[..., tuple[Any, ...]]:
    """Return what gives the results of a function of the library."""
    compute = library_function(arrays.library, stmt.name)
    options: dict[str, Any] = dict(function.options)
    sized = options.pop("sized", None)  # an axis whose size is that of the result
    own = options if sized is None else options | {"n": function.shape[sized]}
    who, note = "" if stmt.name in CHECKS else f"{stmt.name}: ", stmt.note

    def call(*read: Any) -> tuple[Any, ...]:
        try:
            found = compute(*read, **own)
        except Exception as error:
            raise host_error(f"{who}{error}{note}", error) from error
        return found if isinstance(found, tuple) else (found,)

    return call


def _check_shapes(
    made: Sequence[Any],
    targets: Sequence[Any],
    stmt: CallLibrary,
    function: LibraryFunction,
) -> None:
    """Refuse a result whose shape the elements told: what is stored has one already."""
    pairs = zip(made, function.results, strict=True)
    shapes = (tuple(np.shape(x)) for x, parts in pairs for p in parts if p is not None)
    for found, target in zip(shapes, targets, strict=True):
        if found != tuple(target.shape):
            message = (
                f"{stmt.name}: write np.linalg.pinv(a) @ b where a may have less than "
                f"full rank: the residuals then have shape {found}, for which "
                f"{tuple(target.shape)} was traced{stmt.note}"
            )
            raise host_error(message, ValueError())


def _joined(
    arrays: Arrays, kinds: Sequence[DType], read: Sequence[Any]
) -> Iterator[Any]:
    """Give the operands of the function, complex ones of their two parts."""
    left = iter(read)
    for kind in kinds:
        first = next(left)
        yield arrays.joined(first, next(left), kind) if kind.is_complex else first


def _store(
    arrays: Arrays, found: Any, parts: Sequence[SlotPart | None], left: Iterator[Any]
) -> None:
    """Write a result to where its parts are to be."""
    pieces = (found,) if len(parts) == 1 else (found.real, found.imag)
    for piece, part in zip(pieces, parts, strict=True):
        if part is None:
            continue
        target = next(left)
        if part.slot.dtype.is_complex:
            target = target.imag if part.offset else target.real
        arrays.copy(piece, target)
