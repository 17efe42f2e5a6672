# SPDX-License-Identifier: Apache-2.0
"""Calls that draw are native: they count in the words of their generators."""

# What is drawn has no static type.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import copy
import pickle
import types
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import RangeError
from nfuser.frontend.call.ready import Ready
from nfuser.frontend.native.why_not import why_no_calls_are
from nfuser.nn import dropout
from nfuser.random import default_rng
from nfuser.random.distributions import uniform
from tests.random.philox import words_of

SHAPE = 5, 7
X = np.zeros(SHAPE, np.float32)
found = default_rng(4)
holder = types.SimpleNamespace(rng=default_rng(5))


def _numbers(key: int, call: int) -> Any:
    return uniform.random(words_of(key, call, SHAPE), np.float32)


def _of_argument(x: Any, rng: Any) -> Any:
    return x + rng.random(x.shape, np.float32)


@pytest.fixture
def python_runs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list that grows by each call that goes through Python."""
    if why_no_calls_are() is not None:
        pytest.skip("this Python has no native calls")
    seen: list[Any] = []
    run = Ready.run

    def noted(self: Ready, *args: Any) -> Any:
        seen.append(self)
        return run(self, *args)

    monkeypatch.setattr(Ready, "run", noted)
    return seen


def test_a_generator_that_is_passed_is_counted_in_without_python(
    python_runs: list[Any],
) -> None:
    fused, rng = nfuser.fuse(_of_argument), default_rng(3)
    for call in range(6):
        np.testing.assert_array_equal(fused(X, rng), _numbers(3, call))
    assert 1 <= len(python_runs) < 5
    assert rng.state["call"] == 6
    np.testing.assert_array_equal(rng.random(SHAPE, np.float32), _numbers(3, 6))
    np.testing.assert_array_equal(fused(X, rng=rng), _numbers(3, 7))


@pytest.mark.parametrize("name", ["global", "attribute", "cell"])
def test_a_generator_that_is_found_may_become_another_one(
    name: str, python_runs: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = default_rng(6)

    def change(rng: Any) -> None:
        nonlocal cell
        monkeypatch.setitem(globals(), "found", rng)
        monkeypatch.setattr(holder, "rng", rng)
        cell = rng

    functions: dict[str, Any] = {
        "global": lambda x: x + found.random(x.shape, np.float32),
        "attribute": lambda x: x + holder.rng.random(x.shape, np.float32),
        "cell": lambda x: x + cell.random(x.shape, np.float32),
    }
    fused = nfuser.fuse(functions[name])
    for key in (11, 12):
        rng = default_rng(key)
        change(rng)
        for call in range(5):
            np.testing.assert_array_equal(fused(X), _numbers(key, call))
        assert rng.state["call"] == 5
    assert len(python_runs) < 10
    assert fused.cache_info().traces == 1


def test_two_generators_that_become_one_are_told_apart() -> None:
    fused = nfuser.fuse(
        lambda x, a, b: (
            a.random(x.shape, np.float32) - b.random(x.shape, np.float32) + x
        )
    )
    for _ in range(5):
        a, b = default_rng(1), default_rng(2)
        for call in range(4):
            wanted = _numbers(1, call) - _numbers(2, call)
            np.testing.assert_array_equal(fused(X, a, b), wanted)
        wanted = _numbers(1, 4) - _numbers(1, 5)
        np.testing.assert_array_equal(fused(X, a, a), wanted)


def test_a_state_is_shown_set_and_copied_between_native_calls() -> None:
    fused, rng = nfuser.fuse(_of_argument), default_rng(3)
    for _ in range(4):
        fused(X, rng)
    state = rng.state
    for other in (copy.copy(rng), pickle.loads(pickle.dumps(rng))):
        np.testing.assert_array_equal(fused(X, other), _numbers(3, 4))
    assert rng.state == state
    rng.state = {**state, "key": 8, "call": 2}
    np.testing.assert_array_equal(fused(X, rng), _numbers(8, 2))
    assert rng.state["call"] == 3


def test_the_last_draw_call_is_the_last() -> None:
    fused, rng = nfuser.fuse(_of_argument), default_rng(3)
    for _ in range(4):
        fused(X, rng)
    last = 2**64 - 2
    rng.state = {**rng.state, "call": last}
    np.testing.assert_array_equal(fused(X, rng), _numbers(3, last))
    for _ in range(3):
        with pytest.raises(RangeError, match="anew"):
            fused(X, rng)
    assert rng.state["call"] == last + 1


def test_threads_of_python_and_native_calls_share_a_generator() -> None:
    fused, rng = nfuser.fuse(_of_argument), default_rng(7)

    def native(_: int) -> list[bytes]:
        return [fused(X, rng).tobytes() for _ in range(100)]

    def plain(_: int) -> list[int]:
        return [rng.take(1)[1] for _ in range(100)]

    with ThreadPoolExecutor(8) as pool:
        arrays = list(pool.map(native, range(16)))
        numbers = list(pool.map(plain, range(16)))
        both = [pool.submit(f, 0) for f in (native, plain) * 16]
    drawn = {x for part in arrays for x in part}
    assert len(drawn) == 1600
    assert {k for part in numbers for k in part} == set(range(1600, 3200))
    mixed = [x for part in both for x in part.result()]
    assert len(set(mixed)) == 3200
    assert rng.state["call"] == 6400


def test_draws_of_open_sizes_are_those_of_their_shapes() -> None:
    fused, rng = nfuser.fuse(_of_argument), default_rng(9)
    for call, n in enumerate(range(3, 40)):
        wanted = uniform.random(words_of(9, call, (n, 3)), np.float32)
        x = np.zeros((n, 3), np.float32)
        np.testing.assert_array_equal(fused(x, rng), wanted)


def test_a_way_back_draws_what_native_calls_drew() -> None:
    fused = nfuser.fuse(lambda x, rng: dropout(np.sin(x), 0.5, rng=rng))
    x, rng = np.linspace(0.1, 1, 500), default_rng(2)
    for _ in range(5):
        fused(x, rng)
    for _ in range(5):
        value, pull = nfuser.vjp(lambda x: fused(x, rng), x)
        for _ in range(4):
            np.testing.assert_allclose(
                pull(np.ones(500))[0], 2 * np.cos(x) * (value != 0)
            )
    assert rng.state["call"] == 10


def test_a_call_that_fails_before_it_runs_draws_nothing() -> None:
    fused, rng = nfuser.fuse(_of_argument), default_rng(3)
    for _ in range(4):
        fused(X, rng)
    wrong: Any = fused
    with pytest.raises(TypeError):
        wrong(X, rng, 3)
    with pytest.raises(AttributeError):
        fused(X, 3)
    assert rng.state["call"] == 4
