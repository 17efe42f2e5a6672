# SPDX-License-Identifier: Apache-2.0
"""What a program launches: a fusion, a program, or an object that runs one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.ir.fusion import Fusion
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.tensor import TensorView
from nfuser.errors import ArgumentError, DTypeError, ShapeError
from nfuser.execution.host.ir.host_ir import HostProgram

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.execution.host.ir.rules import Form
    from nfuser.execution.host.ir.statements import Operand


def fusion_of(function: object) -> Fusion | None:
    """Return the fusion that ``function`` is, or has."""
    found = function if isinstance(function, Fusion) else None
    inner: Any = getattr(function, "fusion", None)
    return inner if found is None and isinstance(inner, Fusion) else found


def program_of(function: object) -> HostProgram | None:
    """Return the host program that ``function`` is, or has."""
    inner: Any = getattr(function, "program", function)
    return inner if isinstance(inner, HostProgram) else None


def result_forms(function: object, operands: Sequence[Operand]) -> list[Form]:
    """Return the shapes and dtypes of what ``function`` gives for ``operands``."""
    found = fusion_of(function) or program_of(function)
    if found is None:
        message = (
            "launch: the fusion of this function is not known before it is called; "
            "pass like=[(shape, dtype), ...], one for each result"
        )
        raise ArgumentError(message)
    slots = [a.slot for a in found.arguments] if isinstance(found, Fusion) else []
    wanted = 1 + max(slots, default=-1)
    if isinstance(found, HostProgram):
        wanted = len(found.inputs)
    if len(operands) < wanted:
        message = f"launch: {found.name} takes {wanted} operands, found {len(operands)}"
        raise ArgumentError(message)
    if isinstance(found, Fusion):
        _check_operands(found, operands)
    known = symbols_of(operands)
    return [
        (tuple(scalar_walk.substitute(output.shape, known)), output.dtype)
        for output in found.outputs
    ]


def _check_operands(fusion: Fusion, operands: Sequence[Operand]) -> None:
    for argument in fusion.arguments:
        given, wanted = operands[argument.slot], argument.result
        if argument.by_value or argument.part.value:
            continue
        what = f"launch: operand {argument.slot} of {fusion.name}"
        if not isinstance(given, TensorView):
            message = f"{what}: expected a tensor, found {given!r}"
            raise ArgumentError(message)
        if given.ndim != wanted.ndim:
            message = f"{what}: expected {wanted.ndim} axes, found {given.ndim}"
            raise ShapeError(message)
        if given.dtype is not wanted.dtype:
            message = f"{what}: expected {wanted.dtype}, found {given.dtype}"
            raise DTypeError(message)


def symbols_of(operands: Sequence[Operand]) -> dict[sc.Scalar, sc.Scalar]:
    """Return what the sizes and integers of a launched fusion are for ``operands``."""
    known: dict[sc.Scalar, sc.Scalar] = {}
    for slot, x in enumerate(operands):
        if isinstance(x, TensorView):
            known |= {scalar_symbols.size(slot, k): n for k, n in enumerate(x.shape)}
        elif not isinstance(x, float | complex):
            known[scalar_symbols.scalar_input(slot)] = sc.as_scalar(x)
    return known


def flat(result: object) -> list[Any]:
    """Return the arrays of a result: one, or several in a list or tuple."""
    return list(result) if isinstance(result, list | tuple) else [result]  # pyright: ignore[reportUnknownArgumentType]
