# SPDX-License-Identifier: Apache-2.0
"""What was decided once is looked up: by every process, and never out of date."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser import __main__ as command_line
from nfuser import config
from nfuser.base.debug import timing
from nfuser.base.sources import Sources
from nfuser.codegen.objects.machine_code import MachineCode
from nfuser.execution.runtime.caches import executor_cache
from nfuser.execution.runtime.caches.shared_cache import forget_all
from nfuser.execution.runtime.disk import plans
from nfuser.execution.runtime.disk.entry import unpack
from nfuser.execution.runtime.disk.plans import PlanStore, current_plans
from nfuser.execution.runtime.pieces import segmentation

if TYPE_CHECKING:
    from collections.abc import Callable


STAGES = {"schedule", "lower", "codegen"}
X = np.linspace(0, 1, 48).reshape(6, 8)


def _steps(u: Any) -> Any:
    for _ in range(12):
        u = u + 0.1 * (np.roll(u, 1) - 2 * u + np.roll(u, -1))
    return u, np.exp(u).sum(axis=1) + u[:, 0]


def _first_call(x: Any = X) -> tuple[list[Any], nfuser.Fused[..., Any], set[str]]:
    """Call as a new process would; return also what had to be done for it."""
    forget_all()
    timing.clear()
    fused = nfuser.fuse(_steps)
    results = list(fused(x))
    return results, fused, STAGES & timing.table().keys()


def _store() -> PlanStore:
    store = current_plans()
    assert store is not None
    return store


def test_a_process_that_finds_its_plan_does_not_cut_lower_or_print(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected, cold, done = _first_call()
    assert done == STAGES

    def cut(*_: object) -> Any:
        raise AssertionError

    monkeypatch.setattr(segmentation.room, "segment", cut)
    results, warm, done = _first_call()
    assert not done
    assert warm.cache_info().loaded == cold.cache_info().compiled
    assert warm.cache_info().compiled == 0
    for found, wanted in zip(results, expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_a_plan_serves_other_sizes() -> None:
    _first_call()
    results, fused, done = _first_call(np.linspace(0, 2, 90).reshape(9, 10))
    assert done == {"schedule"}
    assert fused.cache_info().compiled == 0
    wanted = _steps(np.linspace(0, 2, 90).reshape(9, 10))
    for found, right in zip(results, wanted, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-12)


def _views() -> list[Any]:
    whole = np.random.default_rng(0).random((16, 400))
    return [whole[::2, 1:9], whole.T, whole.astype("f4")[3:, 1:]]


_FUNCTIONS: list[Callable[[Any], Any]] = [
    lambda x: (x * 2 + x[:, :1], x.sum(axis=0), np.cumsum(x, axis=1).T + 1),
    lambda x: (
        np.roll(x, 1, 0) @ x.T,
        (x + 1j * x).conj() * x - x.mean(axis=1)[:, None],
    ),
]


@pytest.mark.parametrize("number", range(len(_FUNCTIONS)))
def test_heuristics_that_were_kept_are_those_that_would_be_chosen(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = _FUNCTIONS[number]
    for x in _views():
        forget_all()
        cold = nfuser.fuse(function)
        expected = cold(x)
        with monkeypatch.context() as no_more:
            no_more.setattr(executor_cache, "heuristics_for", None)
            forget_all()
            warm = nfuser.fuse(function)
            results = warm(x)
        assert warm.cache_table() == cold.cache_table()
        for found, wanted in zip(results, expected, strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_sizes_seen_later_leave_no_heuristics() -> None:
    fused = nfuser.fuse(_steps)
    fused(X)
    fused(np.ones((6, 16)))  # rows that fill whole vectors have a kernel of their own
    count = len(_store().keys())
    for length in range(10, 20):
        fused(np.ones((6, length)))
    assert len(_store().keys()) == count


def test_what_is_shown_of_a_plan_that_was_found_is_what_was_shown_before() -> None:
    _, cold, _ = _first_call()
    shown = str(cold.explain(X)), cold.cache_table()
    text = cold.lower(X).as_text()
    _, warm, _ = _first_call()
    assert (str(warm.explain(X)), warm.cache_table()) == shown
    assert warm.lower(X).as_text() == text


@pytest.mark.parametrize("setting", [{"pass_limit": 3}, {"verify": 1}])
def test_settings_that_change_a_plan_have_plans_of_their_own(
    setting: dict[str, int],
) -> None:
    _first_call()
    with config.override(**setting):
        assert "lower" in _first_call()[2]


def test_while_stages_are_dumped_all_of_them_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _first_call()
    with config.override(dump=frozenset({"kernel"})):
        assert "lower" in _first_call()[2]
    assert "steps_0_kernel(" in capsys.readouterr().err


def test_a_plan_that_cannot_be_read_is_made_again() -> None:
    expected = _first_call()[0]
    store = _store()
    keys = store.keys()
    assert len(keys) > 2
    for number, key in enumerate(keys):
        entry = store.read(key)
        bad = (b"no pickle", b"N.", entry.machine.code[:-3])[number % 3]
        store.put(key, replace(entry, machine=MachineCode(bad, "pickle")))
    results, _, done = _first_call()
    assert "lower" in done
    np.testing.assert_array_equal(results[0], expected[0])
    assert not _first_call()[2]


def test_a_torn_plan_is_removed() -> None:
    _first_call()
    files = sorted(_store().folder.glob("??/*.nfk"))
    for path in files:
        path.write_bytes(path.read_bytes()[:-1])
    assert "lower" in _first_call()[2]
    for path in files:
        unpack(path.parent.name + path.name.removesuffix(".nfk"), path.read_bytes())


def test_code_that_changed_under_the_process_neither_finds_nor_keeps_plans(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _first_call()
    count = len(_store().keys())
    changed = Sources(())
    monkeypatch.setattr(changed, "are_as_imported", lambda: False)
    monkeypatch.setattr(plans, "PLANNING", changed)
    plans._code.cache_clear()  # pyright: ignore[reportPrivateUsage]
    try:
        assert "lower" in _first_call()[2]
        assert len(_store().keys()) == count
    finally:
        plans._code.cache_clear()  # pyright: ignore[reportPrivateUsage]


def test_a_cache_that_is_cleared_has_no_plans() -> None:
    _first_call()
    assert command_line.main(["cache", "clear"]) == 0
    assert _store().keys() == []


_NAMES = """
import numpy as np, nfuser
from nfuser.execution.runtime.disk.plans import current_plans
f = nfuser.fuse(lambda x: (np.roll(x, 1).sum(axis=0) + x, np.exp(x) @ x))
f(np.ones((4, 4)))
print(sorted(current_plans().keys()))
"""


def test_plans_have_the_same_names_in_every_process(tmp_path: Any) -> None:
    found: set[str] = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        environment["NFUSER_CACHE_DIR"] = str(tmp_path)
        done = subprocess.run(
            [sys.executable, "-c", _NAMES],
            env=environment,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        found.add(done.stdout)
    assert len(found) == 1


def test_files_are_looked_at_once_for_all_kernels_of_a_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def looks(count: int) -> int:
        def function(x: Any) -> Any:
            for k in range(count):
                x = np.sort(x + k, axis=0)  # by the library: a kernel before each
            return x

        forget_all()
        seen: list[object] = []
        look = Sources.are_as_imported

        def counted(sources: Sources) -> bool:
            if sources is plans.PLANNING:
                seen.append(sources)
            return look(sources)

        with monkeypatch.context() as patch:
            patch.setattr(Sources, "are_as_imported", counted)
            found = nfuser.fuse(function)
            found(X)
        assert len(found.kernels(X)) == count
        return len(seen)

    looks(1)  # what is looked at once in a process
    assert looks(2) == looks(6)
