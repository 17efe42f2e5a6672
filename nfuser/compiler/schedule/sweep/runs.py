# SPDX-License-Identifier: Apache-2.0
"""Put pieces together that one kernel runs row by row, though each has its own loop.

A run of pieces from one loop to another is a chain if its scheduler says so. Arrays
that begin with anything, and that nothing outside of the run reads, go with it: their
assignments are its own, and nobody makes them. Values that are assigned to other arrays
are stored there as before.
"""

from __future__ import annotations

from dataclasses import replace
from operator import is_
from typing import TYPE_CHECKING

from nfuser.compiler.domains.unset import is_unset
from nfuser.compiler.ir.expr import Assign, Expr, Pointwise, results, sources
from nfuser.compiler.ir.fusion import Fusion, live_exprs, with_results
from nfuser.compiler.ir.point_op import is_copy
from nfuser.compiler.segment.computed_again import is_free
from nfuser.compiler.segment.segmented import IN_PLACE, Segment, Segmented, piece_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.segment.segmented import KnownScheduler

MOST_LOOPS = 8  # of one program, of which runs are looked at
SWEEP = "sweep"  # the scheduler of loops in kernels
LINKS = (SWEEP, "pointwise", IN_PLACE)  # those of what may be in a run


def chained(segmented: Segmented, chains: KnownScheduler) -> Segmented:
    """Return ``segmented`` with each run of pieces as one where ``chains`` takes it.

    It is the same one where there is none.
    """
    pieces = [
        piece
        if piece.body is None or (body := chained(piece.body, chains)) is piece.body
        else replace(piece, body=body)
        for piece in segmented.segments
    ]
    found = _Runs(segmented.fusion, pieces, chains).joined()
    if len(found) == len(pieces) and all(map(is_, found, segmented.segments)):
        return segmented
    held = [set(piece.fusion.definition) for piece in found]
    cuts = (c for c in segmented.cuts if sum(c.tensor in own for own in held) > 1)
    return replace(segmented, segments=tuple(found), cuts=tuple(cuts))


class _Runs:
    def __init__(
        self, fusion: Fusion, pieces: list[Segment], chains: KnownScheduler
    ) -> None:
        self._fusion, self._pieces, self._chains = fusion, pieces, chains
        self._order = {e: k for k, e in enumerate(fusion.exprs)}

    def joined(self) -> list[Segment]:
        """Return the pieces, each run as one: the longest from each loop on."""
        pieces = self._pieces
        loops = [k for k, piece in enumerate(pieces) if piece.scheduler.name == SWEEP]
        if not 1 < len(loops) <= MOST_LOOPS:
            return pieces
        begun = [k for k in range(loops[-1]) if _unset(pieces[k])]
        for first in reversed(loops):  # what lies behind keeps its place
            for last in reversed([k for k in loops if k > first]):
                before = [k for k in begun if k < first]
                if before and self._join(first, last, before):
                    return self._again()
        return pieces

    def _again(self) -> list[Segment]:
        return _Runs(self._fusion, self._pieces, self._chains).joined()

    def _join(self, first: int, last: int, begun: list[int]) -> bool:
        """Put a run in the place of its pieces, if it is a chain."""
        end = last + 1
        pieces = self._pieces
        while end < len(pieces) and pieces[end].scheduler.name == IN_PLACE:
            end += 1
        run = pieces[first:end]
        own = {e for p in run for e in p.fusion.exprs if e in self._order}
        arrays = {t for piece in pieces for t in _unset(piece)}
        again = any(not arrays.isdisjoint(results(e)) for e in own)
        if again or any(piece.scheduler.name not in LINKS for piece in run):
            return False
        bases = {
            k: [t for t in pieces[k].fusion.outputs if self._is_private(t, own)]
            for k in begun
        }
        private = self._assigned(t for found in bases.values() for t in found)
        left = [p for p in run if _is_left(p, private)]
        stored = (t for p in run if p.is_kernel for t in p.fusion.outputs)
        outputs = [t for t in stored if self._is_seen(t, own, private)]
        if not private or not outputs:
            return False
        exprs = sorted((e for e in own if not is_free(e)), key=self._order.__getitem__)
        begin = [e for k in begun for t in bases[k] for e in self._beginning(t, k)]
        made = piece_of(self._fusion, [*dict.fromkeys(begin), *exprs], outputs)
        made = Fusion(run[0].fusion.name, made.exprs, outputs)
        if self._chains.can_schedule(made) is not None:
            return False
        inputs = tuple(a.result for a in made.arguments)
        kept = [_without(p, bases.get(k, ())) for k, p in enumerate(pieces[:first])]
        chain = Segment(made, inputs, self._chains)
        self._pieces = [*(p for p in kept if p), chain, *left, *pieces[end:]]
        return True

    def _beginning(self, tensor: TensorView, piece: int) -> list[Expr]:
        """Return what makes an array of its own, and not of one made beside it."""
        beside = self._pieces[piece].fusion.outputs
        definition = self._fusion.definition
        expr = definition[tensor]
        while isinstance(expr, Pointwise) and is_copy(expr.op):
            (source,) = expr.operands
            if source not in beside:
                break
            expr = with_results(definition[source], (tensor,))
        before = live_exprs(sources(expr), definition)
        return [*(e for e in before if not is_free(e)), expr]

    def _assigned(self, arrays: Iterable[TensorView]) -> set[TensorView]:
        """Return ``arrays``, and what assignments make of them."""
        found = set(arrays)
        for assign in self._fusion.assignments:
            if assign.source in found:
                found.add(assign.result)
        return found

    def _is_private(self, base: TensorView, own: set[Expr]) -> bool:
        """Tell whether an array is there for ``own`` expressions alone."""
        found = self._assigned([base])
        users = self._fusion.users
        readers = [e for t in found for e in users[t] if not self._begins(e)]
        inside = all(e in own for e in readers)
        return bool(readers) and inside and found.isdisjoint(self._fusion.outputs)

    def _begins(self, expr: Expr) -> bool:
        """Tell whether ``expr`` begins another array, which may be anything as well."""
        return any(expr in p.fusion.exprs for p in self._pieces if _unset(p))

    def _is_seen(
        self, tensor: TensorView, own: set[Expr], private: set[TensorView]
    ) -> bool:
        """Tell whether anything but the run itself has ``tensor``."""
        users = self._fusion.users[tensor]
        outside = any(e not in own for e in users) or tensor in self._fusion.outputs
        return outside or any(
            isinstance(e, Assign) and e.source not in private for e in users
        )


def _unset(piece: Segment) -> tuple[TensorView, ...]:
    """Return what ``piece`` leaves, if that may be anything."""
    is_any = piece.is_kernel and is_unset(piece.fusion)
    return tuple(piece.fusion.outputs) if is_any else ()


def _is_left(piece: Segment, private: set[TensorView]) -> bool:
    """Tell whether ``piece`` is an assignment that others see."""
    made = {t for e in piece.fusion.assignments for t in results(e)}
    return piece.scheduler.name == IN_PLACE and private.isdisjoint(made)


def _without(piece: Segment, bases: Iterable[TensorView]) -> Segment | None:
    """Return ``piece`` without some of what it leaves; None if that is all."""
    gone = set(bases)
    if not gone:
        return piece
    outputs = [t for t in piece.fusion.outputs if t not in gone]
    if not outputs:
        return None
    needed = set(live_exprs(outputs, piece.fusion.definition))
    exprs = [e for e in piece.fusion.exprs if e in needed]
    made = Fusion(piece.fusion.name, exprs, outputs)
    return replace(piece, fusion=made, inputs=tuple(a.result for a in made.arguments))
