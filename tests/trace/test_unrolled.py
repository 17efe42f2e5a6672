# SPDX-License-Identifier: Apache-2.0
"""A loop that a trace unrolls hundreds of times is named, once."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from nfuser.compiler.trace import call_of, trace_function


def decay(u: Any) -> Any:
    return u - 0.1 * u


TURNS = range(400)


def through_a_helper(x: Any) -> Any:
    for _ in tuple(TURNS):
        x = decay(x)
    return x


def in_the_loop(x: Any, turns: tuple[int, ...]) -> Any:
    y = x
    for k in turns:
        y = y * 0.5
        y = y + k
    return y


def test_it_names_the_body_once() -> None:
    call = call_of((np.ones(4), (*range(400),)))
    first = in_the_loop.__code__.co_firstlineno + 3
    with pytest.warns(RuntimeWarning) as caught:
        trace_function(in_the_loop, call)
    (warning,) = caught
    told = str(warning.message)
    assert told.startswith("fuse the body of this loop")
    assert f"lines {first} to {first + 1}," in told
    assert told.endswith("for k in turns:")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trace_function(in_the_loop, call)


def test_the_loop_may_stand_in_a_caller() -> None:
    line = through_a_helper.__code__.co_firstlineno + 2
    with pytest.warns(RuntimeWarning, match=f"line {line},"):
        trace_function(through_a_helper, call_of((np.ones(400),)))


def test_a_loop_of_some_hundred_turns_is_not() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trace_function(in_the_loop, call_of((np.ones(4), (*range(200),))))
