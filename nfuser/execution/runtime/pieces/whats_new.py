# SPDX-License-Identifier: Apache-2.0
"""What is new about a call for which something is concretized or scheduled anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.concretize import whats_new

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nfuser.compiler.concretize import Questions
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.schedule.heuristics.heuristics import Heuristic
    from nfuser.execution.runtime.kernel_runtime import FusionKernelRuntime
    from nfuser.execution.runtime.pieces.concretized import Concretization
    from nfuser.execution.runtime.place import Place


def why_concretized(
    fusion: Fusion,
    questions: Questions,
    found: Concretization,
    known: Iterable[Concretization],
) -> str:
    """Say which answers of a call none of ``known`` has."""
    answers = found.concrete.answers
    others = [c.concrete.answers for c in known if c.concrete.answers != answers]
    new = whats_new(fusion, questions, answers, others)
    return f"a new concretization: {new}" if new else "a new concretization"


def why_scheduled(
    made: FusionKernelRuntime, place: Place, known: Iterable[FusionKernelRuntime]
) -> str:
    """Say which heuristics none of ``known`` has; "" if these are of other pieces."""
    before = [r.heuristics for r in known if r.segmented is made.segmented]
    if not before:
        return ""
    pairs = [_changed(made.heuristics, other) for other in before]
    if not all(pairs):
        return f"kernels for another place: {place.backend} on {place.device}"
    texts = [f"{new}, before {old}" for new, old in min(pairs, key=len)]
    return f"a new heuristic: {'; '.join(texts)}"


def _changed(
    new: Sequence[Heuristic], old: Sequence[Heuristic]
) -> list[tuple[Heuristic, Heuristic]]:
    pairs = zip(new, old, strict=True)
    return [(a, b) for a, b in pairs if a != b]
