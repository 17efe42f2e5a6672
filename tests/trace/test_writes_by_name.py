# SPDX-License-Identifier: Apache-2.0
"""Methods and functions that write in place are called by their names."""

# What a traced function is given has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser

if TYPE_CHECKING:
    from collections.abc import Callable


class Holder:
    def __init__(self) -> None:
        self.arr = np.arange(1.0, 5.0)


def method(a: Any, y: Any) -> Any:
    a.arr.__iadd__(y)
    a.arr.__setitem__(3, a.arr[0] * 2)


def kept(a: Any, y: Any) -> Any:
    add = a.arr.__iadd__
    add(y)
    add(y)[0] = 5


def looked_up(a: Any, y: Any) -> Any:
    getattr(a.arr, "__imul__")(y + 1)  # noqa: B009 (it is what is tried)


def function_of_operator(a: Any, y: Any) -> Any:
    number = operator.iadd(len([]), 2)
    for _ in range(100):
        operator.iadd(a.arr, y)
    operator.setitem(a.arr, 0, a.arr[1] * number)


def of_the_class(a: Any, y: Any) -> Any:
    np.ndarray.__isub__(a.arr[1:], y[1:])
    np.ndarray.fill(a.arr[::2], a.arr[1])


def in_turns(a: Any, y: Any) -> Any:
    if y[0] > 0:
        a.arr.__ipow__(2)
    for _ in range(100):
        a.arr[::-1].__imul__(y * 0.5)


@pytest.mark.parametrize(
    "function",
    [method, kept, looked_up, function_of_operator, of_the_class, in_turns],
)
@pytest.mark.parametrize("backend", ["cpu", "interpret"])
def test_they_write_in_each_call(function: Callable[..., Any], backend: str) -> None:
    fused = nfuser.fuse(function, backend=backend)
    ours, theirs = Holder(), Holder()
    for k in range(3):
        y = np.array([k, 0.5, 2.0, 1.0])
        fused(ours, y)
        function(theirs, y)
        np.testing.assert_array_equal(ours.arr, theirs.arr)
