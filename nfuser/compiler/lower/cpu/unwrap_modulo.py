# SPDX-License-Identifier: Apache-2.0
"""Loops of a CPU kernel over what repeats, as one loop for each time.

What is tiled or wrapped is read at a remainder of the index. No vector of a CPU
divides, but between two multiples of the divisor a remainder only counts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.functions import maximum, minimum
from nfuser.compiler.ir.scalars.operators import Op
from nfuser.compiler.ir.scalars.scalar import Binary, Scalar
from nfuser.compiler.lower.kernel.additions import Additions, each_loop
from nfuser.compiler.lower.kernel.kernel_ir import For
from nfuser.compiler.lower.kernel.loop_edits import changed, gathers
from nfuser.compiler.lower.kernel.parameters import scalars_in
from nfuser.compiler.lower.kernel.walk import every

if TYPE_CHECKING:
    from nfuser.compiler.ir.scalars.scalar import LoopIndex
    from nfuser.compiler.lower.kernel.kernel_ir import Kernel, LoopCounter


def unwrap_modulo(kernel: Kernel) -> Kernel:
    """Let loops over lanes that divide their index run once for each time."""
    made = Additions(kernel)

    def change(loop: For) -> tuple[For] | None:
        nest = None if loop.lane is None else in_periods(loop, made.loops)
        return nest and (nest,)

    return made.to(each_loop(kernel.body, change))


def in_periods(loop: For, loops: LoopCounter) -> For | None:
    """Return ``loop`` as a loop over periods; None if it has none."""
    divided = _divided(loop)
    if divided is None:
        return None
    lhs, period = divided
    base, length = lhs - loop.index, maximum(period, 1)
    first = base % period
    time = loops.make((first + loop.stop + length - 1) // length)
    begin = maximum(time * period - first, 0)
    end = minimum((time + 1) * period - first, loop.stop)
    place = loops.make(end - begin)
    known: dict[Scalar, Scalar] = {
        lhs % period: begin + place + first - time * period,
        lhs // period: base // period + time,
        loop.index: begin + place,
    }
    body = changed(loop.body, known)
    once = replace(loop, index=place, stop=place.extent, body=body)
    return For(time, time.extent, (once,))


def _divided(loop: For) -> tuple[Scalar, Scalar] | None:
    """Return the one sum that steps with ``loop`` and is divided, and its divisor.

    Divisors that are constants are left to ``group_turns``.
    """
    if gathers(loop.body):
        return None
    moving = {s.index for s in every(loop.body) if isinstance(s, For)} | {loop.index}
    divided = [
        x
        for x in scalar_walk.every(scalars_in(loop.body))
        if isinstance(x, Binary)
        and x.op in (Op.MOD, Op.FLOORDIV)
        and loop.index in scalar_walk.loops_in(x)
    ]
    found = {(x.lhs, x.rhs) for x in divided}
    if len(found) != 1 or all(x.op is Op.FLOORDIV for x in divided):
        return None
    ((lhs, rhs),) = found
    if isinstance(rhs, sc.Const):
        return None
    base = lhs - loop.index
    is_still = moving.isdisjoint(_loops((base, rhs)))
    return (lhs, rhs) if is_still and sc.is_natural(base) else None


def _loops(parts: tuple[Scalar, ...]) -> set[LoopIndex]:
    return {loop for part in parts for loop in scalar_walk.loops_in(part)}
