# SPDX-License-Identifier: Apache-2.0
"""Why a trace of arguments of the same forms does not serve a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.operators import Op
from nfuser.compiler.ir.scalars.scalar import Binary, ScalarInput, Size
from nfuser.compiler.trace.captures.changes import changes
from nfuser.execution.runtime.call import symbols_of
from nfuser.frontend.call.inputs.arguments import same_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import SourceLine
    from nfuser.compiler.trace import Trace
    from nfuser.frontend.call.inputs.arguments import Described


def broken_guards(
    trace: Trace,
    described: Described,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> list[str]:
    """Return a sentence for each guard of ``trace`` that does not hold."""
    found = [*_numbers(trace, described), *changes(trace.captured, args, kwargs)]
    if found:
        return found
    known = _sizes(trace, described, args, kwargs)
    return [*dict.fromkeys(_outcomes(trace, described, known))]


def _numbers(trace: Trace, described: Described) -> Iterator[str]:
    for guard in trace.value_guards:
        number = described.numbers.get(guard.slot)
        if not same_number(number, guard.value):
            name = _name(described, guard.slot)
            yield _read(name, number, guard.value, guard.source)


def _sizes(
    trace: Trace,
    described: Described,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> Mapping[Scalar, int]:
    shapes = {slot: d.shape for slot, d in described.arrays.items()}
    held = trace.captured.read(args, kwargs) or ()
    for array, item in zip(trace.captured.arrays, held, strict=True):
        shapes[array.slot] = tuple(item.shape)
    return symbols_of(shapes, described.numbers)


def _outcomes(
    trace: Trace, described: Described, known: Mapping[Scalar, int]
) -> Iterator[str]:
    def spelled(x: Scalar) -> str | None:
        match x:
            case Size(slot, axis):
                return f"{_name(described, slot)}.shape[{axis}]"
            case ScalarInput(slot):
                return _name(described, slot)
            case _:
                return None

    asked = scalar_walk.evaluate_all([g.condition for g in trace.guards], known)
    for guard, answer in zip(trace.guards, asked, strict=True):
        if answer != guard.answer:
            told = scalar_walk.text(guard.condition, spelled)
            is_truth = isinstance(guard.condition, Binary) and (
                guard.condition.op in (Op.LT, Op.EQ)
            )
            kind = bool if is_truth else int
            yield _read(told, kind(answer), kind(guard.answer), guard.source)
    for guard in trace.outcome_guards:
        if not guard.holds(known, described.numbers):
            yield f"numbers give one of another class{_line(', in', guard.source)}"


def _name(described: Described, slot: int) -> str:
    return described.names.get(slot, "an array from outside")


def _read(name: str, now: object, before: object, source: SourceLine | None) -> str:
    return f"{name} is {now!r}, traced before as {before!r}{_line(', read by', source)}"


def _line(how: str, source: SourceLine | None) -> str:
    return f"{how} `{source.text.strip()}` at {source}" if source else ""
