# SPDX-License-Identifier: Apache-2.0
"""Every operation and every named fusion, on each backend, against the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfuser
from tests import oracle
from tests.end_to_end.operations import GROUPS, PAIRS, program
from tests.fusions import CASES
from tests.fuzz.backends import from_torch, to_torch
from tests.fuzz.check import check
from tests.fuzz.generate import generate

BACKENDS = ("cpu", "interpret", pytest.param("cuda", marks=pytest.mark.gpu))
# The front of the compiler, with its IR run by NumPy: says whose fault it is.
STAGES = ("trace", "rewrite")
SMOKE = 20  # `.ci/random` and `python -m tests.fuzz` run many more


def _run(case: str, backend: str, arguments: list[Any]) -> list[Any]:
    function = CASES[case].function
    if backend == "interpret":
        fused = nfuser.fuse(function, backend="interpret")
    else:
        fused = nfuser.fuse(function, dialect="numpy")
    if backend == "cuda":
        arguments = [
            a if isinstance(a, int | float) else to_torch(a) for a in arguments
        ]
    result = fused(*arguments)
    outputs = oracle.listed(result)
    return [from_torch(x) if backend == "cuda" else x for x in outputs]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", CASES)
def test_a_named_fusion_is_right(case: str, backend: str) -> None:
    for seed in range(2):
        arguments = CASES[case].arguments(seed, scale=1 + seed)
        expected = oracle.evaluate(CASES[case].function, *arguments)
        actual = _run(case, backend, arguments)
        verdicts = [oracle.judge(a, e) for a, e in zip(actual, expected, strict=True)]
        assert [v.problem for v in verdicts if v.problem] == []


@pytest.mark.parametrize("backend", [*STAGES, *BACKENDS])
@pytest.mark.parametrize(("group", "dtype"), PAIRS)
def test_an_operation_is_right(group: str, dtype: str, backend: str) -> None:
    operations = program(group, dtype)
    if operations is not None:
        outcome = check(operations, backend)
        assert outcome.problem is None, operations.source()


def test_each_operation_is_judged_for_some_dtype() -> None:
    judged: dict[str, int] = {}
    for operations in (program(*pair) for pair in PAIRS):
        if operations is None:
            continue
        outputs = operations.function(oracle.NAMESPACE)
        arguments = operations.arguments(operations.calls[0])
        found = oracle.listed(oracle.evaluate(outputs, *arguments))
        for step, value in zip(operations.steps, found, strict=True):
            known = value.size - int(np.count_nonzero(value.doubt))
            judged[step.text] = judged.get(step.text, 0) + known
    listed = [text for group in GROUPS.values() for text in group]
    assert [text for text in listed if not judged.get(text)] == []


@pytest.mark.parametrize("backend", [*STAGES, *BACKENDS])
@pytest.mark.parametrize("index", range(SMOKE))
def test_a_random_program_is_right(index: int, backend: str) -> None:
    random = generate(2024, index, 1_500)
    outcome = check(random, backend)
    assert outcome.problem is None, random.source()
