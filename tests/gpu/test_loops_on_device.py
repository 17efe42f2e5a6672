# SPDX-License-Identifier: Apache-2.0
"""Loops of launches on a real device, where conditions are waited for."""

# Carried values have no static type.
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser.compiler.trace.call import tree
from tests.fuzz import failing_programs, write_programs, write_steps
from tests.trace.loops.test_lax import CASES

# The other libraries may warn as they like.
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]


@pytest.mark.parametrize("name", CASES)
def test_a_loop_on_the_device_gives_what_python_gives(name: str) -> None:
    torch = pytest.importorskip("torch")
    function, args = CASES[name]
    given: list[Any] = [
        torch.from_numpy(np.copy(x)).cuda() if isinstance(x, np.ndarray) else x
        for x in args
    ]
    fused = nfuser.fuse(function, dialect="numpy")
    wanted, shape = tree.flatten(function(*args))
    for _ in range(4):  # native from the third on
        found, form = tree.flatten(fused(*given))
        assert form == shape
        for a, b in zip(found, wanted, strict=True):
            on_host = a.cpu().numpy() if isinstance(a, torch.Tensor) else a
            np.testing.assert_allclose(on_host, b, rtol=1e-5)


# A device rounds ``z * z + x`` once, NumPy twice: each turn doubles the difference.
_DOUBLING = re.compile(r"np\.where\(np\.abs\((\w+)\) > \d+, \1, \1 \* \1 \+ ")


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_programs_that_write_leave_what_numpy_leaves(first: int) -> None:
    pytest.importorskip("cupy")
    tally = write_programs.Tally()
    for seed in range(first, first + 10):
        text, _, rank = write_steps.generate(seed)
        if _DOUBLING.search(text) is None:
            write_programs.compare(text, seed, rank, "cuda", tally, shapes=2)
    assert tally.agreed > 10


def test_programs_that_fail_leave_what_numpy_leaves() -> None:
    pytest.importorskip("cupy")
    tally = failing_programs.Tally()
    for seed in range(12):
        text, rank = failing_programs.generate(seed)
        failing_programs.compare(text, seed, rank, "cuda", tally)
    assert tally.in_between
