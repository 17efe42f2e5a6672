# SPDX-License-Identifier: Apache-2.0
"""Loops that write single elements leave what Python leaves, also where one fails."""

# Programs are given, and give, what has no static type.
# pyright: basic

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from tests.trace.loops.scatters import CALLS, PROGRAMS

if TYPE_CHECKING:
    from collections.abc import Callable


def _outcome(program: Callable[..., Any], given: Any) -> tuple[Any, np.ndarray]:
    """Return what a call gives or raises, and the array that it was given."""
    x, i = (np.array(g, kind) for g, kind in zip(given, (float, int), strict=True))
    try:
        return program(x, i), x
    except (IndexError, ZeroDivisionError) as error:
        return str(error).partition("\n")[0].partition(";")[0], x


@pytest.mark.filterwarnings("ignore:an array that plain NumPy makes while tracing")
@pytest.mark.parametrize("backend", ["cpu", "interpret"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_scatters_of_loops(program: Callable[..., Any], backend: str) -> None:
    fused = nfuser.fuse(program, backend=backend)
    for _ in range(2 if backend == "cpu" else 1):  # later by native code
        for given in CALLS:
            (want, before), (got, after) = (
                _outcome(f, given) for f in (program, fused)
            )
            np.testing.assert_array_equal(after, before, str(given))
            assert isinstance(got, str) == isinstance(want, str), (given, got, want)
            if not isinstance(want, str) or given[0]:  # of empty arrays others tell
                np.testing.assert_array_equal(got, want, str(given))


@pytest.mark.parametrize("program", PROGRAMS[:8], ids=lambda f: f.__name__)
def test_one_kernel_takes_all_turns(program: Callable[..., Any]) -> None:
    given = np.arange(6.0), np.array([1, 2, 3])
    kernels = nfuser.fuse(program, backend="cpu").kernels(*given)
    assert any("serial" in str(k.schedule) for k in kernels)
