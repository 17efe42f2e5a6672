# SPDX-License-Identifier: Apache-2.0
"""New shapes give right results, and build what they must and nothing else."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
import nfuser.numpy as xp
from nfuser import config
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.errors import ArgumentError, ShapeError
from nfuser.execution.host.call.evaluate import REPORTS
from nfuser.execution.runtime.caches import executor_cache
from nfuser.execution.runtime.caches.shared_cache import forget_all
from nfuser.execution.runtime.pieces import concretized

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.concretize import ResizePolicy

POLICIES: tuple[ResizePolicy, ...] = ("static", "dynamic")
BACKENDS = (None, "interpret")
OFF = frozenset({"concretize_resize_extents"})
_rng = np.random.default_rng(7)


def _x(*shape: int) -> Any:
    return _rng.standard_normal(shape, np.float32)


def _same(fused: Any, *arguments: Any) -> None:
    """Compare a call with NumPy, raised errors included."""
    plain = fused.__wrapped__
    try:
        expected = plain(*arguments)
    except ValueError:
        with pytest.raises(ValueError):  # noqa: PT011 (NumPy's text is not ours)
            fused(*arguments)
        return
    got = fused(*arguments)
    both = (v if isinstance(v, tuple) else (v,) for v in (got, expected))
    for one, other in zip(*both, strict=True):
        assert np.shape(one) == np.shape(other)
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def _padded(t0: Any, t1: Any, *w: int) -> Any:
    a, b, c, d, e, f, g, h = w
    return t1 * xp.pad(t0, ((0, 0), (a, b), (c, d), (e, f), (g, h)))


WIDTHS = (-1, -1, 1, 1, 0, -4, 0, -1)


def _padded_by_hand(t0: Any, t1: Any) -> Any:
    around = ((0, 0), (0, 0), (1, 1), (0, 0), (0, 0))
    return t1 * np.pad(t0[:, 1:-1, :, :1, :-1], around)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_pad_of_run_time_widths(policy: ResizePolicy, backend: str | None) -> None:
    fused = nfuser.fuse(_padded, resize=policy, backend=backend)
    for n in (4, 1, 0, 9):
        t0, t1 = _x(n, 3, 2, 5, 6), _x(n, 7, 4, 3, 5)
        got = fused(t0, t1, *WIDTHS)
        np.testing.assert_array_equal(got, _padded_by_hand(t0, t1))


@pytest.mark.parametrize("policy", POLICIES)
def test_other_run_time_widths(policy: ResizePolicy) -> None:
    fused = nfuser.fuse(_padded, resize=policy, backend="interpret")
    plain = (0, 0, 1, 1, 0, 0, 2, 1)
    t0, t1 = _x(4, 7, 2, 3, 2), _x(4, 7, 4, 3, 5)
    np.testing.assert_array_equal(fused(t0, t1, *plain), _padded(t0, t1, *plain))


def _rope(x: Any, cos: Any, sin: Any) -> Any:
    h = x.shape[-1] // 2
    rotated = np.concatenate([-x[..., h:], x[..., :h]], axis=-1)
    return x * cos + rotated * sin


def _rope_arguments(rows: int, width: int) -> tuple[Any, ...]:
    return _x(2, 3, rows, width), _x(rows, width), _x(rows, width)


def _built(policy: ResizePolicy) -> list[tuple[int, int]]:
    """Return (concretizations, kernels) after calls of widths 8, 8, 16, 24 and 16."""
    forget_all()
    fused = nfuser.fuse(_rope, resize=policy, backend="interpret")
    counts: list[tuple[int, int]] = []
    for rows, width in ((4, 8), (5, 8), (5, 16), (4, 24), (4, 16)):
        _same(fused, *_rope_arguments(rows, width))
        info = fused.cache_info()
        # The first concretization comes with its trace.
        counts.append((info.concretizations, info.compiled))
    return counts


def test_a_new_static_extent_compiles_once_and_an_old_one_never() -> None:
    assert _built("static") == [(1, 1), (1, 1), (2, 2), (3, 3), (3, 3)]


def test_dynamic_extents_compile_once() -> None:
    assert _built("dynamic") == [(1, 1)] * 5


def test_static_extents_can_be_turned_off() -> None:
    with config.override(disable=OFF):
        assert _built("static") == [(1, 1)] * 5
    with config.override(
        disable=config.from_environment(
            {"NFUSER_DISABLE": "concretize_resize_extents"}
        ).disable
    ):
        assert _built("static") == [(1, 1)] * 5


def test_policies_of_one_function_share_no_concretization() -> None:
    made = [nfuser.fuse(_rope, resize=p, backend="interpret") for p in POLICIES]
    for fused in made:
        _same(fused, *_rope_arguments(4, 8))
        assert fused.cache_info().concretizations == 1


def test_a_policy_that_there_is_not() -> None:
    unknown: Any = "never"
    makers: list[Callable[[], Any]] = [
        lambda: nfuser.fuse(resize=unknown)(_rope),
        lambda: nfuser.FusionDefinition(resize=unknown),
        lambda: nfuser.FusionExecutorCache(_definition().fusion, resize=unknown),
    ]
    for make in makers:
        with pytest.raises(ArgumentError, match=r"resize must be one of .*'never'"):
            make()


def _definition(**options: Any) -> nfuser.FusionDefinition:
    with nfuser.FusionDefinition(backend="interpret", **options) as fd:
        x = fd.define_tensor(shape=[-1])
        width = fd.ops.size(x, 0)
        fd.add_output(fd.ops.neg(fd.ops.slice(x, [1], [width])))
    return fd


def test_definitions_have_a_policy_and_say_so() -> None:
    for policy, expected in zip(POLICIES, (2, 1), strict=True):
        fd = _definition(resize=policy)
        for n in (7, 9, 7):
            x = _x(n)
            np.testing.assert_array_equal(fd.execute([x])[0], -x[1:])
        assert fd.cache_info().concretizations == expected
        assert ("resize=" in repr(fd)) == (policy == "static")
        cache = nfuser.FusionExecutorCache(
            fd.fusion, backend="interpret", resize=policy
        )
        for n in (7, 9, 7):
            cache.run([_x(n)])
        assert cache.cache_info().concretizations == expected


# -- axes of no and of one element, stretched axes ---------------------------

SHAPES = [(n, m) for n in (0, 1, 2, 5) for m in (0, 1, 4)]
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "slice and stretch": lambda x, y: x[1:] * y[:1],
    "sum of a slice": lambda x, y: x[:, 1:].sum(axis=1) + y[:, :1].sum(),
    "join": lambda x, y: np.concatenate([x, y], axis=1) * 2,
    "pad and fold": lambda x, y: np.pad(x, ((1, 0), (0, 2))).sum(axis=1),
    "flatten": lambda x, y: x.reshape(-1) - 1,
    "keep one": lambda x, y: (x[:, :1] + y).sum(),
    "stretched": lambda x, y: np.broadcast_to(x, (3, *x.shape))[1:, :2] * 2,
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_sizes_of_none_and_one(name: str, policy: ResizePolicy) -> None:
    fused = nfuser.fuse(FUNCTIONS[name], resize=policy, backend="interpret")
    for shape in SHAPES:
        _same(fused, _x(*shape), _x(*shape))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_slice_of_a_stretched_axis_reads_one_element(policy: ResizePolicy) -> None:
    def stretched(x: Any) -> Any:
        return np.broadcast_to(x[:, None], (*x.shape, 64))[:, 32:] * 2

    fused = nfuser.fuse(stretched, resize=policy, backend="interpret")
    x = _x(5)
    _same(fused, x)
    (argument,) = (a for n, a in REPORTS[-1].accesses.items() if n == "T0")
    assert argument.elements_read <= 5 * 32
    given = np.broadcast_to(x[:, None], (5, 8))
    _same(nfuser.fuse(lambda x: x[:, 2:5] + 1, resize=policy), given)


def test_the_axis_of_a_squeeze_must_be_one() -> None:
    with nfuser.FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, -1])
        fd.add_output(fd.ops.neg(fd.ops.squeeze(x, [1])))
    fd.execute([_x(4, 1)])
    with pytest.raises(ShapeError, match="axis 1 must be 1, but is 3"):
        fd.execute([_x(4, 3)])


# -- numbers of the call -----------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_width_that_no_extent_shows_is_never_ignored(
    policy: ResizePolicy, backend: str | None
) -> None:
    def shifted(t: Any, a: int) -> Any:
        return t + xp.pad(t, ((a, -a),))

    fused = nfuser.fuse(shifted, resize=policy, backend=backend)
    for n in (1, 8):
        for a in (3, 0, 1, -1, 3, n):
            t = _x(n)
            moved = np.zeros_like(t)
            for i in range(n):
                if 0 <= i - a < n:
                    moved[i] = t[i - a]
            np.testing.assert_array_equal(fused(t, a), t + moved)


def test_a_number_that_feeds_a_shape_gives_a_new_plan() -> None:
    def reshaped(x: Any, b: int, scale: float) -> Any:
        return x.reshape(b, -1) * scale

    fused = nfuser.fuse(reshaped, backend="interpret")
    x = _x(24)
    counts: list[tuple[int, int]] = []
    for b, scale in ((4, 2.0), (6, 2.0), (24, 2.0), (1, 2.0), (4, 2.0), (4, 3.5)):
        np.testing.assert_allclose(fused(x, b, scale), reshaped(x, b, scale))
        info = fused.cache_info()
        counts.append((info.concretizations, info.hits))
    # 4 and 6 split alike; 24 and 1 do not split; a new scale is nothing new.
    assert counts == [(1, 0), (1, 0), (2, 0), (3, 0), (3, 1), (3, 2)]


@pytest.mark.parametrize("backend", BACKENDS)
def test_minus_one_may_be_a_number_of_the_call(backend: str | None) -> None:
    fused = nfuser.fuse(lambda x, a, b: x.reshape(a, b) + 1, backend=backend)
    x = _x(6, 4)
    for a, b in ((8, -1), (-1, 8), (3, 8), (8, 3), (-1, -1), (5, -1), (1, -1), (8, -1)):
        _same(fused, x, a, b)


def test_a_known_call_does_no_symbolic_work(monkeypatch: pytest.MonkeyPatch) -> None:
    fused = nfuser.fuse(_rope, resize="static")
    arguments = _rope_arguments(4, 8)
    split = nfuser.fuse(lambda x, b: x.reshape(b, -1) * 2)
    x = _x(24)
    with nfuser.FusionDefinition() as fd:
        t = fd.define_tensor(shape=[-1, -1])
        fd.add_output(fd.ops.sum(fd.ops.exp(t), 1))
    y = _x(5, 6)

    def call_all() -> None:
        fused(*arguments)
        split(x, 4)
        fd.execute([y])

    call_all()
    worked: list[str] = []

    def watched(where: Any, name: str) -> None:
        known = getattr(where, name)

        def spy(*args: Any, **options: Any) -> Any:
            worked.append(name)
            return known(*args, **options)

        monkeypatch.setattr(where, name, spy)

    watched(executor_cache, "questions")
    for name in ("answer", "concretize", "rewrite", "segment"):
        watched(concretized, name)
    for name in ("evaluate_all", "substitute", "toposort"):
        watched(scalar_walk, name)
    call_all()
    assert worked == []
    split(x, 6)
    assert {"answer", "evaluate_all"} <= set(worked)


# -- what a new concretization keeps -----------------------------------------


def _scheduled(fused: Any, *arguments: Any) -> list[Any]:
    """Return the schedule of each kernel of a call."""
    fused(*arguments)
    plan = fused._plan_of(arguments, {})
    return [piece.scheduled for piece in plan.runtime.segments]


def test_a_changed_reshape_leaves_the_other_segments_alone() -> None:
    def five(a: Any, b: Any, c: Any, d: Any, x: Any, m: int) -> Any:
        tail = x.reshape(m, -1).max(1)
        return a.sum(1), b.max(0), np.exp(c).sum(), d * 2, tail

    forget_all()
    fused = nfuser.fuse(five, backend="interpret")
    arrays = _x(6, 8), _x(5, 9), _x(7, 3), _x(4, 4), _x(24)
    first = _scheduled(fused, *arrays, 4)
    assert len(first) == 5
    before = fused.cache_info()
    second = _scheduled(fused, *arrays, 24)
    after = fused.cache_info()
    assert after.concretizations == before.concretizations + 1
    assert after.compiled == before.compiled + 1
    assert after.reused == before.reused + 4
    assert len({*first} & {*second}) == 4
    _same(fused, *arrays, 24)


def test_a_changed_reshape_may_cut_elsewhere() -> None:
    def sums(x: Any, y: Any, m: int) -> Any:
        rows = x.reshape(x.shape[0], m, -1)
        return np.exp(y).max(0), x.sum(1), rows.sum(2)

    fused = nfuser.fuse(sums, backend="interpret")
    x, y = _x(6, 12), _x(4, 3)
    together = _scheduled(fused, x, y, 1)
    apart = _scheduled(fused, x, y, 3)
    assert (len(together), len(apart)) == (2, 3)
    assert len({*together} & {*apart}) == 1
    assert "pairs other axes" in fused.why()
    for m in (1, 3, 12, 4, 1):
        _same(fused, x, y, m)


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
def test_a_pad_of_nothing_leaves_a_strided_argument_as_it_lies(backend: str) -> None:
    fused = nfuser.fuse(lambda x, n: np.pad(x, ((0, 0), (n, n))), backend=backend)
    x = np.arange(20).reshape(4, 5)[::2, ::2]
    np.testing.assert_array_equal(fused(x, 0), x)
    np.testing.assert_array_equal(fused(x, 1), np.pad(x, ((0, 0), (1, 1))))


def test_quotients_of_negative_numbers_are_pythons() -> None:
    fused = nfuser.fuse(lambda x, n: (x + n // (n + 5), x * (n % (n + 5))))
    x = np.ones(3)
    for n in (2, -2, 7, -4, 0):
        for got, expected in zip(
            fused(x, n), (x + n // (n + 5), x * (n % (n + 5))), strict=True
        ):
            np.testing.assert_array_equal(got, expected)
