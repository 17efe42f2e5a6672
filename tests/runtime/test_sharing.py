# SPDX-License-Identifier: Apache-2.0
"""What is built belongs to what a fusion says, not to who said it."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import nfuser
import nfuser.config as config
from nfuser.compiler.schedule.facts.target import H200
from nfuser.errors import ArgumentError, DTypeError, ShapeError
from nfuser.execution.device.describe.descriptor import CPU, Library, describe
from nfuser.execution.runtime.caches.executor_cache import FusionExecutorCache
from nfuser.execution.runtime.caches.shared_cache import forget_all, shared_cache
from nfuser.execution.runtime.kernel_runtime import LOWERED
from nfuser.execution.runtime.place import Place
from nfuser.execution.runtime.tables.counters import Counters
from nfuser.frontend.definition.definition import DEFINITIONS
from tests.hand_built import traced

X = np.arange(12, dtype=np.float32).reshape(3, 4)
PLACE = Place(Library.NUMPY, CPU, "interpret", H200)


def _built(info: Any) -> tuple[int, int, int]:
    return info.concretizations, info.runtimes, info.compiled


def _doubled(fd: nfuser.FusionDefinition) -> None:
    x = fd.define_tensor(shape=[-1, -1])
    fd.add_output(fd.ops.add(fd.ops.mul(x, x), x))


def _define(size: int = -1) -> nfuser.FusionDefinition:
    with nfuser.FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, size])
        fd.add_output(fd.ops.add(fd.ops.mul(x, x), x))
    return fd


# -- functions and definitions -----------------------------------------------


def test_two_functions_that_say_the_same_share_what_is_built() -> None:
    forget_all()
    first, second = nfuser.fuse(lambda a: a * a + a), nfuser.fuse(lambda b: b * b + b)
    first(X)
    assert _built(first.cache_info()) == (1, 1, 1)
    np.testing.assert_array_equal(second(X), X * X + X)
    assert _built(second.cache_info()) == (0, 0, 0)
    assert (second.cache_info().traces, second.cache_info().reused) == (1, 1)
    assert first.cache_info().reused == 0
    second(X[:1])
    assert _built(second.cache_info())[:2] == (1, 1)
    assert _built(first.cache_info()) == (1, 1, 1)
    first(X[:1])
    assert _built(first.cache_info()) == (1, 1, 1)
    other = nfuser.fuse(lambda a: a * a - a)
    other(X)
    assert _built(other.cache_info()) == (1, 1, 1)


def test_the_table_lists_what_a_function_used_itself() -> None:
    first, second = nfuser.fuse(lambda a: a * a + a), nfuser.fuse(lambda b: b * b + b)
    for rows in (1, 3):
        first(X[:rows])
    second(X)
    assert len(first.cache_table().splitlines()) == 3
    assert len(second.cache_table().splitlines()) == 2


def test_a_function_and_a_definition_share_what_is_built() -> None:
    fused = nfuser.fuse(lambda a: a * a + a)
    fused(X)
    fd = _define()
    np.testing.assert_array_equal(fd.execute([X])[0], X * X + X)
    assert _built(fd.cache_info()) == (0, 0, 0)
    assert shared_cache(fd.fusion) is shared_cache(traced(lambda a: a * a + a, X))


def test_an_equal_definition_builds_nothing_at_all() -> None:
    first, second = _define(), _define()
    first.execute([X])
    assert first.cache_info().traces == 1
    assert _built(first.cache_info())[:2] == (1, 1)
    third = _define()
    for fd in (second, third):
        np.testing.assert_array_equal(fd.execute([X])[0], X * X + X)
        assert fd.fusion is first.fusion
        assert _built(fd.cache_info()) == (0, 0, 0)
        assert fd.cache_info().hits == 1
    assert third.cache_info().traces == 0
    assert "equal definition" in third.why()
    third.execute([X[:1]])
    assert third.cache_info().concretizations == 1
    first.execute([X[:1]])
    assert first.cache_info().concretizations == 1


def test_definitions_that_differ_share_nothing() -> None:
    fd = _define()
    fd.execute([X])
    for other in (_define(4), _define()):
        assert (other.fusion is fd.fusion) == (repr(other) == repr(fd))
    with nfuser.FusionDefinition(backend="interpret") as interpreted:
        _doubled(interpreted)
    np.testing.assert_array_equal(interpreted.execute([X])[0], X * X + X)
    assert interpreted.fusion is not fd.fusion


@pytest.mark.parametrize("numbers", [(2.0, 2), (0.0, -0.0), (1, True)], ids=repr)
def test_constants_tell_definitions_apart(numbers: tuple[Any, Any]) -> None:
    found: list[Any] = []
    for number in numbers:
        with nfuser.FusionDefinition() as fd:
            x = fd.define_tensor(shape=[-1], dtype=nfuser.DataType.Int32)
            fd.add_output(fd.ops.mul(x, number))
        found.append(fd.execute([np.arange(1, 4, dtype=np.int32)])[0])
    plain = [np.arange(1, 4, dtype=np.int32) * n for n in numbers]
    for got, want in zip(found, plain, strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


def test_a_definition_may_leave_the_way_of_an_earlier_one() -> None:
    _define().execute([X])
    with nfuser.FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, -1])
        square = fd.ops.mul(x, x)
        y = fd.ops.add(square, x)
        z = fd.ops.sub(y, square)
        fd.add_output(y)
        fd.add_output(z)
    found = fd.execute([X])
    np.testing.assert_array_equal(found[0], X * X + X)
    np.testing.assert_allclose(found[1], X)
    assert repr(fd).count("fd.ops.") == 3
    assert "subtract" in str(fd)


def test_numbers_of_a_followed_definition_mean_what_they_did() -> None:
    for bias in (1.0, 2.0, 1.0):
        with nfuser.FusionDefinition() as fd:
            x = fd.define_tensor(shape=[-1, -1])
            n, v = fd.define_scalar(dtype=nfuser.DataType.Int), fd.define_vector(2)
            wide = fd.ops.expand(fd.ops.sum(x, 1, True), [x.size(0), n])
            fd.add_output(fd.ops.add(fd.ops.mul(wide, v[1]), bias))
        (found,) = fd.execute([X, 5, 7, 3])
        expected = np.repeat(X.sum(1, keepdims=True), 5, 1) * 3 + bias
        np.testing.assert_array_equal(found, expected)


def test_an_unused_definition_is_forgotten() -> None:
    with config.override(cache_size=2):
        for size in (4, -1, 4):
            _define(size).execute([X])
        assert len(DEFINITIONS) == 2
        _define(1).execute([X[:, :1]])
        assert len(DEFINITIONS) == 2
        kept, gone = _define(4), _define(-1)
        assert (kept.execute([X])[0] == gone.execute([X])[0]).all()
        assert (kept.cache_info().traces, gone.cache_info().traces) == (0, 1)


# -- errors name the caller's own lines ---------------------------------------


def test_an_error_names_the_line_of_the_function_that_was_called() -> None:
    first = nfuser.fuse(lambda a, b: a + b)
    first(X, X)
    second = nfuser.fuse(lambda a, b: a + b)
    second(X, X)
    line = inspect.getsourcelines(second.__wrapped__)[1]
    with pytest.raises(ShapeError, match=rf"test_sharing\.py:{line}\n"):
        second(X, X[:2])


def test_an_error_names_the_lines_of_the_definition_that_was_called() -> None:
    with nfuser.FusionDefinition() as first:
        _doubled(first)
    first.execute([X])
    with nfuser.FusionDefinition() as second:
        x = second.define_tensor(shape=[-1, -1])  # our own line
        second.add_output(second.ops.add(second.ops.mul(x, x), x))
    assert second.execute([X])[0].shape == X.shape
    for _ in range(2):
        with pytest.raises(DTypeError, match="our own line"):
            second.execute([X.astype(np.float64)])
    assert second.fusion is first.fusion


# -- pieces -------------------------------------------------------------------


def _pieces(x: Any, y: Any) -> Any:
    return np.exp(x).sum(0), y + 1


def test_a_new_concretization_keeps_the_pieces_that_did_not_change() -> None:
    cache = FusionExecutorCache(traced(_pieces, X, X))

    def scheduled(x: Any, y: Any) -> list[Any]:
        given = {0: describe(x, "x"), 1: describe(y, "y")}
        plan = cache.plan(PLACE, given, {}, Counters())
        return list(plan.runtime.segments)

    before, after = scheduled(X, X), scheduled(X, X[:, :1].copy())
    assert len(before) == len(after) == 2
    same = [a.scheduled is b.scheduled for a, b in zip(before, after, strict=True)]
    assert sorted(same) == [False, True]
    kept = same.index(True)
    assert before[kept].source is after[kept].source
    assert before[kept].executable is after[kept].executable
    assert len(cache.concretizations) == 2


# -- eviction -----------------------------------------------------------------


def test_every_cache_is_bounded_and_results_stay_right() -> None:
    forget_all()
    fused = nfuser.fuse(lambda a: np.sin(a).sum(axis=-1) * 2)
    shapes = [(3, 4), (1, 4), (3, 1), (0, 4), (1, 1), (5, 7)]
    arrays = [np.ones(shape, np.float32) for shape in shapes]
    cache = shared_cache(traced(lambda a: np.sin(a).sum(axis=-1) * 2, X))
    with config.override(cache_size=2):
        for _ in range(2):
            for x in arrays:
                expected = np.sin(x).sum(axis=-1) * 2
                np.testing.assert_allclose(fused(x), expected, rtol=1e-6)
        assert len(cache.concretizations) <= 2
        assert len(cache.runtimes) <= 2
    # The plans of the last calls still run what is forgotten everywhere else.
    forget_all()
    hits = fused.cache_info().hits
    for x in arrays[-2:]:
        np.testing.assert_allclose(fused(x), np.sin(x).sum(axis=-1) * 2, rtol=1e-6)
    assert fused.cache_info().hits == hits + 2


def test_a_dump_shows_all_stages_of_each_function(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with config.override(dump=frozenset({"concrete", "schedule", "source"})):
        for _ in range(2):
            nfuser.fuse(lambda a: a * a + a)(X)
            shown = capsys.readouterr().err
            for stage in ("concrete", "schedule", "source"):
                assert f"--- nfuser {stage}\n" in shown


# -- by itself ----------------------------------------------------------------


def test_it_runs_a_fusion_by_itself() -> None:
    cache = nfuser.FusionExecutorCache(_define().fusion)
    for x in (X, X * 2, X[:1], X.T):
        np.testing.assert_array_equal(cache.execute([x])[0], x * x + x)
    info = cache.cache_info()
    assert (info.calls, info.hits, info.concretizations) == (4, 1, 2)
    assert "axis 0 is 1" in cache.why() or "heuristic" in cache.why()
    assert len(cache.cache_table().splitlines()) == 1 + info.runtimes
    assert isinstance(cache.kernel_runtime_for([X]), nfuser.FusionKernelRuntime)
    cache.clear()
    assert set(cache.cache_info()) == {0}
    assert len(cache.cache_table().splitlines()) == 1
    np.testing.assert_array_equal(cache.run([X])[0], X * X + X)


def test_it_refuses_what_its_fusion_does_not_take() -> None:
    with nfuser.FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, 4], dtype=nfuser.DataType.ComplexFloat)
        n = fd.define_scalar(dtype=nfuser.DataType.Int)
        c = fd.define_scalar(dtype=nfuser.DataType.ComplexDouble)
        fd.add_output(fd.ops.mul(fd.ops.add(x, n), c))
    cache = nfuser.FusionExecutorCache(fd.fusion)
    z = X.astype(np.complex64)
    np.testing.assert_array_equal(cache.run([z, 3, 2j])[0], (z + 3) * 2j)
    np.testing.assert_array_equal(cache.run([z, np.int64(3), 2])[0], (z + 3) * 2)
    for error, inputs in (
        (ArgumentError, [z, 3]),
        (ArgumentError, [z, 1.5, 2j]),
        (ArgumentError, [z, 3, "2j"]),
        (DTypeError, [X, 3, 2j]),
        (ShapeError, [z[0], 3, 2j]),
        (ShapeError, [z[:, :3], 3, 2j]),
    ):
        with pytest.raises(error, match="expected"):
            cache.run(inputs)


# -- kernels -----------------------------------------------------------------


def _sweeps(count: int) -> Any:
    def sweeps(u: Any) -> Any:
        for _ in range(count):
            u = np.cumsum(u * 0.5, axis=0)
            u = np.cumsum(u * 0.5, axis=1)
        return u

    return sweeps


def test_equal_kernels_compile_once_whatever_they_are_called() -> None:
    forget_all()
    with config.override(disable=frozenset({"disk_cache"})):
        fused = nfuser.fuse(_sweeps(5))
        few = nfuser.fuse(_sweeps(2))
        np.testing.assert_allclose(few(X), _sweeps(2)(X), rtol=1e-5)
        compiled = few.cache_info().compiled
        np.testing.assert_allclose(fused(X), _sweeps(5)(X), rtol=1e-5)
        names = [kernel.name for kernel in fused.kernels(X)]
    assert compiled < len(names) == len(set(names))
    assert fused.cache_info().compiled == 0


def test_equal_pieces_are_lowered_once_and_keep_their_names() -> None:
    forget_all()
    fused = nfuser.fuse(_sweeps(4))
    kernels = fused.kernels(X)
    assert all(f"def {kernel.name}(" in kernel.source for kernel in kernels)
    assert len(LOWERED) < len(kernels)
