# SPDX-License-Identifier: Apache-2.0
"""Loops of a CPU kernel whose logarithms and powers are of moderate numbers.

Zero, infinity, NaN, subnormal and negative numbers cost a logarithm a fifth of its time
and a power a third, in loops that run in vectors and cannot choose for each element. So
operands are looked at first, if that takes no dear function, and the loop goes one way
or the other. Both give the same bits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias, TypeGuard

from nfuser.compiler.dtypes import DType
from nfuser.compiler.lower.cpu.vectors.lanes import ANGULAR, is_dear, of_any_reach
from nfuser.compiler.lower.cpu.versions import (
    chosen,
    is_indexed,
    renamed,
    what_gives,
)
from nfuser.compiler.lower.kernel.additions import Additions, each_loop
from nfuser.compiler.lower.kernel.kernel_ir import Call, Number
from nfuser.compiler.lower.kernel.walk import every

if TYPE_CHECKING:
    from nfuser.compiler.lower.kernel.kernel_ir import For, Kernel, Stmt, Value

Range: TypeAlias = tuple[float, float]
Ranges: TypeAlias = tuple[Range, ...]
"""From the least to the largest moderate number, of each operand."""

NORMAL: dict[DType, Ranges] = {
    DType.F64: ((2.0**-1022, (2 - 2.0**-52) * 2.0**1023),),
}
"""Positive, finite and not subnormal."""

POWERS: dict[DType, Ranges] = {
    DType.F32: ((2.0**-20, 2.0**20), (-6, 6)),
    DType.F64: ((2.0**-64, 2.0**64), (-15, 15)),
}
"""Bases and exponents of which no power overflows, or is subnormal."""

MODERATE = {"log": NORMAL, "power": POWERS}
"""By the functions that have a version for moderate numbers; others gain too little."""

MOST = 4
"""Such functions of a loop in two versions: more would take long to compile."""


def bound_powers(kernel: Kernel) -> Kernel:
    """Let loops over lanes of moderate numbers have logarithms and powers of those."""

    def change(loop: For) -> tuple[Stmt, ...] | None:
        return _bounded(loop) if loop.lane else None

    return Additions(kernel).to(each_loop(kernel.body, change))


def _bounded(loop: For) -> tuple[Stmt, ...] | None:
    inside = every(loop.body)
    calls = list(filter(_has_version, inside))
    if not 0 < len(calls) <= MOST or any(map(_is_angular, inside)):
        return None
    if is_indexed(loop.body):
        return None
    operands: dict[Value, Range] = {}
    for call in calls:
        ranges = MODERATE[call.op][call.dtype]
        for operand, (least, most) in zip(call.operands, ranges, strict=True):
            below, above = operands.get(operand, (least, most))
            operands[operand] = max(least, below), min(most, above)
    found = what_gives(operands, loop.body)
    if found is None or any(map(_is_dear, every(found))):
        return None
    far = {x: _is_outside(x, *within) for x, within in operands.items()}
    near = replace(loop, body=renamed(loop.body, _of_moderate))
    # Others are rare, and two vectors abreast compile in less time than four.
    return chosen(loop, found, far, near, (replace(loop, interleave=2),))


def _has_version(item: object) -> TypeGuard[Call]:
    return (
        isinstance(item, Call)
        and item.op in MODERATE
        and item.dtype in MODERATE[item.op]
    )


def _is_angular(item: object) -> bool:
    """Tell whether a function has versions of its own."""
    return isinstance(item, Call) and of_any_reach(item.op) in ANGULAR


def _is_dear(item: object) -> bool:
    return isinstance(item, Call) and is_dear(item.op)


def _is_outside(x: Value, least: float, most: float) -> Value:
    """Tell whether ``x`` is not in a range; NaN is in none."""
    above = Call("greater_equal", (x, Number(least, x.dtype)), DType.BOOL)
    below = Call("less_equal", (x, Number(most, x.dtype)), DType.BOOL)
    inside = Call("bit_and", (above, below), DType.BOOL)
    return Call("invert", (inside,), DType.BOOL)


def _of_moderate(call: Call) -> str:
    return f"{call.op}_moderate" if _has_version(call) else call.op
