# SPDX-License-Identifier: Apache-2.0
"""Numbers that the host prepares for exact divisions by multiplication."""

from __future__ import annotations

from nfuser.compiler.ir.scalars.operators import Op
from nfuser.compiler.ir.scalars.scalar import Scalar, binary, const


def multiplier(divisor: Scalar) -> Scalar:
    """Return the factor that divides by ``divisor`` (design of fast division)."""
    return binary(Op.MULTIPLIER, divisor, const(0))


def shift(divisor: Scalar) -> Scalar:
    """Return the shift that goes with ``multiplier(divisor)``."""
    return binary(Op.SHIFT, divisor, const(0))
