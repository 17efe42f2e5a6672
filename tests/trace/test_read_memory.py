# SPDX-License-Identifier: Apache-2.0
"""What Python reads, while tracing, in memory that the call writes is never stale."""

# Arrays of any dtype have no static type.
# pyright: basic

from __future__ import annotations

import ctypes
import functools
import math
import operator
from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import MutationError, NfuserError


class Own(np.ndarray):
    """A user's array, with a value beside its elements."""

    scale = 2.0


class Holder:
    """Has a part of an array in an attribute, and reads it in several ways."""

    def __init__(self, v: Any) -> None:
        self.v, self.deep = v, {"u": [v]}

    @property
    def first(self) -> Any:
        return self.v[0]

    def __getitem__(self, k: int) -> float:
        return float(self.v[k])


A: Any = np.zeros(6)
G: Any = A[2:]
H = Holder(G)
D = {"g": G}
MEMORY = memoryview(A)
OWN = A.view(Own)
RECORDS = A.view([("x", float)])
GET = A.__getitem__
PART = functools.partial(operator.getitem, G, 1)
READS = [
    *("float(G[0])", "G[0]", "int(G[-1])", "G[G.shape[0] - 1]", "G.sum()", "max(G)"),
    *("math.fsum(G)", "len([x for x in G if x > 1])", "G.tolist()[0]", "(G * 1.0)[0]"),
    *("np.array(G)[0]", "(G > 1).sum()", "(1 if 2.0 in G else 0)", "G @ G"),
    *("H.v[0]", "H.v.mean()", "H.first", "H[0]", "H.deep['u'][0][1]"),
    *("getattr(H, 'v')[0]", "vars(H)['v'][0]", "D['g'].max()", "D.get('g')[0]"),
    *("MEMORY[0]", "MEMORY.tolist()[1]", "OWN.sum()", "RECORDS[0]['x']"),
    *("PART()", "GET(0)", "(lambda h: h[0])(G)", "np.frombuffer(A[:3].data)[0]"),
]


def _program(body: str) -> Any:
    space = {**globals(), "math": math}
    exec(f"def program(a):\n{body}", space)  # noqa: S102 (programs are text)
    return space["program"]


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize(
    "body",
    [
        "    a[:] = a + 1\n    return a * ({})\n",
        "    a += 1\n    if ({}) > 1:\n        return a * 2\n    return a * 1\n",
        "    A[:] = A + 1\n    return a * ({})\n",
    ],
)
def test_what_python_reads_is_right_or_refused(read: str, body: str) -> None:
    program = _program(body.format(read))
    fused = nfuser.fuse(program)
    given = np.ones(6) if "A[:]" in body else A
    A[:] = 0
    for _ in range(3):
        before = A.copy()
        wanted, after = np.array(program(given)), A.copy()
        A[:] = before
        try:
            found = np.array(fused(given))
        except NfuserError:
            np.testing.assert_array_equal(A, before)
        else:
            np.testing.assert_array_equal(found, wanted)
        A[:] = after


def test_memory_that_later_calls_share_is_refused_in_them() -> None:
    apart = np.zeros(6)

    def program(a: Any) -> Any:
        a += 1
        return a * float(G[0])

    fused = nfuser.fuse(program)
    A[:] = 3
    for _ in range(5):
        apart[:] = 0
        np.testing.assert_array_equal(fused(apart), np.full(6, 3.0))
    for _ in range(2):
        with pytest.raises(MutationError, match=r"another name from outside, G\[0\]"):
            fused(A)
    np.testing.assert_array_equal(fused(A[:2]), np.full(2, 12.0))
    np.testing.assert_array_equal(A, [4, 4, 3, 3, 3, 3])


def test_elements_of_users_arrays_and_of_buffers_are_compared() -> None:
    memory: Any = (ctypes.c_double * 3)()
    shown = memoryview(bytearray(8))
    own = np.zeros(3).view(Own)
    programs = {
        "a method": lambda x: x * float(own.max()),
        "ctypes": lambda x: x * sum(list(memory)),
        "a memoryview": lambda x: x * sum(list(shown)),
    }
    for name, program in programs.items():
        fused = nfuser.fuse(program)
        for number in (0, 5, 2):
            own[:] = memory[0] = shown[0] = number
            wanted = np.full(2, float(number))
            np.testing.assert_array_equal(fused(np.ones(2)), wanted, err_msg=name)


def test_a_value_beside_the_elements_of_a_users_array_is_no_element() -> None:
    own = np.zeros(3).view(Own)
    fused = nfuser.fuse(lambda x: x * own.scale)
    for number in range(3):
        own[:] = number
        np.testing.assert_array_equal(fused(np.ones(2)), np.full(2, 2.0))
    assert fused.cache_info().traces == 1


ALL = np.arange(6.0)


def _element(a: Any) -> Any:
    number = float(ALL[3])
    a[:] = a + number
    return a * float(ALL[4])


def _condition(a: Any) -> Any:
    if ALL[5] > 1:
        a += 1
    return a * 1


@pytest.mark.parametrize("function", [_element, _condition])
def test_an_element_beside_what_is_written_is_read(function: Any) -> None:
    fused = nfuser.fuse(function)
    for turn in range(4):
        ALL[:] = np.arange(6.0) + turn
        found, left = np.array(fused(ALL[:3])), ALL.copy()
        ALL[:] = np.arange(6.0) + turn
        np.testing.assert_array_equal(found, function(ALL[:3]))
        np.testing.assert_array_equal(left, ALL)


def test_an_element_that_is_written_is_not_read() -> None:
    def doubled(a: Any) -> Any:
        a[:] = 1
        return a * float(ALL[2])

    with pytest.raises(MutationError):
        nfuser.fuse(doubled)(ALL[:3])
