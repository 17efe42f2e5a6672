# SPDX-License-Identifier: Apache-2.0
"""Which loops of a CPU kernel should have more lanes than their sums have."""

from __future__ import annotations

from nfuser.dtypes import DType
from nfuser.ir.point_op import POINT_OPS
from nfuser.lower.kernel_ir import Call, Element, For, Let, Load
from nfuser.lower.walk import every


def has_narrow_work(loop: For) -> bool:
    """Tell whether ``loop`` sums in 64 bits what is dear to compute in 32.

    LLVM takes as many lanes as the widest variable that a loop carries has in a vector,
    and half of each vector is left to the narrow work. Light work does not gain: the
    conversions cost as much in either way.
    """
    inside = list(every(loop.body))
    if any(isinstance(x, For) or _is_wide(x) for x in inside):
        return False
    sums = (x for x in inside if isinstance(x, Let) and x.var.dtype is DType.F64)
    dear = [x.dtype for x in inside if isinstance(x, Call) and _is_dear(x.op)]
    folds = any(let.var in set(every([let.value])) for let in sums)
    return folds and bool(dear) and all(dtype is DType.F32 for dtype in dear)


def _is_wide(item: object) -> bool:
    return isinstance(item, (Load, Element)) and item.dtype.bits == 64


def _is_dear(name: str) -> bool:
    return name in POINT_OPS and POINT_OPS[name].is_costly
