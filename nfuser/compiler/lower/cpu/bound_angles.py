# SPDX-License-Identifier: Apache-2.0
"""Loops of a CPU kernel whose angles are small get sines that take small angles.

To bring any float within a quarter turn of zero takes more than the sine of what is
left. A loop that runs in vectors cannot choose for each element; so what the angles
come of is looked at first, and the whole loop takes one way or the other. No sine is
computed to look at: `sizes.py` says what follows of those that are known to be small.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeGuard, TypeVar

from nfuser.compiler.dtypes import DType
from nfuser.compiler.lower.cpu.sizes import Sizes
from nfuser.compiler.lower.cpu.vectors.lanes import ANGULAR
from nfuser.compiler.lower.cpu.versions import chosen, renamed, what_gives
from nfuser.compiler.lower.kernel.additions import Additions, each_loop
from nfuser.compiler.lower.kernel.kernel_ir import (
    Call,
    For,
    Number,
    Stmt,
    Value,
)
from nfuser.compiler.lower.kernel.loop_edits import gathers
from nfuser.compiler.lower.kernel.walk import every

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

    from nfuser.compiler.lower.kernel.kernel_ir import Kernel

T = TypeVar("T")

BOUNDS = {DType.F32: 2.0**24, DType.F64: 2.0**24}
"""Sizes up to which the primitives named ``sin_bounded`` and the like are right."""

NARROW = BOUNDS | {DType.F32: 2.0**13}
"""The same of ``sin_narrow`` and ``cos_narrow``, which need no float64."""

FEW = 4
"""Narrow sines of a loop that has a version for those between the bounds besides."""

MOST = 128
"""Sines of a loop that is compiled in two versions: that of more would take long."""


def bound_angles(kernel: Kernel) -> Kernel:
    """Let loops over lanes whose angles are small have the sines of small angles."""

    def change(loop: For) -> tuple[Stmt, ...] | None:
        return bounded(loop) if loop.lane and has_angles(loop) else None

    return Additions(kernel).to(each_loop(kernel.body, change))


def bounded(loop: For) -> tuple[Stmt, ...]:
    """Return ``loop`` in two versions, and what chooses, if it has sines."""
    if gathers(loop.body):
        return (loop,)
    if not any(map(_is_narrow, every(loop.body))):
        return _chosen(loop, BOUNDS, (loop,))
    between = (loop,) if _sines(loop.body) > FEW else _chosen(loop, BOUNDS, (loop,))
    return _chosen(loop, NARROW, between)


def _chosen(
    loop: For, limits: Mapping[DType, float], otherwise: tuple[Stmt, ...]
) -> tuple[Stmt, ...]:
    """Return ``loop`` for angles within ``limits``, and what runs ``otherwise``."""
    sizes = Sizes(loop.body, _is_angular, limits)
    near = replace(
        loop, body=_with_bounded(loop.body, sizes.near, is_narrow=limits is NARROW)
    )
    if not sizes.tested:
        return (near,)
    if _sines(loop.body) > MOST:
        return otherwise
    found = what_gives(sizes.tested, loop.body)
    if found is None:
        return otherwise
    far = {value: _is_far(value, most) for value, most in sizes.tested.items()}
    return chosen(loop, found, far, near, otherwise)


def _is_far(angle: Value, most: float) -> Value:
    size = Call("absolute", (angle,), angle.dtype)
    return Call("greater", (size, Number(most, angle.dtype)), DType.BOOL)


def has_angles(loop: For) -> bool:
    """Tell whether ``loop`` has sines and the like."""
    return any(map(_is_angular, every(loop.body)))


def _is_angular(item: object) -> TypeGuard[Call]:
    return isinstance(item, Call) and item.op in ANGULAR and item.dtype in BOUNDS


def _is_narrow(item: object) -> bool:
    """Tell whether a function takes small float32 angles without float64."""
    return _is_angular(item) and item.dtype is DType.F32 and item.op != "tan"


def _sines(body: tuple[Stmt, ...]) -> int:
    return sum(map(_is_angular, every(body)))


def _with_bounded(item: T, near: AbstractSet[Value], *, is_narrow: bool) -> T:
    def found(call: Call) -> str:
        if not _is_angular(call) or call.operands[0] not in near:
            return call.op
        reach = "narrow" if is_narrow and _is_narrow(call) else "bounded"
        return f"{call.op}_{reach}"

    return renamed(item, found)
