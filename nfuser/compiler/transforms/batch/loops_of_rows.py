# SPDX-License-Identifier: Apache-2.0
"""The rule of loops: all rows run together, as long as one of them goes on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import nfuser.compiler.ops as ops
import nfuser.compiler.ops.loops.loop as verb
from nfuser.compiler.ir.expr import Argument, results, sources
from nfuser.compiler.ir.fusion import with_results, with_sources
from nfuser.compiler.transforms.batch.stacks import Stacks
from nfuser.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from nfuser.compiler.ir.expr import Called, Expr, Loop
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops import Builder

    Step = Callable[[Stacks, Expr], Sequence[TensorView]]


def of_loop(rows: Stacks, expr: Loop, step: Step) -> list[TensorView]:
    """Return all rows of what a loop leaves.

    ``step`` raises an expression of the body. Where each row has an end of its own, a
    row that has come to it keeps what it carries.
    """
    b = rows.b
    differing = _differing(rows, expr)
    if expr.flag in differing and len(expr.results) > expr.carried:
        message = (
            "write a loop that gives the values of its last turn: one that adds an "
            "element each turn cannot end at another turn in each row of nfuser.vmap"
        )
        raise UnsupportedError(message)
    carried = [
        rows.all(t) if k in differing else rows.plain(t)
        for k, t in enumerate(expr.operands[: expr.carried])
    ]
    ends = expr.flag if expr.flag in differing else None  # of each row
    begun = carried if ends is None else [*carried, ops.any(b, carried[ends])]
    with verb.recorded(b, begun) as body:
        outputs, added = _body(rows, expr, body, differing, step)
        if ends is not None:
            outputs.append(ops.any(b, outputs[ends]))
    flag = expr.flag if ends is None else len(carried)
    closed = body.close([*outputs, *added])
    made = verb.loop(b, begun, closed, expr.trips, flag=flag, backwards=expr.backwards)
    last = [_left(rows, *pair) for pair in zip(made, expr.results, strict=False)]
    return [*last[: expr.carried], *_added(rows, made[len(begun) :], expr)]


def of_look(rows: Stacks, expr: Called) -> TensorView:
    """Return all rows of a number that is looked at, of those that run.

    A row that has come to its end keeps what it was given. What is told of numbers
    beside is the same in each row.
    """
    b, (x, *told) = rows.b, expr.operands
    whole = looked = rows.all(x)
    if rows.goes is not None:
        zero = b.constant(0.0 if x.dtype.is_float else 0, x.dtype)  # which is right
        where = ops.expand_dims(b, rows.goes, tuple(range(1, whole.ndim)))
        looked = b.point("select", where, whole, zero)
    made = b.new(whole.shape, x.dtype)
    made = replace(made, source=expr.result.source)
    operands = (looked, *map(rows.plain, told))
    b.emit(replace(expr, operands=operands, results=(made,)))
    return made


def _left(rows: Stacks, made: TensorView, own: TensorView) -> TensorView:
    """Return all rows of what was carried; it is stretched where it is the same."""
    if made.ndim > own.ndim:
        return made
    return ops.broadcast_to(rows.b, made, (rows.count, *made.shape))


def _added(
    rows: Stacks, made: Sequence[TensorView], expr: Loop
) -> Generator[TensorView]:
    """Give all rows of what iterations added, each to the front of the last."""
    for whole, own in zip(made, expr.results[expr.carried :], strict=True):
        turned = ops.moveaxis(rows.b, whole, 1, 0) if whole.ndim > own.ndim else whole
        yield _left(rows, turned, own)


def _body(
    rows: Stacks,
    expr: Loop,
    body: verb.Body,
    differing: set[int],
    step: Step,
) -> tuple[list[TensorView], list[TensorView]]:
    """Write the body of all rows; return what it carries on, and what it adds."""
    b = rows.b
    inner = Stacks(b, rows.count)
    before = body.parameters[: expr.carried]
    inner.goes = rows.goes
    if expr.flag is not None and expr.flag in differing:
        goes = before[expr.flag]
        inner.goes = goes if rows.goes is None else b.point("bit_and", goes, rows.goes)
    for argument, operand in _arguments(expr):
        if operand is None:
            inner.same[argument.result] = body.turn
        elif argument.slot < expr.carried:
            names = inner.held if argument.slot in differing else inner.same
            names[argument.result] = before[argument.slot]
        elif rows.differs(operand):
            inner.held[argument.result] = rows.all(operand)
        else:
            inner.same[argument.result] = rows.plain(operand)
    for own in expr.body.exprs:
        if isinstance(own, Argument):
            continue
        if any(map(inner.differs, sources(own))):
            made = step(inner, own)
            inner.held.update(zip(results(own), made, strict=True))
        else:
            _again(inner, own)
    after = expr.body.outputs
    outputs = [
        inner.all(t) if k in differing else inner.plain(t)
        for k, t in enumerate(after[: expr.carried])
    ]
    if expr.flag is not None and expr.flag in differing:
        goes = before[expr.flag]
        outputs = [_kept(b, goes, *pair) for pair in zip(outputs, before, strict=True)]
    added = [
        inner.all(t) if inner.differs(t) else inner.plain(t)
        for t in after[expr.carried :]
    ]
    return outputs, added


def _arguments(expr: Loop) -> list[tuple[Argument, TensorView | None]]:
    """Return each argument of the body with its operand; the counter has none."""
    count = len(expr.operands)
    return [
        (a, expr.operands[a.slot] if a.slot < count else None)
        for a in expr.body.arguments
    ]


def _again(inner: Stacks, expr: Expr) -> None:
    """Write down once more what is the same in each row."""
    made = tuple(replace(t) for t in results(expr))
    held = with_sources(expr, [inner.plain(t) for t in sources(expr)])
    inner.b.emit(with_results(held, made))
    inner.same.update(zip(results(expr), made, strict=True))


def _kept(
    b: Builder, goes: TensorView, after: TensorView, before: TensorView
) -> TensorView:
    """Return what rows carry on which go on; the others keep what they had."""
    rest = tuple(range(1, after.ndim))
    where = ops.expand_dims(b, goes, rest) if rest else goes
    return b.point("select", where, after, before)


def _differing(rows: Stacks, expr: Loop) -> set[int]:
    """Return which carried values differ from row to row, sooner or later."""
    count = len(expr.operands)
    found = {k for k, t in enumerate(expr.operands[: expr.carried]) if rows.differs(t)}
    given = [a for a in expr.body.arguments if a.slot < count]
    fixed = {
        a.result
        for a in given
        if a.slot >= expr.carried and rows.differs(expr.operands[a.slot])
    }
    while True:
        if expr.flag is not None and expr.flag in found:
            return set(range(expr.carried))
        spread = fixed | {a.result for a in given if a.slot in found}
        for own in expr.body.exprs:
            if any(t in spread for t in sources(own)):
                spread.update(results(own))
        outputs = expr.body.outputs[: expr.carried]
        more = found | {k for k, t in enumerate(outputs) if t in spread}
        if more == found:
            return found
        found = more
