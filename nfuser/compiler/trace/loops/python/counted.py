# SPDX-License-Identifier: Apache-2.0
"""Loops of plain Python between bounds that are computed of arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nfuser.compiler.dtypes import DType
from nfuser.compiler.trace.loops.python.complaints import let_through, refused
from nfuser.compiler.trace.loops.python.state import State, Variables
from nfuser.compiler.trace.loops.python.turns import Turning

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.trace.loops.python.ranges import ComputedRange
    from nfuser.compiler.trace.tracer import Tracer

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
    variables = Variables(body)
    first, last = (_counter(t, x) for x in (turns.first, turns.last))
    variables.add(_COUNTER)
    variables[_COUNTER] = first

    def turn(_: Any) -> None:
        at = variables[_COUNTER]
        body(at)
        variables[_COUNTER] = at + turns.step

    def is_inside(at: Any) -> Any:
        return at < last if turns.step > 0 else at > last

    def goes_on() -> Any:
        at = variables[_COUNTER]
        before = at - turns.step  # on the other side where the counter has overflowed
        return is_inside(at) & (before < at if turns.step > 0 else before > at)

    before = State(t, variables)
    site = plain.site(body.__code__)
    turning = Turning(plain, variables, (*names, _COUNTER), site)
    try:
        turning.run(turn, None, stop, is_inside(first), goes_on)
    except Exception as error:
        before.restore()
        let_through(error)
        raise refused(error) from error


def _counter(t: Tracer, bound: Any) -> Any:
    """Return a bound as Python's integers are: they do not wrap at that of an array."""
    b = t.builder
    found = b.point("copy", b.cast(t.tensor(bound), DType.I64))
    b.weak[found] = int
    return t.wrap(found)
