# SPDX-License-Identifier: Apache-2.0
"""Where ranks that hold parts of tensors make a fusion be cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.segment.segmented import Cut, Rejection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.segment.segmented import Segment, ShouldMerge
    from nfuser.compiler.segment.sharding import Layout
    from nfuser.compiler.segment.sharding_propagation import PropagatedShardings


def within(
    spread: PropagatedShardings, should_merge: ShouldMerge | None
) -> ShouldMerge:
    """Return what lets groups share a kernel where ``spread`` and the caller do."""

    def is_allowed(first: Sequence[Expr], second: Sequence[Expr]) -> bool:
        if should_merge is not None and not should_merge(first, second):
            return False
        return spread.may_share((*first, *second))

    return is_allowed


def changes(
    spread: PropagatedShardings, segments: Sequence[Segment]
) -> dict[TensorView, Cut]:
    """Return the cuts at tensors that come out in another way than they are read."""
    found: dict[TensorView, Cut] = {}
    made = {t for s in segments for t in s.fusion.outputs}
    for segment in segments:
        for tensor, layout in (spread.read_by(segment.fusion.exprs) or {}).items():
            gives = spread.gives[tensor]
            if tensor in made and layout != gives:
                reason = f"{_spelled(gives)} is read as {_spelled(layout)}"
                found[tensor] = Cut(tensor, (Rejection("sharding", reason, tensor),))
    return found


def _spelled(layout: Layout) -> str:
    return " x ".join(map(str, layout))
