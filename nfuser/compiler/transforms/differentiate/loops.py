# SPDX-License-Identifier: Apache-2.0
"""Derivatives of loops, which are loops.

Forwards, tangents are carried beside what they are tangents of. Backwards, the loop
runs once more and keeps what it carries before each turn; then the turns run from the
last one back, each pulling the cotangents of what it carried through the body.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import nfuser.compiler.ops as ops
import nfuser.compiler.ops.loops.loop as verb
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import (
    Argument,
    Loop,
    Pointwise,
    results,
    sources,
)
from nfuser.compiler.ir.fusion import with_results, with_sources
from nfuser.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops import Builder

    Pull = Callable[..., list[TensorView | None]]
    Tangents = Sequence[TensorView | None]


def has_derivative(t: TensorView) -> bool:
    """Tell whether values like ``t`` have a cotangent."""
    return t.dtype.is_float or t.dtype.is_complex


def chosen(b: Builder, expr: Loop) -> list[TensorView]:
    """Return what a choice gives, written as a selection of what both sides give."""
    flag = expr.operands[expr.flag or 0]
    after = _written(b, expr, expr.operands, b.constant(0, DType.I64))
    pairs = zip(after, expr.operands, strict=False)
    return [b.point("select", flag, new, old) for new, old in pairs]


def pushed(b: Builder, expr: Loop, ts: Tangents, push: Pull) -> list[TensorView | None]:
    """Return the tangents of what a loop leaves, of those of its operands."""
    own = [k for k, t in enumerate(expr.operands[: expr.carried]) if has_derivative(t)]
    begun = [_or_zeros(b, ts[k], expr.operands[k]) for k in own]
    count = expr.carried
    with verb.recorded(b, [*expr.operands[:count], *begun]) as body:
        given = [*body.parameters[:count], *expr.operands[count:]]
        given = [b.twin(t) for t in given]
        outputs = _written(b, expr, given, body.turn)
        pairs = list(zip((given[k] for k in own), body.parameters[count:], strict=True))
        rest = zip(given[count:], ts[count:], strict=True)
        pairs += [(t, tangent) for t, tangent in rest if tangent is not None]
        found = push(b, pairs, outputs)
        tangents = [
            _or_zeros(b, t, like) if has_derivative(like) else None
            for t, like in zip(found, outputs, strict=True)
        ]
        carried = [t for k in own if (t := tangents[k]) is not None]
        added = [t for t in tangents[count:] if t is not None]
    closed = body.close([*outputs[:count], *carried, *added])
    made = verb.loop(
        b,
        [*expr.operands[:count], *begun],
        closed,
        expr.trips,
        flag=expr.flag,
        backwards=expr.backwards,
    )
    rest_ = iter(made[count:])
    return [next(rest_) if has_derivative(t) else None for t in expr.results]


def pulled(b: Builder, expr: Loop, ts: Tangents, pull: Pull) -> list[TensorView | None]:
    """Return the cotangents of the operands of a loop, of those of its results."""
    trips = expr.trips
    if trips is None or expr.flag is not None:
        message = (
            "write nfuser.lax.fori_loop with a bound, and where(done, x, step(x)) in "
            "its body: the way back takes the turns from the last one on, and how many "
            "this loop takes is known at its end only"
        )
        raise UnsupportedError(message)
    count = expr.carried
    stacks = _stacks(b, expr)
    flows = [k for k, t in enumerate(expr.operands) if has_derivative(t)]
    begun = [
        _or_zeros(b, ts[k] if k < count else None, expr.operands[k]) for k in flows
    ]
    added = [_or_zeros(b, t, like) for t, like in _added(expr, ts)]
    with verb.recorded(b, begun) as body:
        turn = b.point("subtract", b.from_scalar(trips - 1, DType.I64), body.turn)
        place = body.turn if expr.backwards else turn
        rows = [ops.take_inside(b, stack, place) for stack in stacks]
        given = [b.twin(t) for t in (*rows, *expr.operands[count:])]
        outputs = _written(b, expr, given, turn)
        mine = dict(zip(flows, body.parameters, strict=True))
        cotangents = [(outputs[k], mine[k]) for k in flows if k < count]
        below = (t for t in outputs[count:] if has_derivative(t))
        cotangents += [
            (t, ops.take_inside(b, whole, place))
            for t, whole in zip(below, added, strict=True)
        ]
        found = pull(b, cotangents, [given[k] for k in flows])
        last = [
            _together(b, t, mine[k], is_carried=k < count)
            for k, t in zip(flows, found, strict=True)
        ]
    made = verb.loop(b, begun, body.close(last), trips)
    left = dict(zip(flows, made, strict=True))
    return [left.get(k) for k in range(len(expr.operands))]


def _added(expr: Loop, ts: Tangents) -> list[tuple[TensorView | None, TensorView]]:
    pairs = zip(ts, expr.results, strict=True)
    return [pair for pair in list(pairs)[expr.carried :] if has_derivative(pair[1])]


def _stacks(b: Builder, expr: Loop) -> list[TensorView]:
    """Return what is carried before each turn, one below the other."""
    count = expr.carried
    begun = expr.operands[:count]
    with verb.recorded(b, begun) as body:
        before = [b.point("copy", t) for t in body.parameters]
        given = [*body.parameters, *expr.operands[count:]]
        outputs = _written(b, expr, given, body.turn)
    closed = body.close([*outputs[:count], *before])
    made = verb.loop(b, begun, closed, expr.trips, backwards=expr.backwards)
    return list(made[count:])


def _or_zeros(b: Builder, t: TensorView | None, like: TensorView) -> TensorView:
    if t is None:
        return ops.full(b, like.shape, 0, like.dtype)
    return ops.broadcast_to(b, t, like.shape)


def _together(
    b: Builder, t: TensorView | None, before: TensorView, *, is_carried: bool
) -> TensorView:
    """Return the cotangent that goes on: that of what is read adds up."""
    if is_carried:
        return _or_zeros(b, t, before)
    return before if t is None else b.point("add", before, _or_zeros(b, t, before))


def _written(
    b: Builder, expr: Loop, given: Sequence[TensorView], turn: TensorView
) -> list[TensorView]:
    """Write the body down once more, for other values; return its outputs."""
    names: dict[TensorView, TensorView] = {}
    for argument in expr.body.arguments:
        is_turn = argument.slot == len(expr.operands)
        names[argument.result] = turn if is_turn else given[argument.slot]
    _again(b, expr.body.exprs, names)
    return [names[t] for t in expr.body.outputs]


def _again(
    b: Builder, exprs: Sequence[Expr], names: dict[TensorView, TensorView]
) -> None:
    """Write expressions under new names, with all that derivatives know of them."""
    for expr in exprs:
        if isinstance(expr, Argument):
            continue
        own = results(expr)
        if own[0] in b.customs:
            message = (
                "take a function of nfuser.custom_vjp out of the loop, or unroll the "
                "loop: what is called in each turn has the way back of its expressions"
            )
            raise UnsupportedError(message)
        made = [replace(t) for t in own]
        reads = [names.get(t, t) for t in sources(expr)]
        b.emit(with_results(with_sources(expr, reads), made))
        names.update(zip(own, made, strict=True))
        for old, new in zip(own, made, strict=True):
            if old in b.stopped:
                b.stopped.add(new)
            meant = b.meant.get(old)
            if isinstance(meant, Pointwise):
                operands = tuple(names.get(t, t) for t in meant.operands)
                b.meant[new] = Pointwise(meant.op, operands, new)
            elif meant is not None:
                b.meant[new] = _meant(b, meant, names)


def _meant(
    b: Builder,
    meant: Callable[[], TensorView],
    names: dict[TensorView, TensorView],
) -> Callable[[], TensorView]:
    def again() -> TensorView:
        begin = len(b.exprs)
        other = meant()
        own = b.exprs[begin:]
        del b.exprs[begin:]
        inner = dict(names)
        _again(b, own, inner)
        return inner[other]

    return again
