# SPDX-License-Identifier: Apache-2.0
"""What a name stands for is replaced: the next call sees it."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import functools
import operator
import types
from typing import Any

import numpy as np
import pytest

import nfuser
from tests.trace.test_captured import X, trace


class Scale:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    def times(self, x: Any) -> Any:
        return x * self.factor

    def over(self, x: Any) -> Any:
        return x / self.factor


KEEPER = types.SimpleNamespace()
CHANGES: dict[str, tuple[Any, Any]] = {
    "ufuncs": (np.tanh, np.sin),
    "a ufunc and a function": (np.tanh, lambda x: x * x),
    "functions of the standard library": (operator.neg, operator.pos),
    "methods of two objects": (Scale(2.0).times, Scale(3.0).times),
    "two methods of an object": ((scale := Scale(2.0)).times, scale.over),
    "partials": (functools.partial(np.add, 1.0), functools.partial(np.add, 2.0)),
}
ACT: Any = None


@pytest.mark.parametrize("name", CHANGES)
def test_a_function_that_is_replaced_traces_again(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = CHANGES[name]
    cell, held = before, [before]

    def function(x: Any) -> Any:
        return cell(x) + ACT(x) + held[0](x) + KEEPER.act(x)

    monkeypatch.setitem(globals(), "ACT", before)
    monkeypatch.setattr(KEEPER, "act", before, raising=False)
    for change in range(4):
        found = trace(function, X)
        assert found.captured.read((X,)) == ()
        if change == 0:
            cell = after
        elif change == 1:
            monkeypatch.setitem(globals(), "ACT", after)
        elif change == 2:
            held[0] = after
        else:
            monkeypatch.setattr(KEEPER, "act", after)
        assert found.captured.read((X,)) is None


def test_a_method_that_its_class_replaces_traces_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = Scale(2.0)
    found = trace(lambda x: one.times(x))
    assert found.captured.read() == ()
    monkeypatch.setattr(Scale, "times", Scale.over)
    assert found.captured.read() is None


class Twice:
    def __call__(self, x: Any) -> Any:
        return x * 2

    def __mul__(self, x: Any) -> Any:
        return x * 2

    def times(self, x: Any) -> Any:
        return x * 2


def twice(x: Any) -> Any:
    return x * 2


_TWICE, _FUSED = Twice(), nfuser.fuse(twice)
_RELOADED: dict[str, tuple[Any, Any]] = {
    "a function": (twice, lambda x: twice(x) + 0),
    "one in a list": (twice, lambda x, held=(twice,): held[0](x)),
    "one that is fused": (twice, lambda x: _FUSED(x) + 0),
    "a method": (Twice.times, lambda x: _TWICE.times(x) + 0),
    "an object that is called": (Twice.__call__, lambda x: _TWICE(x) + 0),
    "an operator": (Twice.__mul__, lambda x: _TWICE * x),
}


@pytest.mark.parametrize("name", _RELOADED)
def test_a_function_that_is_given_other_code_traces_again(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As IPython's autoreload does, so that names for a function keep their meaning.
    plain, function = _RELOADED[name]
    fused = nfuser.fuse(function)
    for _ in range(4):
        np.testing.assert_array_equal(fused(X), X * 2)
    given = (lambda x: x * 3) if plain is twice else (lambda self, x: x * 3)
    monkeypatch.setattr(plain, "__code__", given.__code__)
    for _ in range(4):
        np.testing.assert_array_equal(fused(X), X * 3)


class _Making:
    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return types.MethodType(lambda one, x: x * one.factor, owner)


def test_a_method_that_is_made_at_each_read_is_followed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Scale, "made", _Making(), raising=False)
    one: Any = Scale(2.0)
    found = trace(lambda x: one.made(x))
    assert found.captured.read() == ()
    one.factor = 3.0
    assert found.captured.read() is None


def test_what_methods_of_libraries_hold_is_followed() -> None:
    table = {"a": 2.0}
    bound = functools.partial(table.get, "a")

    def by_default(x: Any, get: Any = table.get) -> Any:
        return x * get("a")

    for function in (lambda x: x * bound(), by_default):
        table["a"] = 2.0
        found = trace(function)
        assert found.captured.read((X,)) == ()
        table["a"] = 3.0
        assert found.captured.read((X,)) is None


def test_a_module_by_another_name_traces_again(monkeypatch: pytest.MonkeyPatch) -> None:
    found = trace(lambda x: operator.neg(x))
    assert found.captured.read() == ()
    monkeypatch.setitem(globals(), "operator", types.SimpleNamespace(neg=operator.pos))
    assert found.captured.read() is None


def test_a_class_that_is_an_argument_is_followed() -> None:
    class Config:
        rate = 2.0

    for held in (Config, (Config,), {0: Config}):
        Config.rate = 2.0
        kind = (lambda c: c) if held is Config else (lambda c: c[0])
        found = trace(lambda x, c, kind=kind: x * kind(c).rate, X, held)
        assert found.captured.read((X, held)) is not None
        Config.rate = 3.0
        assert found.captured.read((X, held)) is None
