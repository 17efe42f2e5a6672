# SPDX-License-Identifier: Apache-2.0
"""Operations of the array library that a kernel does with the same bits."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, TypeAlias, get_args

import nfuser.compiler.ops as ops
import nfuser.execution.host.ir.statements as st
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.scalars.scalar import Scalar
from nfuser.compiler.ir.tensor import TensorView
from nfuser.errors import NfuserError

if TYPE_CHECKING:
    from nfuser.compiler.ir.fusion import Fusion

    # Rank and dtype of a tensor, what is known of a number, or None of an integer.
    Kind: TypeAlias = tuple[int, DType] | tuple[float, str] | None

EXACT = frozenset(
    (
        *("add", "subtract", "multiply", "negative", "square"),
        *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
        *("logical_and", "logical_or", "logical_xor", "logical_not"),
        *("bitwise_and", "bitwise_or", "bitwise_xor"),
    )
)
"""Functions of NumPy whose result no library may choose: it is rounded once, or not."""

_SCALARS: tuple[type, ...] = get_args(Scalar)


def as_launch(stmt: st.Set | st.UnaryOp | st.BinaryOp) -> st.Launch | None:
    """Return the launch that does what ``stmt`` does, if there is one."""
    match stmt:
        case st.Set(source):
            name, operands = "copy", (source,)
        case st.UnaryOp(name, source):
            operands = (source,)
        case st.BinaryOp(name, lhs, rhs):
            operands = (lhs, rhs)
    if name != "copy" and name not in EXACT:
        return None
    try:
        fusion = _fusion(name, tuple(map(_kind, operands)))
    except NfuserError:  # NumPy may know what to do with such numbers
        return None
    (made,) = fusion.outputs
    # An integer that is not known yet might not fit into a narrow dtype.
    is_wide = made.dtype.is_float or made.dtype is DType.I64
    has_integers = any(isinstance(x, _SCALARS) for x in operands)
    # Libraries differ in whether a number is rounded before it meets 16-bit floats.
    has_numbers = not all(isinstance(x, TensorView) for x in operands)
    is_half = any(t.dtype.is_half for t in st.reads(stmt))
    if made.dtype is not stmt.result.dtype or (has_integers and not is_wide):
        return None
    if has_numbers and is_half:
        return None
    given = tuple(x for x in operands if isinstance(x, (TensorView, *_SCALARS)))
    return st.Launch(fusion, given, (stmt.result,), stmt.line)


def _kind(x: st.Operand) -> Kind:
    if isinstance(x, TensorView):
        return x.ndim, x.dtype
    if isinstance(x, bool | int | float):
        return x, f"{type(x).__name__} {x!r}"  # True is 1, and -0.0 is 0.0
    if isinstance(x, complex):
        message = "complex numbers are the library's"
        raise NfuserError(message)
    return None


@cache
def _fusion(name: str, kinds: tuple[Kind, ...]) -> Fusion:
    """Return the fusion of one operation; numbers that are known are part of it."""
    b = ops.Builder(name=name)
    operands: list[ops.Operand] = []
    slot = 0
    for kind in kinds:
        match kind:
            case (int(ndim), DType() as dtype):
                if dtype.is_complex:
                    message = "complex numbers are the library's"
                    raise NfuserError(message)
                operands.append(b.argument(slot, ndim, dtype))
            case (number, str()):
                operands.append(number)
                continue
            case _:
                made = b.argument(slot, 0, DType.I64, by_value=True)
                b.weak[made] = int
                operands.append(made)
        slot += 1
    return b.fusion([getattr(ops, name)(b, *operands)])
