# SPDX-License-Identifier: Apache-2.0
"""Run a program on a backend and judge it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tests import oracle
from tests.fuzz.arrays import is_array
from tests.fuzz.backends import BACKENDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fuzz.program import Program


@dataclass(frozen=True)
class Outcome:
    """What was wrong, if anything; how many elements there were and were not judged."""

    problem: str | None = None
    skipped: int = 0
    elements: int = 0


MESSAGE_LINES = 4  # the rest is a kernel's text, which running it again shows
REFUSALS = (ValueError, TypeError, OverflowError, IndexError, NotImplementedError)


def check(program: Program, backend: str) -> Outcome:
    """Make every call of a program and compare with the oracle."""
    run = BACKENDS[backend](program)
    plain = program.function(oracle.NAMESPACE)
    skipped = elements = 0
    for k, call in enumerate(program.calls):
        outcome = _check_call(run, plain, program.arguments(call))
        skipped += outcome.skipped
        elements += outcome.elements
        if outcome.problem:
            problem = f"call {k + 1}: {outcome.problem}"
            return Outcome(problem, skipped, elements)
    return Outcome(None, skipped, elements)


def _check_call(
    run: Callable[..., list[Any]], plain: Callable[..., Any], arguments: list[Any]
) -> Outcome:
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
            return Outcome()
        text = "\n  ".join(str(error).splitlines()[:MESSAGE_LINES])
        return Outcome(f"raised {type(error).__name__}: {text}")
    if isinstance(expected, Exception):
        return Outcome(f"gave a result; NumPy raises {expected!r}")
    for before, after in zip(kept, arguments, strict=True):
        if before.tobytes() != np.asarray(after).tobytes():
            return Outcome("wrote into an input")
    return _judge_all(actual, expected, arguments)


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
