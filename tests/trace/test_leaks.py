# SPDX-License-Identifier: Apache-2.0
"""What a function writes outside itself while it is traced is warned of."""

from __future__ import annotations

import inspect
import sys
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.arange(4.0)
latest_made: Any = None
LOG: list[Any] = []
CACHE: dict[str, Any] = {}
FRAMES: list[Any] = []


class Step:
    @nfuser.fuse
    def kept(self, x: Any) -> Any:
        self.state = x * 2
        return x + 1


def appended(x: Any) -> Any:
    LOG.append(x.sum())
    return x + 1


def stored(x: Any) -> Any:
    CACHE["w"] = x * 2
    return x + 1


def named(x: Any) -> Any:
    global latest_made
    latest_made = x * 2
    return x + 1


def given(x: Any) -> Any:
    LOG.append(x)
    return x + 1


def enclosing() -> Callable[[Any], Any]:
    latest = None

    def inner(x: Any) -> Any:
        nonlocal latest
        latest = x * 2
        return x + 1

    return inner


KEPT = {
    "a list": appended,
    "the global latest_made": named,
    "a variable of a closure": enclosing(),
    "Step.state": Step().kept,
}


@pytest.mark.parametrize("place", KEPT)
def test_an_array_that_is_kept_is_warned_of_once_with_its_line(place: str) -> None:
    function = KEPT[place]
    fused = nfuser.fuse(function) if inspect.isfunction(function) else function
    with pytest.warns(RuntimeWarning, match="keeps a traced array") as caught:
        np.testing.assert_array_equal(fused(X), X + 1)
    (warning,) = caught
    assert f"in {place};" in str(warning.message)
    assert warning.filename == __file__
    lines, first = inspect.getsourcelines(function)
    assert " = x * 2" in lines[warning.lineno - first] or place == "a list"
    np.testing.assert_array_equal(fused(X), X + 1)


def test_an_array_kept_where_the_next_call_would_look_is_refused() -> None:
    warned = pytest.warns(RuntimeWarning, match="in a dict, as 'w'")
    refused = pytest.raises(TraceError, match="stored changes CACHE outside itself")
    with warned, refused:
        nfuser.fuse(stored)(X)


def test_an_argument_that_is_kept_has_the_line_of_the_function() -> None:
    with pytest.warns(RuntimeWarning, match="given keeps") as caught:
        nfuser.fuse(given)(X)
    assert caught[0].lineno == given.__code__.co_firstlineno


def recursive(x: Any) -> Any:
    def inner(depth: int) -> Any:
        return x * 2 if not depth else inner(depth - 1) + x

    return inner(3)


def caught(x: Any) -> Any:
    try:
        return float(x.sum())
    except TypeError as error:
        held = error
    return x + len(held.args)


def cyclic(x: Any) -> Any:
    held: list[Any] = [x * 2]
    held.append(held)
    return held[0] + 1


def unrelated(x: Any) -> Any:
    LOG.append(x.shape[0])
    return x + 1


def looked_at(x: Any) -> Any:
    y = x * 2
    FRAMES.append(inspect.currentframe())
    return y + 1


@pytest.mark.parametrize("function", [recursive, caught, cyclic, unrelated])
def test_what_goes_with_the_trace_is_not(function: Callable[[Any], Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nfuser.fuse(function)(X)


def test_a_frame_that_a_profiler_looks_at_keeps_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "FRAMES", [])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nfuser.fuse(looked_at)(X)
