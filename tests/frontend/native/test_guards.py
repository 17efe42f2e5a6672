# SPDX-License-Identifier: Apache-2.0
"""Captured values that native code compares: what holds others, and functions bound."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

import nfuser
from nfuser.compiler.trace.captures.captured import Captured
from nfuser.execution.device.native.shared import is_as_expected

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.skipif(not is_as_expected(), reason="no native calls here")

X = np.arange(6.0)


def _times(scale: float, x: Any, **named: float) -> Any:
    for k, value in enumerate(named.values()):
        x = x * scale + (k + 1) * value
    return x


def _nested(parts: tuple[Any, ...], x: Any) -> Any:
    (scale, (shift, kinds)) = parts
    return x * scale + shift * kinds["k"]


def _by_keyword(x: Any, *, scale: float = 2.5) -> Any:
    return x * scale


def _with_attribute(scale: float, x: Any) -> Any:
    return x * scale * getattr(bound, "more", 1.0)


bound = partial(_with_attribute, 3.5)


def _reads(monkeypatch: pytest.MonkeyPatch, call: Callable[[], Any]) -> int:
    """Return how often Python looks at what was captured in one ``call``."""
    asked: list[int] = []
    read = Captured.read

    def counted(self: Any, *args: Any) -> Any:
        asked.append(1)
        return read(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(Captured, "read", counted)
        call()
    return len(asked)


def _warm(function: Callable[..., Any]) -> Any:
    fused = nfuser.fuse(function)
    for _ in range(3):
        np.testing.assert_array_equal(fused(X), function(X))
    return fused


@pytest.mark.parametrize(
    "function",
    [
        partial(_times, 1.5),
        partial(_times, 1.5, a=2.0, b=3.0),
        partial(_nested, (1.5, (2.5, {"k": 3.5}))),
        _by_keyword,
        partial(np.multiply, 3.0),
    ],
)
def test_unchanged_bound_arguments_cost_no_python(
    function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    fused = _warm(function)
    assert _reads(monkeypatch, lambda: fused(X)) == 0


def test_keywords_that_change_are_seen() -> None:
    function = partial(_times, 1.5, a=2.0, b=3.0)
    fused = _warm(function)

    def agrees() -> None:
        for _ in range(3):
            np.testing.assert_array_equal(fused(X), function(X))

    function.keywords["a"] = 5.0
    agrees()
    function.keywords["c"] = 7.0
    agrees()
    del function.keywords["c"]
    agrees()
    function.keywords["a"] = function.keywords.pop("a")  # the other order
    agrees()
    function.keywords["d"] = function.keywords.pop("a")  # the same number of them
    agrees()
    cast("Any", function).__setstate__((_times, (2.0,), {"a": 1.0}, None))
    agrees()


def test_what_a_bound_dict_holds_is_seen_to_change() -> None:
    kinds = {"k": 3.5}
    function = partial(_nested, (1.5, (2.5, kinds)))
    fused = _warm(function)
    for value in (4.5, 4, True, 4.5):
        kinds["k"] = value
        for _ in range(3):
            np.testing.assert_array_equal(fused(X), function(X))


def test_attributes_of_a_bound_function_are_seen() -> None:
    fused = _warm(bound)
    try:
        for value in (2.0, 3.0):
            setattr(bound, "more", value)  # noqa: B010
            for _ in range(3):
                np.testing.assert_array_equal(fused(X), X * 3.5 * value)
    finally:
        delattr(bound, "more")
    np.testing.assert_array_equal(fused(X), X * 3.5)


def test_another_keyword_default_is_seen() -> None:
    fused = _warm(_by_keyword)
    defaults = _by_keyword.__kwdefaults__
    assert defaults is not None
    try:
        for value in (4.5, 5.5):
            defaults["scale"] = value
            for _ in range(3):
                np.testing.assert_array_equal(fused(X), X * value)
    finally:
        defaults["scale"] = 2.5
