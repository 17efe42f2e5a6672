# SPDX-License-Identifier: Apache-2.0
"""Random definitions against NumPy, against their printed form, and shared.

``python -m tests.definitions --programs 300 --seed 0 --backend cpu`` checks more.
"""

from __future__ import annotations

import pytest

from nfuser.frontend.definition.operations.ops import TABLE
from tests.definitions.check import LENGTH, NAMES, check

CPU = range(30)
INTERPRETED = range(30, 45)


@pytest.mark.parametrize("seed", CPU)
def test_a_random_definition_computes_what_numpy_does(seed: int) -> None:
    check(seed, "cpu")


@pytest.mark.parametrize("seed", INTERPRETED)
def test_a_random_definition_runs_in_the_interpreter(seed: int) -> None:
    check(seed, "interpret")


@pytest.mark.parametrize("seed", CPU[::8])
def test_a_random_definition_takes_tensors_of_torch(seed: int) -> None:
    pytest.importorskip("torch")
    check(seed, "cpu", "torch")


def test_every_operation_comes_in_these_definitions() -> None:
    draws = {"uniform", "normal", "rand_like", "randn_like"}  # test_draws.py has them
    assert set(TABLE) - draws <= set(NAMES)
    assert len(CPU) * LENGTH >= len(NAMES)
