# SPDX-License-Identifier: Apache-2.0
"""Where a value lies, and how it comes there; what is not placed is inline."""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from nfuser.compiler.ir.base import value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from nfuser.compiler.domains.maps import Read
    from nfuser.compiler.ir.tensor import TensorView


class Where(Enum):
    """A memory, by who shares it."""

    REGISTERS = "in registers"  # a GPU thread's own
    STACK = "on the stack"  # a CPU thread's own, in the cache next to it
    SHARED = "in shared memory"  # one for each block of threads
    GLOBAL = "in global memory"  # one for all blocks: parts of a row pass through it


class Route(Enum):
    """How a value comes to where it lies."""

    MADE = ""  # by the thread that computes or reads it
    ADDED = "added up"  # across the rows that a thread goes through after each other
    LAID = "laid down"  # before anything reads it, in the order in which it is read
    COPIED = "copied"  # as it is stored, by asynchronous copies
    AHEAD = "copied ahead"  # the same, of the next row while this one is worked on
    TURNS = "copied ahead in turn"  # the same, to two places, of which one is read


@value
class Placement:
    """Where a value lies between the passes that read it.

    What is copied ahead passes through shared memory, wherever it lies afterwards.
    """

    where: Where
    route: Route = Route.MADE

    @property
    def is_kept(self) -> bool:
        """Whether one pass over a row leaves it for a later one, with its thread."""
        if self.route in (Route.LAID, Route.ADDED):
            return False
        is_own = self.where in (Where.REGISTERS, Where.STACK)
        return is_own or self.route is Route.COPIED

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.where.value, self.route.value)))


Placements: TypeAlias = "Mapping[Read, Placement]"


@value
class LeftOut:
    """A placement that would have gained, and what there was not enough of for it."""

    tensor: TensorView
    placement: Placement
    reason: str


def described(
    placements: Placements,
    left_out: Iterable[LeftOut],
    name: Callable[[TensorView], str],
) -> list[str]:
    """Return a line for each placement with what lies so, by its ``name``."""
    found: dict[Placement, Counter[TensorView]] = {}
    for (tensor, _), placement in placements.items():
        found.setdefault(placement, Counter())[tensor] += 1
    lines: list[str] = []
    for placement, tensors in found.items():
        named = (
            f"{name(tensor)} at {count} points" if count > 1 else name(tensor)
            for tensor, count in tensors.items()
        )
        lines.append(f"{placement}: {', '.join(named)}")
    return lines + [
        f"left out: {name(x.tensor)} {x.placement}: {x.reason}" for x in left_out
    ]
