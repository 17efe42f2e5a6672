# SPDX-License-Identifier: Apache-2.0
"""Plans and their host programs, and the cache of kernels below them."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from nfuser.compiler.schedule.facts.target import H200
from nfuser.errors import ArgumentError, ShapeError
from nfuser.execution.device.describe.descriptor import CPU, Library, describe
from nfuser.execution.host.call.program import (
    AllocateSlot,
    FreeSlot,
    LaunchKernel,
    SlotPart,
    text,
)
from nfuser.execution.runtime.caches.executor_cache import FusionExecutorCache
from nfuser.execution.runtime.caches.shared_cache import forget_all
from nfuser.execution.runtime.compile.executable import KernelCache
from nfuser.execution.runtime.place import Place
from nfuser.execution.runtime.tables.counters import Counters
from tests.hand_built import traced

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.execution.runtime.planning.plan import Plan

W = np.ones((3, 5), np.float32)
X = np.arange(16, dtype=np.float32).reshape(4, 4)
# Sources are printed for the interpreter: nothing is compiled here.
PLACE = Place(Library.NUMPY, CPU, "interpret", H200)


class _Planner:
    """Plans of one function, and what making them counted."""

    def __init__(self, function: Callable[..., Any], *arrays: Any) -> None:
        forget_all()
        self.counters = Counters()
        self.cache = FusionExecutorCache(traced(function, *arrays))

    def __call__(self, *arrays: Any, **integers: int) -> Plan:
        given = {k: describe(a, "an argument") for k, a in enumerate(arrays)}
        return self.cache.plan(PLACE, given, {}, self.counters)

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Concretizations, runtimes, kernels compiled and kernels reused."""
        info = self.counters.info()
        return info.concretizations, info.runtimes, info.compiled, info.reused


def _two_kernels(x: Any) -> Any:
    return np.exp(x).sum(1).sum(), x + 1


def test_a_plan_of_one_kernel(golden: Callable[[str], None]) -> None:
    golden(text(_Planner(lambda x: x * 2, X)(X).program))


def test_a_plan_of_several_kernels(golden: Callable[[str], None]) -> None:
    golden(text(_Planner(_two_kernels, X)(X).program))


def test_a_plan_with_a_product(golden: Callable[[str], None]) -> None:
    def layer(x: Any, w: Any) -> Any:
        return np.maximum(x.reshape(-1, 4) @ w[:, 1:].T + 1, 0)

    golden(text(_Planner(layer, X[None], W)(X[None], W).program))


def test_a_temporary_is_freed_after_its_last_use() -> None:
    body = _Planner(_two_kernels, X)(X).program.body
    kept = {s.slot for s in body if isinstance(s, AllocateSlot)}
    freed = [s.slot for s in body if isinstance(s, FreeSlot)]
    assert len(freed) == len(set(freed)) > 0
    assert set(freed) < kept
    for slot in freed:
        at = next(
            k for k, s in enumerate(body) if isinstance(s, FreeSlot) and s.slot is slot
        )
        later = [s for s in body[at + 1 :] if isinstance(s, LaunchKernel)]
        used = [a.slot for s in later for a in s.arguments if isinstance(a, SlotPart)]
        assert slot not in used
        before = body[at - 1]
        assert isinstance(before, LaunchKernel | FreeSlot)


def test_levels_are_reused_from_the_outermost_that_fits() -> None:
    planner = _Planner(lambda x: x * 2, X)
    first = planner(X)
    assert planner.counts == (1, 1, 1, 0)
    again = planner(X)
    assert again.runtime is first.runtime
    assert planner.counts == (1, 1, 1, 0)
    larger = planner(np.ones((8, 12), np.float32))
    assert larger.runtime is first.runtime
    assert larger.program is not first.program
    odd = planner(np.ones((3, 5), np.float32))
    assert odd.concretization is first.concretization
    assert odd.runtime is not first.runtime
    assert planner.counts == (1, 2, 2, 0)
    single = planner(np.ones((1, 4), np.float32))
    assert single.concretization is not first.concretization
    assert planner.counts[0] == 2


@pytest.mark.parametrize("more", [[5], [5, 6, True], [X]])
def test_inputs_too_many_are_refused(more: list[Any]) -> None:
    cache = FusionExecutorCache(traced(lambda x: x * 2, X))
    message = f"expected 1 inputs, found {1 + len(more)}"
    with pytest.raises(ArgumentError, match=message):
        cache.run([X, *more])


def test_an_equal_kernel_is_reused_by_another_function() -> None:
    def doubled(x: Any) -> Any:
        return x * 2

    first = _Planner(doubled, X)
    first(X)
    second, counters = FusionExecutorCache(traced(doubled, X)), Counters()
    plan = second.plan(PLACE, {0: describe(X, "x")}, {}, counters)
    assert (counters.info().compiled, counters.info().reused) == (0, 1)
    assert plan.runtime.reused == 1


def test_an_empty_output_launches_nothing() -> None:
    empty = np.ones((0, 4), np.float32)
    program = _Planner(lambda x: x * 2, X)(empty).program
    assert program.launches == ()
    total = _Planner(lambda x: x.sum(0), X)(empty).program
    assert len(total.launches) == 1


def test_sizes_that_do_not_fit_leave_no_trace_in_the_cache() -> None:
    planner = _Planner(lambda x, y: x + y, X, X)
    for _ in range(2):
        with pytest.raises(ShapeError, match="could not be broadcast"):
            planner(X, X[:3])
    assert planner.counts == (0, 0, 0, 0)
    planner(X, X)
    assert planner.counts == (1, 1, 1, 0)


def test_the_kernel_cache_compiles_a_source_once_a_device() -> None:
    source = _Planner(lambda x: x * 2, X)(X).runtime.segments[0].source
    cache = KernelCache()
    assert cache.get(source, "interpret", 0) == (source, "compiled")
    assert cache.get(source, "interpret", 0) == (source, "reused")
    assert cache.get(source, "interpret", 1) == (source, "compiled")
    cache.clear()
    assert cache.get(source, "interpret", 0) == (source, "compiled")
