# SPDX-License-Identifier: Apache-2.0
"""What need not be written, as it may be anything: arrays of ``numpy.empty``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.expr import VIEWS, Constant, Pointwise
from nfuser.compiler.ir.point_op import is_copy

if TYPE_CHECKING:
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.tensor import TensorView


def is_unset(fusion: Fusion) -> bool:
    """Tell whether all that a fusion stores may be what its memory holds already."""
    return all(_is_any(fusion, tensor) for tensor in fusion.outputs)


def _is_any(fusion: Fusion, tensor: TensorView) -> bool:
    """Tell whether ``tensor`` is a copy, or a view, of a number that may be any."""
    while True:
        expr = fusion.definition[tensor]
        if isinstance(expr, Constant):
            return expr.is_unset
        if isinstance(expr, Pointwise) and is_copy(expr.op):
            (tensor,) = expr.operands
        elif isinstance(expr, VIEWS):
            tensor = expr.source
        else:
            return False
