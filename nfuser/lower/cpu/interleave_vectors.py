# SPDX-License-Identifier: Apache-2.0
"""Several vectors side by side, where LLVM would take one after the other.

Each dear operation waits for the one before it, mostly: a quotient, a polynomial. While
one vector waits another can be worked on, but a processor does not look that far ahead,
and LLVM leaves loops that are not short as they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.dtypes import DType
from nfuser.lower.cpu.lanes import instructions, is_dear
from nfuser.lower.kernel.additions import Additions, each_loop
from nfuser.lower.kernel.kernel_ir import Call, DrawPacket, For
from nfuser.lower.kernel.walk import every

if TYPE_CHECKING:
    from nfuser.lower.kernel.kernel_ir import Kernel, Stmt

_ABREAST = ((16, 4), (256, 2))  # vectors, of polynomials of so many instructions
_BLOCKS_ABREAST = 2  # vectors of Philox's blocks, each round of which waits for another
_ABREAST_NARROW = ((16, 4), (512, 2))  # the same where none is of f64


def interleave_vectors(kernel: Kernel) -> Kernel:
    """Let loops of dear operations have several vectors side by side."""
    return Additions(kernel).to(each_loop(kernel.body, _widened))


def _widened(loop: For) -> tuple[Stmt, ...] | None:
    count = _vectors(loop)
    return None if count == loop.interleave else (replace(loop, interleave=count),)


def _vectors(loop: For) -> int:
    inside = list(every(loop.body))
    if any(isinstance(x, DrawPacket) for x in loop.body):
        return _BLOCKS_ABREAST
    dear = [x for x in inside if isinstance(x, Call) and is_dear(x.op)]
    if any(isinstance(x, For) for x in inside) or not dear:
        return 0
    if not all(x.dtype.is_float for x in dear):
        return 0
    if loop.lane is not None and loop.lane.walk.short:
        return 1
    work = sum(instructions(x) for x in dear)
    is_narrow = all(x.dtype is DType.F32 for x in dear)
    limits = _ABREAST_NARROW if is_narrow else _ABREAST
    return next((count for most, count in limits if work <= most), 0)
