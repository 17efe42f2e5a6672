# SPDX-License-Identifier: Apache-2.0
"""Integers of Python's that turns multiply, which soon are beyond 64 bits.

Python's have no end, and those of a loop have 64 bits: a turn that leaves one beyond
them raises. What turns add to takes more turns than any call has, unless it is added to
itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import Pointwise
from nfuser.compiler.ir.fusion import Fusion
from nfuser.compiler.ir.point_op import CAST, POINT_OPS, is_copy
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ops.loops.index_ranges import Ranges, in_order
from nfuser.compiler.ops.python_integers import look_at_size

if TYPE_CHECKING:
    from collections.abc import Mapping, Set

    from nfuser.compiler.ir.expr import Expr, Loop
    from nfuser.compiler.ir.point_op import PointOp
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.builder import Builder

_SUMS = {POINT_OPS["add"], POINT_OPS["subtract"]}
_PRODUCTS = {POINT_OPS["multiply"], POINT_OPS["power"]}
_SIGNS = {POINT_OPS["negative"], POINT_OPS["absolute"]}
_CHOICE, _SHIFT = POINT_OPS["select"], POINT_OPS["left_shift"]


def looking_at_growth(b: Builder, loop: Loop, around: Ranges) -> Loop:
    """Let turns raise that leave integers of Python's beyond 64 bits."""
    slots = {a.slot: a.result for a in loop.body.arguments if a.slot < loop.carried}
    held = {k: t for k, t in slots.items() if b.weak.get(t) is int}
    if b.narrow is None or not held:
        return loop
    growth = _Growth(loop.body.definition, held)
    outputs = {k: loop.body.outputs[k] for k in held}
    grown = {k: growth.of(t) for k, t in outputs.items()}
    ranges = around.inside(loop)
    wanted = [
        t
        for k, t in outputs.items()
        if growth.is_multiplied(t, _together(grown, k), ranges)
    ]
    if not wanted:
        return loop
    begin = len(b.exprs)
    for t in wanted:
        look_at_size(b, growth.as_float(b, t))
    looks = b.exprs[begin:]
    del b.exprs[begin:]
    body = Fusion(loop.body.name, [*loop.body.exprs, *looks], loop.body.outputs)
    return replace(loop, body=body)


def _together(grown: Mapping[int, Set[int]], slot: int) -> Set[int]:
    """Return which numbers grow with the one in ``slot``, and it with them."""

    def reached(first: int) -> set[int]:
        found: set[int] = set()
        new = [first]
        while new:
            more = grown.get(new.pop(), set()) - found
            found |= more
            new += more
        return found

    return {k for k in reached(slot) if slot in reached(k)}


class _Growth:
    """What numbers of a body grow with, of those that turns carry on."""

    def __init__(
        self, definition: Mapping[TensorView, Expr], held: Mapping[int, TensorView]
    ) -> None:
        self._definition = definition
        self._found: dict[TensorView, frozenset[int]] = {
            t: frozenset({k}) for k, t in held.items()
        }

    def _grows(self, tensor: TensorView) -> tuple[PointOp, list[TensorView]] | None:
        """Return the operation that gives ``tensor``, and by what it may be large."""
        match self._definition.get(tensor):
            case Pointwise(op, (_, one, other)) if op is _CHOICE:
                return op, [one, other]
            case Pointwise(op, (one,)) if is_copy(op) or op is CAST or op in _SIGNS:
                return op, [one]
            case Pointwise(op, (one, other)) if op in _SUMS | _PRODUCTS | {_SHIFT}:
                return op, [one, other]
            case _:
                return None

    def _read(self, tensor: TensorView) -> list[TensorView]:
        found = self._grows(tensor)
        operands = found[1] if found else []
        return [t for t in operands if t.dtype is DType.I64]

    def of(self, tensor: TensorView) -> frozenset[int]:
        """Return with which carried numbers ``tensor`` grows, by their slots."""
        for t in in_order(tensor, self._read, self._found):
            parts = [self._found[x] for x in self._read(t)]
            self._found[t] = frozenset().union(*parts)
        return self._found[tensor]

    def is_multiplied(
        self, tensor: TensorView, slots: Set[int], ranges: Ranges
    ) -> bool:
        """Tell whether ``tensor`` is a multiple of one of these, or a sum of them."""
        seen: set[TensorView] = set()
        for t in in_order(tensor, self._read, seen):
            seen.add(t)
            found = self._grows(t)
            if found is None or len(found[1]) != 2 or found[0] is _CHOICE:
                continue
            op, operands = found
            own = [bool(self.of(x) & slots) for x in operands]
            if all(own) if op in _SUMS else any(own):
                others = [
                    x for x, is_own in zip(operands, own, strict=True) if not is_own
                ]
                if not (others and all(_is_sign(ranges, x) for x in others)):
                    return True
        return False

    def as_float(self, b: Builder, tensor: TensorView) -> TensorView:
        """Write ``tensor`` once more, in floats, which are as large as need be."""
        made: dict[TensorView, TensorView] = {}
        for t in in_order(tensor, self._read, made):
            found = self._grows(t)
            if found is None or not self.of(t) or t.dtype is not DType.I64:
                made[t] = b.cast(t, DType.F64)
                continue
            op, operands = found
            parts = [made.get(x) or b.cast(x, DType.F64) for x in operands]
            if op is _SHIFT:
                two = b.constant(2.0, DType.F64)
                parts = [parts[0], b.point("power", two, parts[1])]
                op = POINT_OPS["multiply"]
            if op is _CHOICE:
                expr = self._definition[t]
                assert isinstance(expr, Pointwise)
                parts = [expr.operands[0], *parts]
            made[t] = (
                parts[0]
                if len(operands) == 1 and op not in _SIGNS
                else (b.point(op.name, *parts))
            )
        return made[tensor]


def _is_sign(ranges: Ranges, x: TensorView) -> bool:
    """Tell whether a number is 1, 0 or -1, so that a product is no larger."""
    match ranges.of(x):
        case (sc.Const(low), sc.Const(high)):
            return low >= -1 and high <= 1
        case _:
            return False
