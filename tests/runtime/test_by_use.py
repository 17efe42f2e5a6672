# SPDX-License-Identifier: Apache-2.0
"""Tables in the order of use are whole for whoever looks, or forks, meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nfuser.execution.runtime.tables.eviction import ByUse
from nfuser.execution.runtime.tables.memo import Memo
from nfuser.frontend.call.plan_table import PlanTable

if TYPE_CHECKING:
    from collections.abc import Callable


class Told:
    """A value that says when it goes: another thread may run then, and fork."""

    def __init__(self, look: Callable[[], object]) -> None:
        self._look = look

    def __del__(self) -> None:
        self._look()


def _told(look: Callable[[], object]) -> Any:
    return Told(look)


def test_a_table_of_plans_is_whole_while_it_is_cleared() -> None:
    table, seen = PlanTable(), list[object]()
    for number in range(3):
        table.add((number,), _told(lambda: seen.append(table.drop_dead())))
    table.clear()
    assert seen == [[]] * 3


def test_a_memo_is_whole_while_it_is_cleared() -> None:
    memo, seen = Memo[int, Told](), list[object]()
    for number in range(3):
        memo.get(number, lambda: Told(lambda: seen.append(memo.values())))
    memo.clear()
    assert seen == [[]] * 3


def test_what_is_used_is_the_last() -> None:
    table = ByUse({1: "one", 2: "two", 3: "three"})
    table.move_to_end(1)
    assert list(table.items()) == [(2, "two"), (3, "three"), (1, "one")]
