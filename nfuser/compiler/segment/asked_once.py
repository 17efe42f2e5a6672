# SPDX-License-Identifier: Apache-2.0
"""Ask schedulers once of what is said several times.

Steps of a loop say the same, and so does what a new concretization of a function leaves
as it was.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from nfuser.compiler.ir.identity import Likeness

if TYPE_CHECKING:
    from collections.abc import Hashable

    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.segment.segmented import (
        FindScheduler,
        KnownScheduler,
        Rejection,
    )

MOST = 1 << 15  # expressions of the fusions that are remembered, some 20 MB


class _No(NamedTuple):
    """A rejection, and the place of its tensor among all that a fusion defines."""

    rejection: Rejection
    place: int | None


def asked_once(find: FindScheduler, *, one_program: bool = False) -> FindScheduler:
    """Return ``find`` with a memory: equal fusions get equal answers.

    It holds no fusion and no tensor, but for one that is asked of ``one_program``. What
    it remembers is forgotten whole where it gets too much, as a program that is asked
    of again is asked of from its beginning.
    """
    known: dict[Hashable, KnownScheduler | tuple[_No, ...]] = {}
    likeness = Likeness() if one_program else None
    held = 0

    def found(fusion: Fusion) -> KnownScheduler | tuple[Rejection, ...]:
        nonlocal held
        key = (likeness or Likeness()).key(fusion)
        answer = known.get(key)
        if answer is None:
            told = find(fusion)
            held += len(fusion.exprs)
            if held > MOST:
                known.clear()
                held = len(fusion.exprs)
            known[key] = _by_places(told, fusion) if isinstance(told, tuple) else told
            return told
        if not isinstance(answer, tuple):
            return answer
        tensors = list(fusion.definition)
        return tuple(
            no if place is None else replace(no, tensor=tensors[place])
            for no, place in answer
        )

    return found


def _by_places(told: tuple[Rejection, ...], fusion: Fusion) -> tuple[_No, ...]:
    places = {tensor: k for k, tensor in enumerate(fusion.definition)}
    return tuple(
        _No(replace(no, tensor=None), places[no.tensor])
        if no.tensor in places
        else _No(no, None)
        for no in told
    )
