# SPDX-License-Identifier: Apache-2.0
"""How much code one element takes, and how often a kernel may repeat it.

Arrays of packets become registers only where the compiler unrolls the loops over them,
and it gives up on large bodies. The limits were found by compiling chains of functions
of growing length for sm_90.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.dtypes import DType
from nfuser.ir.expr import Pointwise

if TYPE_CHECKING:
    from nfuser.ir.fusion import Fusion

PACKET_LIMIT = 128  # weight of a lane loop
ROW_LIMIT = 256  # weight of all the steps that a thread goes along a kept row
_LIGHT = {
    *("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "divide"),
    *("exp_near", "sqrt_near", "tanh_near", "divide_near"),
}


def weight(fusion: Fusion) -> int:
    """Return the costly operations of ``fusion``, dearer ones counted several times."""
    total = 0
    for expr in fusion.exprs:
        if isinstance(expr, Pointwise) and expr.op.is_costly:
            one = 1 if expr.op.name in _LIGHT else 2
            total += one * (6 if expr.operands[-1].dtype is DType.F64 else 1)
    return total


def limited(width: int, fusion: Fusion) -> int:
    """Return the largest packet up to ``width`` that stays in registers."""
    heavy = weight(fusion)
    while width > 1 and width * heavy > PACKET_LIMIT:
        width //= 2
    return width
