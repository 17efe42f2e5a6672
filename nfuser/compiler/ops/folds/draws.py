# SPDX-License-Identifier: Apache-2.0
"""Draws of a generator of NumPy's: calls of the library that follow one another.

Each draw gives its numbers, and beside them a token that the next draw of the same
generator takes. So none overtakes another, and one whose numbers nobody reads is made
all the same, since the last token is an output of the program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.expr import Called
from nfuser.compiler.ops.elementwise.arithmetic import copy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.builder import Builder

METHODS = "random.Generator."
"""What the names of such calls begin with."""


@node
class OperandAt:
    """An argument of the call that is the operand of this number."""

    place: int


@node
class DrawCall:
    """How a method is called: of the generator in ``slot``, with these arguments.

    ``sizes`` say which axes of the result are the argument ``size``; None if there was
    none. ``follows`` is whether the last operand is the token of the draw before.
    """

    slot: int
    arguments: tuple[tuple[str, object], ...]
    sizes: tuple[int, int] | None
    follows: bool


def drawn(
    b: Builder,
    method: str,
    slot: int,
    arguments: Sequence[tuple[str, Any]],
    operands: Sequence[TensorView],
    shape: Sequence[Scalar | int],
    dtype: DType,
    sizes: tuple[int, int] | None = None,
    token: TensorView | None = None,
) -> tuple[TensorView, TensorView]:
    """Return what a method of the generator in ``slot`` gives, and the next token."""
    kinds = [DType.F32 if t.dtype.is_half else t.dtype for t in operands]
    # Numbers are put into memory, where the library reads them.
    plain = [t if t.ndim else copy(b, t) for t in operands]
    held = [b.cast(t, kind) for t, kind in zip(plain, kinds, strict=True)]
    if token is not None:
        held.append(token)
        kinds.append(token.dtype)
    numbers, after = b.new(shape, dtype), b.new((), DType.BOOL)
    call = DrawCall(slot, tuple(arguments), sizes, token is not None)
    types, options = (dtype, DType.BOOL), (("draw", call),)
    made = numbers, after
    b.emit(Called(METHODS + method, tuple(held), made, tuple(kinds), types, options))
    return made
