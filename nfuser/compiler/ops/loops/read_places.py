# SPDX-License-Identifier: Apache-2.0
"""Numbers by which all turns of a loop read an array: elements that must be there."""

from __future__ import annotations

from collections import ChainMap
from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.compiler.ir.scalars.functions import less
from nfuser.compiler.ops.loops.turn_ends import TurnEnds
from nfuser.errors import AxisError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.builder import Builder, TurnIndex


def require_places(
    b: Builder,
    places: Iterable[TurnIndex],
    definition: dict[TensorView, Expr],
    turn: tuple[TensorView, Scalar],
) -> None:
    """Refuse numbers of a loop's body that name elements beyond an axis.

    ``turn`` is its counter, and how many turns there are. What is not counted by them
    is left to the loop around it.
    """
    listed = list(places)
    if not listed or not b.ask(less(0, turn[1]), usual=1):
        return
    for read in listed:
        place = replace(
            read,
            within=(*read.within, definition),
            trips=(*read.trips, turn),
        )
        known = TurnEnds(ChainMap(*place.within), dict(place.trips))
        ends = known.of(place.index)
        if ends is not None:
            _require(b, place, *ends)
        elif b.places is not None:
            b.places.append(place)


def _require(b: Builder, place: TurnIndex, low: Scalar, high: Scalar) -> None:
    """Refuse numbers from ``low`` to ``high`` of which one names no element."""
    extent = place.extent
    wrong = (
        (high, not b.ask(less(high, extent), usual=1)),
        (low, b.ask(less(low + extent, 0))),
    )
    for number, is_wrong in wrong:
        if is_wrong:
            message = (
                f"index {b.today(number)} is out of bounds for axis {place.axis} with "
                f"size {b.today(extent)}: the turns of a loop read up to there"
            )
            raise AxisError(message)
