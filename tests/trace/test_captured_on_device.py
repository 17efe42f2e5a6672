# SPDX-License-Identifier: Apache-2.0
"""Captured arrays that show memory of a GPU and do not tell when they are written.

Their class is one of this file, with memory of the CPU: CuPy's is not needed to trace.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nfuser.compiler.trace.call.call import call_of
from nfuser.compiler.trace.captures.windows import memory_of, sharing
from nfuser.compiler.trace.trace_function import trace_function


class Silent:
    """An array that does what NumPy's does."""

    def __init__(self, held: Any) -> None:
        self.held = held
        self.dtype, self.shape, self.ndim = held.dtype, held.shape, held.ndim

    @property
    def __cuda_array_interface__(self) -> Any:
        return self.held.__array_interface__

    def __getitem__(self, key: Any) -> Any:
        return Silent(self.held[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.held[key] = value

    def __iadd__(self, other: Any) -> Any:
        self.held += other
        return self


G: Any = Silent(np.arange(9.0))


def one_element(x: Any) -> Any:
    G[0] += 1
    return x


def of_an_argument(x: Any) -> Any:
    G[2] = x.sum()
    return x


def half(x: Any) -> Any:
    G[::2] *= 0.5
    return x


def through_a_name(x: Any) -> Any:
    y = G
    y += 1
    return x


def by_a_function(x: Any) -> Any:
    np.copyto(G, 2.0)
    return x


def by_a_helper(x: Any) -> Any:
    def add(y: Any) -> None:
        y[1] += 1

    add(G)
    return x


FUNCTIONS = (
    *(one_element, of_an_argument, half, through_a_name),
    *(by_a_function, by_a_helper),
)


def _traced(function: Any) -> Any:
    return trace_function(function, call_of((np.ones(3),), {}))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_is_written_is_an_output_of_the_trace(function: Any) -> None:
    trace = _traced(function)
    assert [slot for slot, _ in trace.writes] == [1]
    assert [str(found.origin) for found in trace.captured.arrays] == ["G"]
    np.testing.assert_array_equal(G.held, np.arange(9.0))


def test_a_part_is_written_as_a_part_of_the_whole() -> None:
    def first(x: Any) -> Any:
        y = G[:3]
        y[0] = 1
        return x

    trace = _traced(first)
    assert [slot for slot, _ in trace.writes] == [1]
    np.testing.assert_array_equal(G.held, np.arange(9.0))


def test_parts_share_the_memory_of_their_array() -> None:
    x, other = Silent(np.zeros((4, 6))), Silent(np.zeros((4, 6)))
    assert sharing(x[1:3, ::-2], [x, other]) == [x]
    assert sharing(x[3:], [x[:3], x[2:]])[0].shape == (2, 6)
    assert not sharing(x[:0], [x, other])
    assert memory_of(x[:]) == memory_of(x) != memory_of(other)
    assert memory_of(x) != memory_of(x[::-1])
