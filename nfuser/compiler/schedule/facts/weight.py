# SPDX-License-Identifier: Apache-2.0
"""How much code one element takes, and how often a kernel may repeat it.

Arrays of packets become registers only where the compiler unrolls the loops over them,
and it gives up on large bodies. The limits were found by compiling chains of functions
of growing length for sm_90.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import Pointwise, Reduce, results, sources

if TYPE_CHECKING:
    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.fusion import Fusion

PACKET_LIMIT = 128  # weight of a lane loop
ROW_LIMIT = 256  # weight of all the steps that a thread goes along a kept row
_LIGHT = {
    *("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "divide"),
    *("log_positive", "exp_near", "sqrt_near", "tanh_near", "divide_near"),
}


def weight(fusion: Fusion) -> int:
    """Return the costly operations of ``fusion``, dearer ones counted several times."""
    return sum(_cost(expr) for expr in fusion.exprs)


def _cost(expr: Expr) -> int:
    if not (isinstance(expr, Pointwise) and expr.op.is_costly):
        return 0
    one = 1 if expr.op.name in _LIGHT else 2
    return one * (6 if expr.operands[-1].dtype is DType.F64 else 1)


def weight_in_rows(fusion: Fusion) -> int:
    """Return the ``weight`` of what is not computed of reductions alone."""
    of_elements = {a.result for a in fusion.arguments}
    for expr in fusion.exprs:
        if not isinstance(expr, Reduce) and not of_elements.isdisjoint(sources(expr)):
            of_elements.update(results(expr))
    return sum(_cost(e) for e in fusion.exprs if not of_elements.isdisjoint(results(e)))


def limited(width: int, fusion: Fusion) -> int:
    """Return the largest packet up to ``width`` that stays in registers."""
    heavy = weight(fusion)
    while width > 1 and width * heavy > PACKET_LIMIT:
        width //= 2
    return width
