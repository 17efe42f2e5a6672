# SPDX-License-Identifier: Apache-2.0
"""In what extents meet, one by one and all at once."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import nfuser.compiler.ir.scalars.symbols as symbols
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.scalar_walk import evaluate
from nfuser.compiler.ops.stretched import Stretched

if TYPE_CHECKING:
    from nfuser.compiler.ir.scalars.scalar import Scalar

_SIZES = [symbols.size(slot, 0) for slot in range(20)]


def _chain(found: Stretched, extents: list[Scalar]) -> Scalar:
    meet = extents[0]
    for extent in extents[1:]:
        meet = found.meet([meet, extent])
    return meet


def test_extents_that_come_one_by_one_meet_as_all_at_once() -> None:
    assert _chain(Stretched(), [*_SIZES]) is Stretched().meet(_SIZES)


def test_whoever_goes_on_from_the_same_meets_nothing_of_the_other() -> None:
    found = Stretched()
    begun = _chain(found, [*_SIZES[:10]])
    first = found.meet([begun, _SIZES[12]])
    second = found.meet([begun, _SIZES[11]])
    between = found.meet([begun, symbols.size(3, 1)])
    assert first is Stretched().meet([*_SIZES[:10], _SIZES[12]])
    assert second is Stretched().meet([*_SIZES[:10], _SIZES[11]])
    assert between is Stretched().meet([*_SIZES[:10], symbols.size(3, 1)])
    assert found.meet([begun, _SIZES[12]]) is first


def test_the_one_that_is_not_1_is_found_wherever_it_is() -> None:
    meet = _chain(Stretched(), [*_SIZES])
    for long in _SIZES:
        today: dict[Scalar, int] = {s: 7 if s is long else 1 for s in _SIZES}
        assert evaluate(meet, today) == 7


def test_numbers_alone_meet_in_1() -> None:
    assert Stretched().meet([sc.const(1), sc.const(1)]) is sc.const(1)


def test_many_that_come_one_by_one_share_one_list() -> None:
    found = Stretched()
    meets: list[Scalar] = [_SIZES[0]]
    for extent in _SIZES[1:]:
        meets.append(found.meet([meets[-1], extent]))
    parts = found._parts  # pyright: ignore[reportPrivateUsage]
    lists = [parts[meet].items for meet in meets[1:]]
    assert all(one is other for one, other in pairwise(lists))
