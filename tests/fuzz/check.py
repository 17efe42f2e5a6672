# SPDX-License-Identifier: Apache-2.0
"""Run a program on a backend and judge it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tests import oracle
from tests.fuzz.arrays import is_array
from tests.fuzz.backends import BACKENDS, Fused

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fuzz.program import Program


@dataclass(frozen=True)
class Outcome:
    """What was wrong, if anything; how many elements there were and were not judged."""

    problem: str | None = None
    skipped: int = 0
    elements: int = 0


@dataclass(frozen=True)
class Met:
    """A call that was made, and its outputs unless it raised."""

    arguments: list[Any]
    outputs: list[Any] | None


MESSAGE_LINES = 4  # the rest is a kernel's text, which running it again shows
REFUSALS = (ValueError, TypeError, OverflowError, IndexError, NotImplementedError)


def check(program: Program, backend: str) -> Outcome:
    """Make every call of a program and compare with the oracle."""
    run = BACKENDS[backend](program)
    plain = program.function(oracle.NAMESPACE)
    skipped = elements = 0
    met: list[Met] = []
    for k, call in enumerate(program.calls):
        first = program.calls.index(call)
        if first < k:
            met.append(met[first])
            outcome = _check_again(run, met[first])
        else:
            arguments = program.arguments(call)
            outcome, actual = _check_call(run, plain, arguments)
            met.append(Met(arguments, actual))
        skipped += outcome.skipped
        elements += outcome.elements
        if outcome.problem:
            problem = f"call {k + 1}: {outcome.problem}"
            return Outcome(problem, skipped, elements)
    return Outcome(None, skipped, elements)


def _check_again(run: Callable[..., list[Any]], met: Met) -> Outcome:
    """Repeat a call: the plan is there, and the result is the same to the bit."""
    before = run.hits() if isinstance(run, Fused) else 0
    try:
        actual = run(*met.arguments)
    except Exception as error:  # noqa: BLE001 (whatever it raised is the finding)
        if met.outputs is None:
            return Outcome()
        return Outcome(f"when repeated raised {type(error).__name__}: {error}")
    if met.outputs is None:
        return Outcome("when repeated gave a result; it raised before")
    for k, (x, y) in enumerate(zip(actual, met.outputs, strict=True)):
        a, b = np.asarray(x), np.asarray(y)
        if (a.dtype, a.shape, a.strides) != (b.dtype, b.shape, b.strides):
            return Outcome(f"output {k}: when repeated has another form")
        if a.tobytes() != b.tobytes():
            return Outcome(f"output {k}: when repeated differs")
    if isinstance(run, Fused) and run.hits() != before + 1:
        return Outcome("when repeated misses its plan: no hit was counted")
    return Outcome()


def _check_call(
    run: Callable[..., list[Any]], plain: Callable[..., Any], arguments: list[Any]
) -> tuple[Outcome, list[Any] | None]:
    expected: tuple[oracle.Value, ...] | Exception
    try:
        expected = oracle.evaluate(plain, *arguments)
    except REFUSALS as error:
        expected = error
    kept = [np.array(a) for a in arguments]
    try:
        actual = run(*arguments)
    except Exception as error:  # noqa: BLE001 (whatever it raised is the finding)
        if isinstance(expected, Exception) and isinstance(error, REFUSALS):
            return Outcome(), None
        text = "\n  ".join(str(error).splitlines()[:MESSAGE_LINES])
        return Outcome(f"raised {type(error).__name__}: {text}"), None
    if isinstance(expected, Exception):
        return Outcome(f"gave a result; NumPy raises {expected!r}"), actual
    for before, after in zip(kept, arguments, strict=True):
        if before.tobytes() != np.asarray(after).tobytes():
            return Outcome("wrote into an input"), actual
    return _judge_all(actual, expected, arguments), actual


def _judge_all(
    actual: list[Any], expected: tuple[oracle.Value, ...], arguments: list[Any]
) -> Outcome:
    skipped = elements = 0
    if len(actual) != len(expected):
        return Outcome(f"{len(actual)} outputs, expected {len(expected)}")
    for k, (found, value) in enumerate(zip(actual, expected, strict=True)):
        verdict = oracle.judge(found, value)
        skipped += verdict.skipped
        elements += verdict.elements
        if verdict.problem:
            return Outcome(f"output {k}: {verdict.problem}", skipped, elements)
        others: list[Any] = [a for a in (*arguments, *actual[:k]) if is_array(a)]
        if is_array(found) and any(
            np.may_share_memory(found, other) for other in others
        ):
            return Outcome(f"output {k} shares memory", skipped, elements)
    return Outcome(None, skipped, elements)
