# SPDX-License-Identifier: Apache-2.0
"""Loops of a CPU kernel whose angles are small get sines that take small angles.

To bring any float within a quarter turn of zero takes more than the sine of what is
left. A loop that runs in vectors cannot choose for each element; so what the angles
come of is looked at first, and the whole loop takes one way or the other. No sine is
computed to look at: `sizes.py` says what follows of those that are known to be small.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar, cast

from nfuser.compiler.dtypes import DType
from nfuser.compiler.lower.cpu.sizes import Sizes
from nfuser.compiler.lower.cpu.vectors.lanes import ANGULAR
from nfuser.compiler.lower.kernel.additions import Additions, each_loop
from nfuser.compiler.lower.kernel.kernel_ir import (
    Call,
    For,
    If,
    Let,
    Number,
    SetElement,
    Stmt,
    Store,
    Value,
    Var,
)
from nfuser.compiler.lower.kernel.loop_edits import gathers
from nfuser.compiler.lower.kernel.walk import PARTS, every

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
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
    found = _what_gives({x for x in sizes.tested if isinstance(x, Var)}, loop.body)
    if found is None:
        return otherwise
    beyond = last = Var(DType.BOOL)
    test: list[Stmt] = []
    for value, most in sizes.tested.items():
        size = Call("absolute", (value,), value.dtype)
        is_far = Call("greater", (size, Number(most, value.dtype)), DType.BOOL)
        either = Var(DType.BOOL)
        test.append(Let(either, Call("bit_or", (last, is_far), DType.BOOL)))
        last = either
    test.append(Let(beyond, last))
    within = Call("invert", (beyond,), DType.BOOL)
    return (
        Let(beyond, Number(False, DType.BOOL)),
        For(loop.index, loop.stop, (*found, *test)),
        If(within, (near,)),
        If(beyond, otherwise),
    )


def has_angles(loop: For) -> bool:
    """Tell whether ``loop`` has sines and the like."""
    return any(map(_is_angular, every(loop.body)))


def _is_angular(item: object) -> TypeGuard[Call]:
    return isinstance(item, Call) and item.op in ANGULAR and item.dtype in BOUNDS


def _is_narrow(item: object) -> bool:
    """Tell whether a function takes small float32 angles without float64."""
    return _is_angular(item) and item.dtype is DType.F32 and item.op != "tan"


def _what_gives(wanted: set[Var], body: tuple[Stmt, ...]) -> tuple[Stmt, ...] | None:
    """Return the statements of ``body`` that ``wanted`` comes of; None if it folds."""
    needed = set(wanted)
    kept: list[Stmt] = []
    for stmt in reversed(body):
        defined = set(_defined(stmt))
        if isinstance(stmt, (Store, SetElement)) or not defined & needed:
            continue
        if not isinstance(stmt, (Let, If)):
            return None
        if isinstance(stmt, Let) and stmt.var in set(_variables(stmt.value)):
            return None
        kept.append(stmt)
        needed.update(_variables(stmt))
    return tuple(reversed(kept))


def _sines(body: tuple[Stmt, ...]) -> int:
    return sum(map(_is_angular, every(body)))


def _defined(stmt: Stmt) -> Iterator[Var]:
    return (x.var for x in every([stmt]) if isinstance(x, Let))


def _variables(item: Stmt | Value) -> Iterator[Var]:
    return (x for x in every([item]) if isinstance(x, Var))


def _with_bounded(item: T, near: AbstractSet[Value], *, is_narrow: bool) -> T:
    def found(call: Call) -> str:
        if not _is_angular(call) or call.operands[0] not in near:
            return call.op
        reach = "narrow" if is_narrow and _is_narrow(call) else "bounded"
        return f"{call.op}_{reach}"

    return _renamed(item, found)


def _renamed(item: T, name: Callable[[Call], str]) -> T:
    """Return ``item`` with the functions that ``name`` gives to its calls."""
    made: Any = item
    if isinstance(item, tuple):
        held = cast("tuple[Any, ...]", item)
        made = tuple(_renamed(x, name) for x in held)
    elif isinstance(item, PARTS):
        held: Any = item
        parts = {f.name: _renamed(getattr(held, f.name), name) for f in fields(held)}
        if isinstance(item, Call):
            parts["op"] = name(item)
        changed = any(parts[key] is not getattr(held, key) for key in parts)
        made = replace(held, **parts) if changed else item
    return made
