# SPDX-License-Identifier: Apache-2.0
"""Loops of plain Python between bounds that are computed of arrays."""

# What a traced function holds has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportPrivateUsage=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nfuser.dtypes import DType
from nfuser.trace.loops.complaints import refused
from nfuser.trace.loops.state import State, Variables
from nfuser.trace.loops.turns import Turning
from nfuser.trace.standins.asked import AnewError

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.trace.loops.ranges import ComputedRange

_COUNTER = "_nf_counter"


def run_counted(
    plain: Any,
    turns: ComputedRange,
    body: Callable[[Any], None],
    names: tuple[str, ...],
    stop: str | None,
) -> None:
    """Run such a loop: after each turn it looks whether there is another one."""
    t = plain._t
    b, variables = t.builder, Variables(body)
    first = b.point("copy", b.cast(t.tensor(turns.first), DType.I64))
    b.weak[first] = int
    variables.add(_COUNTER)
    variables[_COUNTER] = t.wrap(first)

    def turn(_: Any) -> None:
        at = variables[_COUNTER]
        body(at)
        variables[_COUNTER] = at + turns.step

    def goes_on() -> Any:
        at = variables[_COUNTER]
        return at < turns.last if turns.step > 0 else at > turns.last

    before = State(t, variables)
    turning = Turning(plain, variables, (*names, _COUNTER))
    try:
        turning.run(turn, None, stop, goes_on(), goes_on)
    except AnewError:
        raise
    except Exception as error:
        before.restore()
        raise refused(error) from error
