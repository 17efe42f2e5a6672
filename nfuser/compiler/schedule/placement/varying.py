# SPDX-License-Identifier: Apache-2.0
"""What a value varies with: the steps along a row, the lanes, or neither.

That says where a kernel computes it: once for a row, once for each step, or in the
lane loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.domains.maps import data_of, datum_point, source_points
from nfuser.compiler.ir.base import value
from nfuser.compiler.ir.expr import (
    Argument,
    Concatenate,
    Constant,
    FromScalar,
    Iota,
    Pad,
    Reduce,
    Scan,
)
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.tensor import TensorView
from nfuser.compiler.ir.walk import toposort

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from nfuser.compiler.domains.maps import Read
    from nfuser.compiler.domains.space import Space
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.scalars.scalar import LoopIndex, Scalar
    from nfuser.compiler.schedule.nest import Nest


@value
class Within:
    """What a value belongs inside of: the tile of a row, the lane loop."""

    in_tile: bool
    in_lane: bool


class Varying:
    """Where the values of a fusion belong in a nest; each is worked out once."""

    def __init__(
        self,
        fusion: Fusion,
        space: Space,
        nest: Nest,
        strides: Mapping[TensorView, tuple[Scalar, ...]],
        held: Mapping[TensorView, bool] | None = None,
    ) -> None:
        """Look at a fusion; ``held`` are computed of nothing: a loop inside has them.

        They belong in its tile where they differ from turn to turn.
        """
        self.definition = fusion.definition
        self._held = held or {}
        self._strides = strides
        self._known: dict[Read, Within] = {}
        self._loops = {loop: _of_loop(loop, space, nest) for loop in space.loops}

    def place(self, key: Read) -> Within:
        """Return where the value of ``key`` belongs."""
        if key not in self._known:
            for item in toposort([key], self._unknown):
                self._known[item] = self._own(item)
        return self._known[key]

    def _unknown(self, key: Read) -> list[Read]:
        if key in self._known:
            return []
        return self.needs(key)

    def needs(self, key: Read) -> list[Read]:
        """Return the values that ``key`` is computed from, or found with."""
        tensor, point = key
        if tensor in self._held:
            return []
        found = source_points(self.definition[tensor], point)
        for chosen in data_of(point):
            assert isinstance(chosen.tensor, TensorView)
            found.append((chosen.tensor, datum_point(chosen, point)))
        return found

    def _own(self, key: Read) -> Within:
        tensor, point = key
        if tensor in self._held:
            in_lane = any(p.in_lane for p in self._of(point))
            return Within(self._held[tensor], in_lane)
        expr, inner = self.definition[tensor], self.needs(key)
        match expr:
            case Constant() | FromScalar():
                scalars: list[Scalar] = []
            case Argument():
                strides = self._strides.get(tensor, ())
                moving = (
                    [
                        p
                        for p, s in zip(point, strides, strict=True)
                        if s is not sc.const(0)
                    ]
                    if not expr.by_value
                    else []
                )
                scalars = [*moving, *point.guard]
            case Iota() | Reduce() | Scan():
                scalars = list(point)
            case Pad() | Concatenate():
                scalars = [c for _, p in inner for c in p.guard]
            case _:
                scalars = []
        places = [*self._of(scalars), *(self._known[k] for k in inner)]
        return Within(any(p.in_tile for p in places), any(p.in_lane for p in places))

    def _of(self, scalars: Iterable[Scalar]) -> list[Within]:
        return [self._loops[i] for x in scalars for i in scalar_walk.loops_in(x)]


def _of_loop(loop: LoopIndex, space: Space, nest: Nest) -> Within:
    used = set(scalar_walk.loops_in(nest.index_of[loop]))
    in_lane = nest.lane is not None and nest.lane.index in used
    return Within(loop in space.reduced, in_lane)
