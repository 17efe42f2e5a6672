# SPDX-License-Identifier: Apache-2.0
"""Drop what loops carry, add and read, where no output needs it."""

from __future__ import annotations

from dataclasses import replace

from nfuser.compiler.ir.expr import Expr, Loop, results
from nfuser.compiler.ir.fusion import Fusion, Replacement, live_exprs, rebuild
from nfuser.compiler.rewrite.dead_code import drop_dead_code


def drop_unread_of_loops(fusion: Fusion) -> Fusion:
    """Leave out of each loop the values that serve nothing but themselves.

    A loop that may fail is left with one of them at least.
    """
    fusion = drop_dead_code(fusion)
    outputs = set(fusion.outputs)

    def changed(expr: Expr) -> Replacement | None:
        if not isinstance(expr, Loop):
            return None
        read = {
            k for k, t in enumerate(expr.results) if t in outputs or fusion.users.get(t)
        }
        return _without_the_rest(expr, read)

    return rebuild(fusion, changed)


def _without_the_rest(loop: Loop, read: set[int]) -> Replacement | None:
    """Return ``loop`` without results that nobody reads, if there are such."""
    kept = _needed(loop, read)
    body, count = loop.body, len(loop.operands)
    outputs = [body.outputs[k] for k in kept]
    failing = [results(e)[0] for e in body.failing]
    live = set(live_exprs([*outputs, *failing], body.definition))
    carried = [k for k in kept if k < loop.carried]
    slots = [
        a.slot
        for a in body.arguments
        if a.slot in carried or (a.slot >= loop.carried and a in live)
    ]
    if len(kept) == len(loop.results) and len(slots) == len(body.arguments):
        return None
    operands = tuple(loop.operands[k] for k in slots if k < count)
    place = {slot: number for number, slot in enumerate(slots)}
    arguments = [
        replace(a, slot=place[a.slot]) for a in body.arguments if a.slot in place
    ]
    own = [e for e in body.exprs if e in live and e not in body.arguments]
    flag = None if loop.flag is None else carried.index(loop.flag)
    made = Loop(
        operands,
        Fusion(body.name, [*arguments, *own], outputs),
        tuple(loop.results[k] for k in kept),
        len(carried),
        loop.trips,
        flag,
        loop.backwards,
    )
    return Replacement((made,), loop.results)


def _needed(loop: Loop, read: set[int]) -> list[int]:
    """Return the results that are read, or that those in an iteration need."""
    found = set(read) | (set[int]() if loop.flag is None else {loop.flag})
    body = loop.body
    failing = [results(e)[0] for e in body.failing]
    if failing:
        found = found or {0}
    while True:
        outputs = [body.outputs[k] for k in sorted(found)]
        live = live_exprs([*outputs, *failing], body.definition)
        more = found | {a.slot for a in body.arguments if a in live}
        more &= set(range(loop.carried)) | found
        if more == found:
            return sorted(found)
        found = more
