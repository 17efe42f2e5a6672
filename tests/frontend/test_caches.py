# SPDX-License-Identifier: Apache-2.0
"""What each level of the caches does, seen through its counts."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
import nfuser.config as config
from nfuser.base.system import missing
from nfuser.execution.runtime.caches.shared_cache import forget_all
from nfuser.frontend.fuse import variants as limits

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def nothing_built() -> None:
    forget_all()


def _ones(*shape: int, dtype: Any = np.float32) -> Any:
    return np.ones(shape, dtype)


def _new(fused: Any, *args: Any, **kwargs: Any) -> dict[str, int]:
    """Call and return the counts that the call changed."""
    before = fused.cache_info()._asdict()
    expected = fused.__wrapped__(*args, **kwargs)
    np.testing.assert_allclose(fused(*args, **kwargs), expected, rtol=1e-5)
    after = fused.cache_info()._asdict()
    return {k: n - before[k] for k, n in after.items() if n != before[k]}


FIRST = {"calls": 1, "traces": 1, "concretizations": 1, "runtimes": 1, "compiled": 1}
HIT = {"calls": 1, "hits": 1}
REUSED = {"calls": 1}


def test_the_first_call_makes_everything_and_the_second_nothing() -> None:
    fused = nfuser.fuse(lambda x: x * 2 + 1)
    assert set(fused.cache_info()) == {0}
    assert _new(fused, _ones(4, 8)) == FIRST
    assert _new(fused, _ones(4, 8)) == HIT
    assert _new(fused, _ones(4, 8) * 3) == HIT


def test_a_new_size_reuses_the_kernel() -> None:
    fused = nfuser.fuse(lambda x: x * 2 + 1)
    assert _new(fused, _ones(4, 8)) == FIRST
    for shape in [(4, 9), (7, 8), (300, 11), (2, 2)]:
        assert "compiled" not in _new(fused, _ones(*shape))
    info = fused.cache_info()
    assert (info.traces, info.concretizations, info.compiled) == (1, 1, 1)


def test_a_new_size_of_a_reduction_reuses_the_kernel() -> None:
    fused = nfuser.fuse(lambda x: x / x.sum(axis=-1, keepdims=True))
    assert _new(fused, _ones(4, 64))["compiled"] == 1
    for shape in [(5, 64), (4, 65), (9, 333)]:
        assert _new(fused, _ones(*shape)) == REUSED


@pytest.mark.parametrize("shape", [(1, 8), (4, 1), (1, 1), (0, 8), (4, 0)])
def test_none_and_one_concretize_anew_and_do_not_trace(shape: tuple[int, ...]) -> None:
    fused = nfuser.fuse(lambda x: np.exp(x) + x.sum(axis=0))
    _new(fused, _ones(4, 8))
    counts = _new(fused, _ones(*shape))
    assert counts["concretizations"] == 1
    assert "traces" not in counts
    assert _new(fused, _ones(*shape)) == HIT
    assert "0" in fused.why() or "1" in fused.why()


def test_any_mixture_of_sizes_needs_one_trace() -> None:
    fused = nfuser.fuse(lambda a, b: (a + b).sum(axis=0) * a)
    with np.errstate(all="ignore"):
        for n, m in itertools.product([1, 2, 5], repeat=2):
            _new(fused, _ones(n, m), _ones(1, m))
            _new(fused, _ones(n, 1), _ones(n, m))
    assert fused.cache_info().traces == 1


def test_a_new_dtype_or_rank_traces_anew() -> None:
    fused = nfuser.fuse(lambda x: x * 2)
    _new(fused, _ones(4))
    assert _new(fused, _ones(4, dtype=np.float64)) == FIRST
    assert _new(fused, _ones(4, dtype=np.int32)) == FIRST
    assert _new(fused, _ones(4, 4))["traces"] == 1
    assert _new(fused, _ones(4)) == HIT


def test_a_new_layout_does_not_trace() -> None:
    fused = nfuser.fuse(lambda x: x * 2)
    _new(fused, _ones(6, 8))
    for x in (_ones(8, 6).T, _ones(6, 16)[:, ::2], _ones(6, 8)[::-1, ::-1]):
        assert "traces" not in _new(fused, x)
        assert _new(fused, x) == HIT


def test_a_number_may_change_freely() -> None:
    fused = nfuser.fuse(lambda x, a, n: x * a + n)
    x = _ones(5)
    _new(fused, x, 2.0, 3)
    assert _new(fused, x, -1.5, 3) == HIT
    assert _new(fused, x, 1e30, -(2**20)) == HIT
    assert _new(fused, x, 2, 3)["traces"] == 1
    assert _new(fused, x, np.float32(2), 3)["traces"] == 1


def test_a_number_that_reaches_a_shape_is_never_ignored() -> None:
    fused = nfuser.fuse(lambda x, n: x[n:] * 2)
    x = np.arange(10, dtype=np.float32)
    for n in (1, 2, 3, 9, 1):
        _new(fused, x, n)
    assert fused.cache_info().compiled <= 3


def test_a_number_that_python_consumes_is_guarded() -> None:
    fused = nfuser.fuse(lambda x, n: x * 2 if n > 3 else x + n)
    x = _ones(5)
    _new(fused, x, 5)
    assert "traces" not in _new(fused, x, 6)
    assert _new(fused, x, 1)["traces"] == 1
    assert "traces" not in _new(fused, x, 2)
    assert "traces" not in _new(fused, x, 7)


def test_static_arguments_trace_anew() -> None:
    fused = nfuser.fuse(lambda x, mode, flag=False: x + 1 if mode == "a" else x - flag)
    x = _ones(5)
    _new(fused, x, "a")
    assert _new(fused, x, "b")["traces"] == 1
    assert _new(fused, x, "b", True)["traces"] == 1
    assert _new(fused, x, "a") == HIT


def test_a_captured_number_that_changed_is_noticed() -> None:
    scale = 2.0

    def scaled(x: Any) -> Any:
        return x * scale

    fused = nfuser.fuse(scaled)
    _new(fused, _ones(3))
    assert _new(fused, _ones(3)) == HIT
    scale = 3.0
    assert _new(fused, _ones(3))["traces"] == 1
    scale = 2.0
    assert "traces" not in _new(fused, _ones(3))


def test_a_captured_array_is_read_again() -> None:
    weight = _ones(3)
    fused = nfuser.fuse(lambda x: x * weight)
    _new(fused, _ones(3))
    weight[1] = 7
    assert "traces" not in _new(fused, _ones(3))
    weight = _ones(3) * 5
    assert "traces" not in _new(fused, _ones(3))
    weight = _ones(3, dtype=np.float64)
    assert _new(fused, _ones(3))["traces"] == 1


def test_an_attribute_that_changed_is_noticed() -> None:
    settings = SimpleNamespace(scale=2, nested={"shift": [1.0, 2.0]})
    fused = nfuser.fuse(lambda x: x * settings.scale + settings.nested["shift"][1])
    _new(fused, _ones(3))
    settings.scale = 4
    assert _new(fused, _ones(3))["traces"] == 1
    settings.nested["shift"][1] = 9.0
    assert _new(fused, _ones(3))["traces"] == 1
    assert _new(fused, _ones(3)) == HIT


def test_equal_kernels_are_shared_between_functions() -> None:
    def doubled(x: Any) -> Any:
        return x * 2

    first, second = nfuser.fuse(doubled), nfuser.fuse(doubled)
    assert _new(first, _ones(64))["compiled"] == 1
    assert _new(second, _ones(64))["reused"] == 1
    assert second.cache_info().compiled == 0


def test_clearing_forgets_all() -> None:
    fused = nfuser.fuse(lambda x: x * 2)
    _new(fused, _ones(4))
    fused.cache_clear()
    assert set(fused.cache_info()) == {0}
    assert _new(fused, _ones(4))["traces"] == 1


def test_a_function_that_is_traced_often_warns_once_with_the_line() -> None:
    fused = nfuser.fuse(lambda x, n: x * 2 if int(n) % 2 else x + n)
    x = _ones(3)
    for n in range(7):
        fused(x, n)
    with pytest.warns(RuntimeWarning, match=r"traced 8 times.*test_caches\.py"):
        fused(x, 7)
    for n in range(8, 12):
        fused(x, n)


class Scaled:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    @nfuser.fuse
    def __call__(self, x: Any, n: int) -> Any:
        return x * self.factor if int(n) % 2 else x

    @nfuser.fuse
    def apply(self, x: Any) -> Any:
        return x * self.factor


def test_traces_are_counted_for_each_instance() -> None:
    instances = [Scaled(float(k)) for k in range(9)]
    for instance in instances:
        instance(_ones(3), 1)
    for n in range(2, 8):
        instances[0](_ones(3), n)
    with pytest.warns(RuntimeWarning, match=r"traced 8 times.*test_caches\.py"):
        instances[0](_ones(3), 8)


def test_an_instance_for_each_call_is_warned_of() -> None:
    for _ in range(limits.MANY_OBJECTS - 1):
        Scaled(2.0).apply(_ones(3))  # equal, and of one kernel, yet each an object
    with pytest.warns(RuntimeWarning, match="64 objects"):
        Scaled(1.0).apply(_ones(3))
    Scaled(2.0).apply(_ones(3))


def test_a_plan_in_use_outlives_many_others() -> None:
    # By way of Python: native code serves many sizes by one record.
    doubled = nfuser.fuse(lambda x: x * 2, backend="interpret")
    with config.override(cache_size=4):
        for size in range(2, 12):
            _new(doubled, _ones(size))
            assert size == 2 or _new(doubled, _ones(2)) == HIT
        assert _new(doubled, _ones(11)) == HIT
        assert _new(doubled, _ones(3)) == REUSED


def test_traces_of_the_structure_looked_for_longest_ago_go_first() -> None:
    fused = nfuser.fuse(lambda x, mode: x * 2 if mode else x + 1)
    with config.override(cache_size=2):
        for mode in ("a", "b"):
            assert _new(fused, _ones(2), mode)["traces"] == 1
        assert "traces" not in _new(fused, _ones(3), "a")
        assert _new(fused, _ones(3), "c")["traces"] == 1
        assert "traces" not in _new(fused, _ones(4), "a")
        assert _new(fused, _ones(4), "b")["traces"] == 1
        assert len(fused.cache_table().splitlines()) == 1 + 2


def test_the_reason_for_a_concretization_names_the_axis() -> None:
    fused = nfuser.fuse(lambda x: x * 2)
    assert "not been called" in fused.why()
    fused(_ones(4))
    fused(_ones(1))
    assert "size of argument 0 along axis 0 is 1" in fused.why()


def test_the_reason_for_a_trace_is_told() -> None:
    fused = nfuser.fuse(lambda x: x * 2)
    fused(_ones(4))
    assert "first time" in fused.why()
    fused(_ones(4, dtype=np.float64))
    assert "dtype of x" in fused.why()


@pytest.mark.skipif(
    "native_calls" in missing(), reason=missing().get("native_calls", "")
)
def test_the_reason_names_what_a_call_compiled_for_all_functions(
    tmp_path: Path,
) -> None:
    script = (
        "import numpy as np, nfuser\n"
        "f, g = nfuser.fuse(lambda x: x * 2), nfuser.fuse(lambda x: x + 3)\n"
        "for call in (f, f, f, g, g):\n"
        "    call(np.ones(4))\n"
        "    print(call.why())\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "NFUSER_CACHE_DIR": str(tmp_path)},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    told = found.stdout.splitlines()
    assert [line.partition("; ")[2].partition(":")[0] for line in told] == [
        "",
        "the last call compiled what serves all functions",
        "nothing was new about the last call",
        "",
        "nothing was new about the last call",
    ]
    assert "native entry" in told[1]


def test_the_reason_says_that_the_last_call_had_nothing_new() -> None:
    other = nfuser.fuse(lambda x: x + 1)  # by then there is what serves all functions
    other(_ones(4))
    other(_ones(4))
    fused = nfuser.fuse(lambda x: x * 2)
    for count in range(5):  # by native code at last
        fused(_ones(4))
        assert ("nothing was new" in fused.why()) == (count > 0)
    fused(_ones(1))
    assert "nothing was new" not in fused.why()


def test_the_reason_is_asked_for_without_arguments() -> None:
    fused = nfuser.fuse(lambda x: x * 2)
    with pytest.raises(nfuser.errors.ArgumentError, match=r"explain\(...\) says how"):
        fused.why(_ones(4))


def test_the_table_lists_every_runtime() -> None:
    fused = nfuser.fuse(lambda x: x.sum(0))
    fused(_ones(4, 5))
    fused(_ones(1, 5))
    fused(_ones(4, 5, 6))
    rows = fused.cache_table().splitlines()
    assert len(rows) == 1 + fused.cache_info().runtimes
    assert rows[0].split() == ["trace", "concretization", "runtime", "kernels"]
    assert [row.split()[0] for row in rows[1:]] == ["0", "0", "1"]


def test_a_predicate_of_a_fused_function_tells_what_may_share_a_kernel() -> None:
    def function(x: Any) -> Any:
        return np.exp(x).sum() * 2 + x

    x = np.ones(100, np.float32)
    apart = nfuser.fuse(function, should_merge=lambda *_: False)
    whole = nfuser.fuse(function)
    np.testing.assert_allclose(apart(x), whole(x), 1e-6)
    assert len(apart.kernels(x)) > len(whole.kernels(x))
    assert len(nfuser.fuse(apart, backend="cpu").kernels(x)) == len(apart.kernels(x))


def test_exact_sizes_compile_for_each_shape() -> None:
    exact = nfuser.fuse(lambda x, n: x.reshape(n, -1) + 1, resize="exact")
    for length, n in ((12, 3), (12, 4), (18, 3), (12, 3)):
        x = np.arange(length, dtype=np.float32)
        np.testing.assert_array_equal(exact(x, n), x.reshape(n, -1) + 1)
    assert exact.cache_info().concretizations == 3


def test_plans_in_a_cycle_that_the_table_cannot_hold_are_mostly_found() -> None:
    # By way of Python: native code serves many sizes by one record.
    doubled = nfuser.fuse(lambda x: x * 2, backend="interpret")
    with config.override(cache_size=8):
        before = 0
        for _ in range(3):
            before = doubled.cache_info().hits
            for size in range(2, 14):
                doubled(_ones(size))
        assert doubled.cache_info().hits - before >= 7


@pytest.mark.filterwarnings("ignore:.*was traced")
def test_traces_in_a_cycle_that_the_table_cannot_hold_are_mostly_found() -> None:
    fused = nfuser.fuse(lambda x, mode: x * 2 if mode else x + 1)
    with config.override(cache_size=4):
        before = 0
        for _ in range(3):
            before = fused.cache_info().traces
            for mode in "abcdef":
                fused(_ones(2), mode)
        assert fused.cache_info().traces - before <= 3
