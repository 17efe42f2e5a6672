# SPDX-License-Identifier: Apache-2.0
"""Scatters, solvers and transforms of arrays of torch and CuPy, against NumPy's."""

# Arrays of several libraries have no common static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfuser
from tests.host.test_libraries import LINALG, definite

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]
RNG = np.random.default_rng(0)
LIBRARIES = ["torch", "cupy"]


def _on_device(library: str, x: Any) -> Any:
    module = pytest.importorskip(library)
    return module.asarray(x, device="cuda") if library == "torch" else module.asarray(x)


def _back(x: Any) -> Any:
    return x.get() if hasattr(x, "get") else x.cpu().numpy()


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("stack", [(), (4,), (2, 3)], ids=str)
def test_functions_on_a_device(stack: tuple[int, ...], library: str) -> None:
    for name, function in LINALG.items():
        given = definite(4, *stack)
        wanted = function(given)
        found = nfuser.fuse(function)(_on_device(library, given))
        is_one = not isinstance(wanted, tuple)
        pairs = [(wanted, found)] if is_one else zip(wanted, found, strict=True)
        for one, other in pairs:
            np.testing.assert_allclose(_back(other), one, 1e-8, 1e-8, err_msg=name)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "u1"])
@pytest.mark.parametrize("count", [0, 7, 100_000])
def test_scatters_on_a_device(count: int, dtype: str, library: str) -> None:
    def work(x: Any, i: Any, v: Any) -> Any:
        np.add.at(x, i, v)
        np.maximum.at(x, i[::2] // 2, v[::2])
        x[i] = v + 1
        return np.bincount(i + 50, minlength=200)

    index = RNG.integers(-50, 50, count)
    values = (RNG.random(count) * 2).astype(dtype)
    theirs = np.ones(60, dtype)
    wanted = work(theirs, index, values)
    runs: list[Any] = []
    for _ in range(3):
        given = [_on_device(library, x) for x in (np.ones(60, dtype), index, values)]
        found = nfuser.fuse(work)(*given)
        runs.append(_back(given[0]))
        np.testing.assert_array_equal(_back(found), wanted)
    np.testing.assert_allclose(runs[0], theirs, 1e-4)
    np.testing.assert_array_equal(runs[0], runs[1])
    np.testing.assert_array_equal(runs[0], runs[2])


@pytest.mark.parametrize("library", LIBRARIES)
def test_an_index_out_of_range_raises_on_a_device(library: str) -> None:
    def work(x: Any, i: Any) -> None:
        x[i] = 3.0

    held = _on_device(library, np.zeros(5))
    with pytest.raises(IndexError, match="index 5 is out of bounds"):
        nfuser.fuse(work)(held, _on_device(library, np.array([0, 5])))
    assert not _back(held).any()
