# SPDX-License-Identifier: Apache-2.0
"""The program of a first call is found by who begins alike, and by nobody else."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownLambdaType=false

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser import config
from nfuser.base.debug import timing
from nfuser.codegen.objects.machine_code import MachineCode
from nfuser.compiler.ir.scalars.open_integer import Asked
from nfuser.compiler.ir.scalars.symbols import scalar_input
from nfuser.execution.device.describe.descriptor import CPU, Library, describe
from nfuser.execution.host.call.program import text
from nfuser.execution.runtime.caches import executor_cache, first_calls
from nfuser.execution.runtime.caches.executor_cache import FusionExecutorCache
from nfuser.execution.runtime.caches.first_calls import first_call
from nfuser.execution.runtime.caches.shared_cache import forget_all
from nfuser.execution.runtime.disk.cache import current_store
from nfuser.execution.runtime.disk.plans import current_plans
from nfuser.execution.runtime.pieces import concretized
from nfuser.execution.runtime.pieces.concretized import KnownConcretization
from nfuser.execution.runtime.place import find_place
from tests.hand_built import traced

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.execution.runtime.planning.plan import Plan

X = np.linspace(0, 1, 48).reshape(6, 8)
PLACE = find_place(Library.NUMPY, CPU, None, has_arrays=True)
DECIDED = {"concretize", "rewrite", "segment", "schedule", "lower", "codegen", "host"}


def _done() -> set[str]:
    return DECIDED & timing.table().keys()


def _two(x: Any) -> Any:
    return np.exp(x).sum(1).sum(), np.roll(x, 1) * 2 + x[:, :1]


def _chain(x: Any) -> Any:
    p, y = np.empty_like(x), np.empty_like(x)
    p[:, 0] = x[:, 0]
    for k in range(1, x.shape[1]):
        p[:, k] = 0.5 * p[:, k - 1] + x[:, k]
    y[:, -1] = p[:, -1]
    for k in range(x.shape[1] - 2, -1, -1):
        y[:, k] = 0.5 * y[:, k + 1] + p[:, k]
    return y


FUNCTIONS: list[Callable[[Any], Any]] = [
    _two,
    _chain,
    lambda x: (x * 2 + x[:, :1], x.sum(axis=0), np.cumsum(x, axis=1).T + 1),
    lambda x: ((x + 1j * x).conj() * x, np.sort(x, axis=1)[:, ::2] - x.mean()),
    lambda x: np.concatenate([x[1:] * 2, x[:1], np.exp(x)], axis=0).std(axis=1),
]


def _begun(function: Callable[..., Any], x: Any) -> tuple[FusionExecutorCache, Plan]:
    """Plan a call as a new process would."""
    forget_all()
    timing.clear()
    cache = FusionExecutorCache(traced(function, x))
    return cache, cache.plan_for([x])


def _said(plan: Plan) -> list[object]:
    """Return all that a program says, but for what only its process has."""
    launches = [
        (
            *(launch.grid, launch.block, launch.cost, launch.phase),
            *(launch.is_cooperative, launch.shared_bytes),
            launch.source.digest,
            [str(argument) for argument in launch.arguments],
        )
        for launch in plan.program.launches
    ]
    heuristics = [str(h) for h in plan.runtime.heuristics]
    return [text(plan.program), launches, heuristics, sorted(plan.inputs)]


@pytest.mark.parametrize("number", range(len(FUNCTIONS)))
def test_a_program_that_was_found_is_the_one_that_would_be_built(number: int) -> None:
    function = FUNCTIONS[number]
    for x in (X, X[::2, 1:], X.T, X.astype("f4")[3:, 1:], X[:1]):
        _, made = _begun(function, x)
        _, found = _begun(function, x)
        assert _said(found) == _said(made)


def test_what_nobody_decided_before_is_verified(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(concretized, "verify_once", seen.append)
    cache, _ = _begun(_two, X)
    assert seen == [cache.fusion]
    cache, plan = _begun(_two, X)
    assert len(seen) == 1
    assert plan.concretization.segmented  # of which somebody reads
    assert seen[1:] == [cache.fusion]


def test_who_finds_the_program_decides_nothing() -> None:
    _begun(_two, X)
    cache, plan = _begun(_two, X)
    assert not _done()
    assert isinstance(plan.concretization, KnownConcretization)
    total, rest = cache.run([X])
    np.testing.assert_allclose(total, _two(X)[0], rtol=1e-12)
    np.testing.assert_allclose(rest, _two(X)[1], rtol=1e-12)
    info = cache.cache_info()
    assert (info.concretizations, info.runtimes, info.compiled) == (1, 1, 0)
    assert not _done()


def test_who_finds_a_chain_finds_it_in_one_piece() -> None:
    _begun(_chain, X)
    cache, plan = _begun(_chain, X)
    assert not _done()
    assert str(plan.runtime.heuristics[-1]) == "chain(lanes=2)"
    (found,) = cache.run([X])
    np.testing.assert_array_equal(found, _chain(X))
    assert not _done()
    assert len(plan.runtime.segmented.kernels) == 2  # one is not launched
    (found,) = cache.run([X[:5]])  # rows that are no chain
    np.testing.assert_array_equal(found, _chain(X[:5]))


def test_other_sizes_after_a_program_that_was_found_are_planned_here() -> None:
    _begun(_two, X)
    cache, first = _begun(_two, X)
    larger = np.linspace(0, 2, 90).reshape(9, 10)
    total, rest = cache.run([larger])
    assert {"concretize", "rewrite", "host"} <= _done()
    np.testing.assert_allclose(total, _two(larger)[0], rtol=1e-12)
    np.testing.assert_allclose(rest, _two(larger)[1], rtol=1e-12)
    assert cache.plan_for([larger]).concretization is first.concretization


def test_what_is_made_later_is_made_under_the_settings_of_the_call() -> None:
    _, made = _begun(_two, X)
    _, found = _begun(_two, X)
    with config.override(pass_limit=0):
        known = found.concretization.segmented
    wanted = made.concretization.segmented
    assert [p.scheduler.name for p in known.segments] == [
        p.scheduler.name for p in wanted.segments
    ]
    assert len(known.fusion.exprs) == len(wanted.fusion.exprs)
    kernels = [one.source.text for one in found.runtime.segments]
    assert kernels == [one.source.text for one in made.runtime.segments]


def test_a_name_of_its_own_names_the_kernels() -> None:
    def other(x: Any) -> Any:
        return _two(x)

    _, made = _begun(_two, X)
    _, found = _begun(other, X)
    assert not _done()
    entries = [one.source.entry for one in made.program.launches]
    assert [one.source.entry for one in found.program.launches] == [
        entry.replace("two_", "other_", 1) for entry in entries
    ]
    for one in found.program.launches:
        assert f"def {one.source.entry}(" in one.source.text


def _named(x: Any, policy: str = "dynamic", **options: Any) -> tuple[str, ...] | None:
    given = {0: describe(x, "x")}
    rest: dict[str, Any] = {"integers": {}, "outputs": {}, "place": PLACE, **options}
    fusion = rest.pop("fusion", None) or traced(lambda x: x * 2, X)
    return first_call(fusion, policy, arrays=given, **rest)


def test_calls_that_could_be_planned_otherwise_have_other_names() -> None:
    whole = np.zeros((12, 9))
    alike = np.zeros((13, 17))[1:]  # of 8-byte alignment, if the other one has 16
    names = [
        _named(X),
        _named(X[:5]),
        _named(X.astype("f4")),
        _named(np.asfortranarray(X)),
        _named(whole[:6, :8]),
        _named(X, "static"),
        _named(X, integers={1: 3}),
        _named(X, integers={1: 4}),
        _named(X, outputs={0: describe(X, "out")}),
        _named(X, place=replace(PLACE, library=Library.TORCH)),
        _named(X, place=find_place(Library.NUMPY, CPU, "interpret", has_arrays=True)),
        _named(X, fusion=traced(lambda x: x * 3, X)),
    ]
    assert None not in names
    assert len(set(names)) == len(names)
    aligned = [replace(describe(alike, "x"), pointer=1 << 20 | k) for k in (0, 8, 16)]
    first, odd, again = (
        first_call(traced(lambda x: x, X), "dynamic", PLACE, {0: d}, {}, {})
        for d in aligned
    )
    assert first == again != odd


def test_a_call_with_an_open_number_is_not_kept() -> None:
    open_number = Asked().open(scalar_input(1), 3)
    assert _named(X, integers={1: open_number}) is None


def test_programs_that_name_lines_of_the_user_are_not_kept() -> None:
    def product(x: Any) -> Any:
        return np.exp(x) @ x.T

    _begun(product, X)
    cache, _ = _begun(product, X)
    assert "host" in _done()
    np.testing.assert_allclose(cache.run([X])[0], product(X), rtol=1e-12)


def test_should_merge_is_asked_in_each_process() -> None:
    fusion = traced(_two, X)
    for _ in range(2):
        forget_all()
        timing.clear()
        cache = FusionExecutorCache(fusion, should_merge=lambda a, b: False)
        cache.plan_for([X])
        assert "host" in _done()


@pytest.mark.parametrize("data", [b"N.", b"no pickle", b"(I1\nI2\nt."])
def test_a_program_that_cannot_be_read_is_built_again(data: bytes) -> None:
    _begun(_two, X)
    store = current_plans()
    assert store is not None
    keys = store.keys()
    for key in keys:
        entry = store.read(key)
        if b"KeptCall" in entry.machine.code:
            store.put(key, replace(entry, machine=MachineCode(data, "pickle")))
    cache, _ = _begun(_two, X)
    assert "host" in _done()
    np.testing.assert_allclose(cache.run([X])[0], _two(X)[0], rtol=1e-12)
    _begun(_two, X)
    assert not _done()


def test_machine_code_that_is_gone_is_compiled_again() -> None:
    _begun(_two, X)
    store = current_store()
    assert store is not None
    store.clear()
    cache, plan = _begun(_two, X)
    assert plan.runtime.compiled == len(plan.runtime.heuristics)
    np.testing.assert_allclose(cache.run([X])[0], _two(X)[0], rtol=1e-12)


def test_heuristics_are_not_chosen_again_where_a_library_computes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fused = nfuser.fuse(lambda x: np.exp(x) @ x.T + 1)
    forget_all()
    wanted = fused(X)
    monkeypatch.setattr(executor_cache, "heuristics_for", None)
    forget_all()
    again = nfuser.fuse(lambda x: np.exp(x) @ x.T + 1)
    np.testing.assert_array_equal(again(X), wanted)


def test_kept_kernels_fit_kept_heuristics(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_few(call: Any, *_: Any) -> Any:
        return replace(call, heuristics=())

    checked = first_calls._checked  # pyright: ignore[reportPrivateUsage]
    _begun(_two, X)
    with monkeypatch.context() as torn:
        torn.setattr(first_calls, "_checked", lambda kept: checked(too_few(kept)))
        _begun(_two, X)
        assert "host" in _done()


def test_each_concretization_has_a_first_call() -> None:
    _begun(_two, X)[0].plan_for([X[:1]])
    cache, _ = _begun(_two, X)
    cache.plan_for([X[:1]])
    # What is new about it is told from its concretization, which is made for that.
    assert not {"schedule", "lower", "codegen", "host"} & _done()
    assert cache.cache_info().concretizations == 2
