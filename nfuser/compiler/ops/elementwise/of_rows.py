# SPDX-License-Identifier: Apache-2.0
"""Verbs of functions of floats that are one row each, made by the row's name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import nfuser.compiler.ops.elementwise.complex.growth as growth
import nfuser.compiler.ops.elementwise.complex.inverses as inverses
import nfuser.compiler.ops.elementwise.complex.parts as parts
import nfuser.compiler.ops.rules as rules
from nfuser.compiler.dtypes import DType, float_of

if TYPE_CHECKING:
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.builder import Builder, Operand


_COMPLEX = parts.FUNCTIONS | growth.FUNCTIONS


class Unary(Protocol):
    """A verb of one operand."""

    def __call__(self, b: Builder, x: Operand) -> TensorView:
        """Emit the operation on ``x``."""
        ...


class BinaryVerb(Protocol):
    """A verb of two operands."""

    def __call__(self, b: Builder, x: Operand, y: Operand) -> TensorView:
        """Emit the operation on ``x`` and ``y``."""
        ...


def unary(name: str) -> Unary:
    """Return the verb of the row ``name``; integers are taken as floats."""

    def verb(b: Builder, x: Operand) -> TensorView:
        operand = b.tensor(x)
        if operand.dtype.is_complex:
            found = _COMPLEX.get(name) or getattr(inverses, name, None)
            if found is None:
                raise parts.refuse(name)
            return found(b, operand)
        return b.point(name, b.cast(operand, _float_of(b, x)))

    verb.__name__ = name
    verb.__doc__ = f"Return ``{name}`` of each element."
    return verb


def _float_of(b: Builder, x: Operand) -> DType:
    kind = b.type_of(x)
    return float_of(kind) if isinstance(kind, DType) else rules.float_type(b, "", x)


def binary(name: str) -> BinaryVerb:
    """Return the verb of the row ``name``; integers are taken as floats."""

    def verb(b: Builder, x: Operand, y: Operand) -> TensorView:
        dtype = rules.float_type(b, name, x, y)
        return b.point(name, b.convert(x, dtype), b.convert(y, dtype))

    verb.__name__ = name
    verb.__doc__ = f"Return ``{name}`` of each pair of elements."
    return verb


def whole(name: str) -> Unary:
    """Return the verb of the rounding ``name``."""

    def verb(b: Builder, x: Operand) -> TensorView:
        operand = b.tensor(x)
        if operand.dtype.is_complex:
            raise parts.refuse(name)
        return b.point(name if operand.dtype.is_float else "copy", operand)

    verb.__name__ = name
    verb.__doc__ = f"Return ``{name}`` of each element; integers stay as they are."
    return verb
