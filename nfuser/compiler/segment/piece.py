# SPDX-License-Identifier: Apache-2.0
"""The fusion of a piece: expressions of a program, and what they read of the rest."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.compiler.ir.expr import (
    Argument,
    Constant,
    Expr,
    FromScalar,
    Iota,
    results,
    sources,
)
from nfuser.compiler.ir.fusion import Fusion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.tensor import TensorView


def piece_of(
    program: Fusion, exprs: Sequence[Expr], outputs: Sequence[TensorView]
) -> Fusion:
    """Return ``exprs`` of ``program``, in order; what they read of others is given."""
    defined = {t for e in exprs for t in results(e)}
    whole = wholes(program)
    body: dict[Expr, None] = {}
    slots: dict[TensorView, int] = {}
    for expr in exprs:
        for tensor in sources(expr):
            if tensor in defined:
                continue
            defined.add(tensor)
            definition = program.definition[tensor]
            if isinstance(definition, (Constant, FromScalar, Iota)):
                body[definition] = None
                continue
            slot = slots.setdefault(whole.get(tensor, tensor), len(slots))
            if isinstance(definition, Argument):
                body[replace(definition, slot=slot)] = None
            else:
                body[Argument(slot, tensor)] = None
        body[expr] = None
    return Fusion(program.name, tuple(body), outputs)


def wholes(program: Fusion) -> dict[TensorView, TensorView]:
    """Return the real part for each imaginary one: they are one to those who read."""
    return {imaginary: real for real, imaginary in program.complex_arguments}
