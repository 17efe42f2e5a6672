# SPDX-License-Identifier: Apache-2.0
"""Functions of elements that lie apart run in vectors, as those side by side do."""
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportPrivateUsage=false

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser.codegen.numba import compile_cpu


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list that LLVM's text of each kernel is added to."""
    texts: list[str] = []
    optimized = compile_cpu._optimized

    def noted(made: Any) -> Any:
        code = optimized(made)
        texts.append(str(made.library._final_module))
        return code

    monkeypatch.setattr(compile_cpu, "_optimized", noted)
    return texts


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("function", [np.tanh, np.exp, np.log])
@pytest.mark.parametrize("inside", [False, True])
def test_a_function_of_a_column_is_computed_in_vectors(
    function: Any, dtype: str, compiled: list[str], *, inside: bool
) -> None:
    x = (np.random.default_rng(0).random((10_000, 3)) + 0.1).astype(dtype)
    column = x[:, 0]
    f = nfuser.fuse((lambda x: function(x[:, 0])) if inside else function)
    tolerance = 3e-6 if dtype == "f4" else 1e-14
    made = f(x if inside else column)
    np.testing.assert_allclose(made, function(column), rtol=tolerance)
    (text,) = compiled
    vector = rf"<\d+ x {'float' if dtype == 'f4' else 'double'}>"
    assert re.search(rf"fmul [^\n]*{vector}", text)
    # A load of a whole vector is for elements side by side, which a column has not.
    assert not re.search(rf"load {vector}", text)


@pytest.mark.parametrize("step", [-3, -1, 2, 7])
def test_strides_of_any_sign_and_size_give_the_same(step: int) -> None:
    x = np.random.default_rng(1).random((50, 900))
    f = nfuser.fuse(lambda x, y: np.exp(x) + np.sin(y))
    parts = x[:, ::step], x[::-1].T.copy().T[:, ::step]
    wanted = np.exp(parts[0]) + np.sin(parts[1])
    np.testing.assert_allclose(f(*parts), wanted, rtol=1e-14)
