# SPDX-License-Identifier: Apache-2.0
"""The cache below all caches: bounded, and each value made once."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

import nfuser.config as config
from nfuser.execution.runtime.tables.memo import Memo

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 20.0


def _in_threads(*bodies: Callable[[], Any]) -> list[Any]:
    """Run all at once and return what they return; none may hang."""
    found: list[Any] = [None] * len(bodies)

    def run(k: int, body: Callable[[], Any]) -> None:
        found[k] = body()

    threads = [
        threading.Thread(target=run, args=pair, daemon=True)
        for pair in enumerate(bodies)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    return found


def test_a_value_is_made_when_it_is_missing() -> None:
    memo: Memo[str, int] = Memo()
    assert memo.peek("a") is None
    assert memo.get("a", lambda: 1) == (1, True)
    assert memo.get("a", lambda: 2) == (1, False)
    assert memo.peek("a") == 1
    memo.clear()
    assert memo.get("a", lambda: 3) == (3, True)


def test_what_was_not_used_lately_goes() -> None:
    memo: Memo[str, str] = Memo()
    with config.override(cache_size=3):
        for key in "abc":
            memo.get(key, lambda key=key: key)
        memo.get("a", str)
        assert memo.peek("b") == "b"
        memo.get("d", lambda: "d")
    assert memo.values() == ["a", "b", "d"]
    assert len(memo) == 3


def test_threads_that_want_one_value_make_it_once() -> None:
    memo: Memo[str, int] = Memo()
    begin = threading.Event()
    made: list[int] = []

    def make() -> int:
        begin.wait(PATIENCE)
        made.append(1)
        return len(made)

    bodies = [lambda: memo.get("a", make)] * 6
    found = _in_threads(*bodies, begin.set)
    assert made == [1]
    assert sorted(found[:6]) == [(1, False)] * 5 + [(1, True)]


def test_another_value_does_not_wait() -> None:
    memo: Memo[str, int] = Memo()
    done = threading.Event()
    slow = lambda: memo.get("slow", lambda: int(done.wait(PATIENCE)))  # noqa: E731

    def quick() -> tuple[int, bool]:
        found = memo.get("quick", lambda: 7)
        done.set()
        return found

    assert _in_threads(slow, quick) == [(1, True), (7, True)]


def test_where_making_fails_the_next_thread_tries() -> None:
    memo: Memo[str, int] = Memo()
    tries = iter([ValueError("no"), None])
    lock = threading.Lock()

    def make() -> int:
        with lock:
            error = next(tries)
        if error is not None:
            raise error
        return 5

    def ask() -> object:
        try:
            return memo.get("a", make)
        except ValueError as error:
            return str(error)

    found = _in_threads(ask, ask, ask)
    assert sorted(map(str, found)) == ["(5, False)", "(5, True)", "no"]


def test_the_limit_is_a_setting() -> None:
    assert config.from_environment({}).cache_size == 1024
    assert config.from_environment({"NFUSER_CACHE_SIZE": "7"}).cache_size == 7
    for wrong in ("0", "-3", "many"):
        with pytest.raises(ValueError, match="NFUSER_CACHE_SIZE"):
            config.from_environment({"NFUSER_CACHE_SIZE": wrong})


def test_a_cycle_of_more_than_it_holds_finds_most_of_what_it_holds() -> None:
    memo: Memo[int, int] = Memo()
    made: list[int] = []
    with config.override(cache_size=8):
        for _ in range(4):
            made.clear()
            for key in range(12):
                memo.get(key, lambda key=key: made.append(key) or key)
            assert len(memo) == 8
    assert len(made) <= 12 - 7


def test_after_a_cycle_what_is_used_stays_again() -> None:
    memo: Memo[int, int] = Memo()
    with config.override(cache_size=3):
        for key in (*range(5), *range(5)):
            memo.get(key, lambda key=key: key)
        for key in range(10, 20):
            memo.get(key, lambda key=key: key)
            memo.get(100, lambda: 100)
        assert memo.get(100, lambda: -1) == (100, False)
