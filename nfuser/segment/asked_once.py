# SPDX-License-Identifier: Apache-2.0
"""Ask schedulers once of what is said several times: steps of a loop, mostly."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.ir.identity import structure

if TYPE_CHECKING:
    from nfuser.ir.fusion import Fusion
    from nfuser.ir.identity import Structure
    from nfuser.segment.segmented import FindScheduler, KnownScheduler, Rejection


def asked_once(find: FindScheduler) -> FindScheduler:
    """Return ``find`` with a memory: equal fusions get equal answers."""
    known: dict[Structure, tuple[Fusion, KnownScheduler | tuple[Rejection, ...]]] = {}

    def found(fusion: Fusion) -> KnownScheduler | tuple[Rejection, ...]:
        key = structure(fusion)
        if key not in known:
            known[key] = fusion, find(fusion)
        first, answer = known[key]
        if first is fusion or not isinstance(answer, tuple):
            return answer
        same = dict(zip(first.definition, fusion.definition, strict=True))
        return tuple(
            r if r.tensor is None else replace(r, tensor=same.get(r.tensor, r.tensor))
            for r in answer
        )

    return found
