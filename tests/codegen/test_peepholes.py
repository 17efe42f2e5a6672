# SPDX-License-Identifier: Apache-2.0
"""Numba looks for nothing in kernels that they never say."""

# Numba carries few types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numba
from numba.core import interpreter

from nfuser.codegen.numba.compile_cpu import compile_cpu

if TYPE_CHECKING:
    import pytest

_SOURCE = """\
from nfuser.codegen.primitives.cpu import f64, store
def kernel(start, stop, T0):
    for i in range(start, stop):
        store(T0, i, f64(1))
"""


def test_kernels_are_not_searched_and_functions_of_others_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[Any] = []
    look = interpreter.peep_hole_delete_with_exit

    def counted(found: Any) -> Any:
        looked.append(found)
        return look(found)

    monkeypatch.setattr(interpreter, "peep_hole_delete_with_exit", counted)
    compile_cpu(_SOURCE, "kernel", "void(int64, int64, CPointer(float64))")
    assert not looked
    assert numba.njit(lambda x: x + 1)(1) == 2
    assert looked
