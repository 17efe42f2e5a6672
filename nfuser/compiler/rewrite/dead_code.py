# SPDX-License-Identifier: Apache-2.0
"""Drop what no output needs, and what cannot fail."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.compiler.ir.expr import Argument, Expr, Loop, sources
from nfuser.compiler.ir.fusion import Fusion, live_exprs

if TYPE_CHECKING:
    from nfuser.compiler.ir.tensor import TensorView


def drop_dead_code(fusion: Fusion) -> Fusion:
    """Keep the arguments and what the outputs are computed from, in program order.

    What may fail as it runs is kept, too, with what it is computed from.
    What turns of a loop add to a result that nobody reads is not kept either.
    """
    live = set(live_exprs(fusion.roots, fusion.definition))
    kept = [e for e in fusion.exprs if e in live or isinstance(e, Argument)]
    if fusion.loops:
        read = {t for e in kept for t in sources(e)}.union(fusion.outputs)
        kept = [_with_rows_read(e, read) for e in kept]
    if kept == list(fusion.exprs):
        return fusion
    return Fusion(fusion.name, kept, fusion.outputs)


def _with_rows_read(expr: Expr, read: set[TensorView]) -> Expr:
    """Return a loop that adds nothing but what is ``read``."""
    if not isinstance(expr, Loop):
        return expr
    rows = enumerate(expr.results)
    wanted = [k for k, t in rows if k < expr.carried or t in read]
    if len(wanted) == len(expr.results) or not wanted:
        return expr
    body = expr.body
    less = Fusion(body.name, body.exprs, [body.outputs[k] for k in wanted])
    results = tuple(expr.results[k] for k in wanted)
    return replace(expr, body=drop_dead_code(less), results=results)
