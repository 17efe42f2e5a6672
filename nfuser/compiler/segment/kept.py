# SPDX-License-Identifier: Apache-2.0
"""A segmentation as plain numbers and names, which outlive the process.

Tensors and expressions are numbered as the fusion has them, once its sums both ways
come in parts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from nfuser.compiler.ir.expr import Argument, Reduce
from nfuser.compiler.ir.fusion import Fusion
from nfuser.compiler.segment.both_ways import in_parts
from nfuser.compiler.segment.segment import numbered
from nfuser.compiler.segment.segmented import Cut, Rejection, Segment, Segmented

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.segment.segmented import KnownScheduler

# An expression of the fusion, or the slot of a tensor that another piece leaves.
_Body: TypeAlias = "tuple[int | tuple[int, int], ...]"
_Piece: TypeAlias = "tuple[str, tuple[int, ...], _Body | None]"
_Reason: TypeAlias = "tuple[str, str, int | None, bool]"
_Cut: TypeAlias = "tuple[int, tuple[_Reason, ...]]"
# The last numbers are the expressions of the given fusion that come in parts.
KeptSegments: TypeAlias = "tuple[tuple[_Piece, ...], tuple[_Cut, ...], tuple[int, ...]]"


def to_numbers(segmented: Segmented) -> KeptSegments:
    """Return what ``from_numbers`` makes the same pieces of, given an equal fusion."""
    fusion = segmented.fusion
    tensors = {t: k for k, t in enumerate(fusion.definition)}
    exprs: dict[Expr, int] = {e: k for k, e in enumerate(fusion.exprs)}

    def numbered_expr(expr: Expr) -> int | tuple[int, int]:
        if isinstance(expr, Argument):
            return expr.slot, tensors[expr.result]
        return exprs[expr]

    def reason(r: Rejection) -> _Reason:
        about = None if r.tensor is None else tensors.get(r.tensor)
        return r.scheduler, r.reason, about, r.is_other

    pieces: list[_Piece] = []
    for piece in segmented.segments:
        outputs = tuple(tensors[t] for t in piece.fusion.outputs)
        is_whole = piece.fusion is fusion
        body = None if is_whole else tuple(map(numbered_expr, piece.fusion.exprs))
        pieces.append((piece.scheduler.name, outputs, body))
    cuts = ((tensors[c.tensor], tuple(map(reason, c.reasons))) for c in segmented.cuts)
    parts = (exprs[p] - k for k, p in enumerate(fusion.partial_sums))
    return tuple(pieces), tuple(cuts), tuple(parts)


def from_numbers(
    fusion: Fusion, kept: KeptSegments, schedulers: Mapping[str, KnownScheduler]
) -> Segmented:
    """Return ``fusion`` in the pieces that ``kept`` tells of."""
    pieces, cuts, parts = kept
    across = [fusion.exprs[k] for k in parts]
    if across:
        fusion = in_parts(fusion, [r for r in across if isinstance(r, Reduce)])
    tensors = tuple(fusion.definition)

    def expr(found: int | tuple[int, int]) -> Expr:
        if isinstance(found, int):
            return fusion.exprs[found]
        slot, tensor = found[0], tensors[found[1]]
        given = fusion.definition[tensor]
        if isinstance(given, Argument):
            return replace(given, slot=slot)
        return Argument(slot, tensor)

    segments: list[Segment] = []
    for name, outputs, body in pieces:
        made = fusion
        if body is not None:
            made = Fusion(fusion.name, list(map(expr, body)), _all(tensors, outputs))
        inputs = tuple(a.result for a in made.arguments)
        segments.append(Segment(made, inputs, schedulers[name]))
    return Segmented(
        fusion,
        tuple(numbered(segments)),
        tuple(Cut(tensors[t], _reasons(tensors, found)) for t, found in cuts),
    )


def _all(tensors: Sequence[TensorView], found: Sequence[int]) -> list[TensorView]:
    return [tensors[k] for k in found]


def _reasons(
    tensors: Sequence[TensorView], found: Sequence[_Reason]
) -> tuple[Rejection, ...]:
    return tuple(
        Rejection(who, why, None if about is None else tensors[about], is_other)
        for who, why, about, is_other in found
    )
