# SPDX-License-Identifier: Apache-2.0
"""A name that is missing while a function is traced is noticed when it comes."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownLambdaType=false

from __future__ import annotations

import time
import types
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.ones(3)


class Kind(type):
    pass


class Base:
    def run(self, x: Any) -> Any:
        return x * getattr(self, "scale", 1.0)


class Config(Base, metaclass=Kind):
    pass


class Slots:
    __slots__ = ("scale",)


def helper(x: Any) -> Any:
    return x


def _read(item: Any, name: str) -> Any:
    return getattr(item, name, 1.0)


def _tried(x: Any) -> Any:
    held = CONFIG
    try:
        return x * held.scale  # pyright: ignore[reportAttributeAccessIssue]
    except AttributeError:
        return x


CONFIG, SLOTS, MODULE = Config(), Slots(), types.ModuleType("settings_of_a_user")
HOLDER = types.SimpleNamespace(held=CONFIG)

FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "a class": (lambda x: x * getattr(Config, "scale", 1.0), Config),
    "a base class": (lambda x: x * getattr(Config, "scale", 1.0), Base),
    "a metaclass": (lambda x: x * getattr(Config, "scale", 1.0), Kind),
    "the class of an object": (lambda x: x * getattr(CONFIG, "scale", 1.0), Config),
    "the base of an object": (lambda x: x * getattr(CONFIG, "scale", 1.0), Base),
    "the class of what is held": (lambda x: x * _read(HOLDER.held, "scale"), Config),
    "the class of self": (CONFIG.run, Config),
    "a class that is tried": (_tried, Config),
    "a slot": (lambda x: x * getattr(SLOTS, "scale", 1.0), SLOTS),
    "a module": (lambda x: x * getattr(MODULE, "scale", 1.0), MODULE),
    "a module asked": (
        lambda x: x * MODULE.scale if hasattr(MODULE, "scale") else x,
        MODULE,
    ),
    "a module by any name": (
        lambda x: x * sum(getattr(MODULE, name, 1.0) for name in ("scale",)),
        MODULE,
    ),
    "a module elsewhere": (lambda x: x * _read(MODULE, "scale"), MODULE),
    "the names of a module": (lambda x: x * vars(MODULE).get("scale", 1.0), MODULE),
    "a function": (lambda x: x * getattr(helper, "scale", 1.0), helper),
    "a function elsewhere": (lambda x: x * _read(helper, "scale"), helper),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_name_that_comes_changes_and_goes_is_noticed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, place = FUNCTIONS[name]
    fused = nfuser.fuse(function)
    with monkeypatch.context() as later:
        for scale in (None, 5.0, 7.0):
            if scale is not None:
                later.setattr(place, "scale", scale, raising=False)
            for _ in range(3):  # by native code, too
                np.testing.assert_array_equal(fused(X), X * (scale or 1.0))
    np.testing.assert_array_equal(fused(X), X)
    assert fused.cache_info().traces <= 4


@pytest.mark.parametrize("place", [Config, MODULE, helper], ids=lambda p: p.__name__)
def test_a_name_that_comes_to_an_argument_is_noticed(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fused = nfuser.fuse(lambda x, item: x * getattr(item, "scale", 1.0))
    np.testing.assert_array_equal(fused(X, place), X)
    monkeypatch.setattr(place, "scale", 5.0, raising=False)
    np.testing.assert_array_equal(fused(X, place), X * 5)


def test_a_value_that_is_only_asked_for_may_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fused = nfuser.fuse(lambda x: x * 2 if hasattr(MODULE, "count") else x)
    for count in range(4):
        monkeypatch.setattr(MODULE, "count", count, raising=False)
        np.testing.assert_array_equal(fused(X), X * 2)
    assert fused.cache_info().traces == 1


def test_what_a_module_holds_besides_is_not_refused() -> None:
    drawing = {"draw": lambda x: x + time.time()}
    module = types.ModuleType("settings_with_functions")
    vars(module).update(drawing=drawing, now=[time.time])
    fused = nfuser.fuse(lambda x: x * _read(module, "scale"))
    np.testing.assert_array_equal(fused(X), X)
    vars(module)["scale"] = 3.0
    np.testing.assert_array_equal(fused(X), X * 3)


def test_one_class_in_place_of_another_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fused = nfuser.fuse(lambda x: Config().run(x))
    np.testing.assert_array_equal(fused(X), X)

    class Other(Config):
        def run(self, x: Any) -> Any:
            return x * 3

    monkeypatch.setitem(globals(), "Config", Other)
    np.testing.assert_array_equal(fused(X), X * 3)
