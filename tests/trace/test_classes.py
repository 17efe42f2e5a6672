# SPDX-License-Identifier: Apache-2.0
"""A stand-in is of the class of what it stands for, wherever Python asks."""

# What a traced function is given has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import ctypes
import operator
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def _branches(x: Any) -> Any:
    return x if isinstance(x, np.ndarray) else x * 1000


def _matched(x: Any) -> Any:
    match x:
        case np.ndarray():
            return x * 2
        case _:
            return x * 1000


@singledispatch
def _of_kind(x: Any) -> Any:
    return x * 1000


_of_kind.register(np.ndarray, lambda x: x * 3)
_of_kind.register(np.generic, lambda x: x * 5)
TAKES: dict[str, Callable[[Any], Any]] = {
    "isinstance": _branches,
    "a case": _matched,
    "singledispatch": _of_kind,
    "a view": lambda x: _branches(x.T[0]),
    "what an operation gives": lambda x: _branches(x * 2 + 1),
    "a scalar": lambda x: _of_kind(x.sum()) + _branches(x.sum()),
    "a function of the argument's class": lambda x: (
        x * issubclass(x.__class__, np.ndarray)
    ),
    "a number's class": lambda x: x * isinstance(x.mean(), np.generic),
}


@pytest.mark.parametrize("name", TAKES)
def test_the_branch_is_that_of_the_plain_function(name: str) -> None:
    found = nfuser.fuse(TAKES[name])(X)
    np.testing.assert_allclose(found, TAKES[name](X), rtol=1e-6)


def _njit(x: Any) -> Any:
    import numba

    return numba.njit(lambda a: a + 1)(x)


C_CODE: dict[str, Callable[[Any], Any]] = {
    "a buffer": memoryview,
    "ctypes": lambda x: ctypes.c_char.from_buffer(x),
    "a method of ndarray": lambda x: np.ndarray.sum(x),
    "a getter of ndarray": lambda x: type(X).ctypes.__get__(x),
    "numba": _njit,
    "frombuffer": np.frombuffer,
    "an index": lambda x: operator.itemgetter(x)([1, 2]),
}


@pytest.mark.parametrize("name", C_CODE)
def test_c_code_asks_the_type_itself_and_fails_by_name(name: str) -> None:
    with pytest.raises((TypeError, ValueError, NotImplementedError)):
        nfuser.fuse(C_CODE[name])(X)
