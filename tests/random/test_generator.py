# SPDX-License-Identifier: Apache-2.0

# What is drawn has no static type.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
import nfuser.random as rnd
from nfuser.errors import ArgumentError, NfuserError, TraceError
from nfuser.random.distributions import (
    counts,
    directions,
    exponential,
    gamma,
    normal,
    uniform,
)
from tests.random.philox import words, words_of

if TYPE_CHECKING:
    from collections.abc import Callable

KEY = 0x0123456789ABCDEF


@nfuser.fuse
def noisy(x: Any, rng: Any, scale: Any) -> Any:
    return x + scale * rng.random(x.shape, np.float32)


def test_a_draw_call_gives_the_words_of_the_specification() -> None:
    rng = rnd.default_rng(KEY)
    for call, shape in enumerate([(), (6,), (3, 5, 2), (0, 4), (1000, 3)]):
        wanted = uniform.random(words_of(KEY, call, shape))
        np.testing.assert_array_equal(rng.random(shape), wanted)
        assert rng.state["call"] == call + 1


def test_golden_numbers_of_stream_1() -> None:
    rng = rnd.default_rng(2026)
    assert rng.integers(0, 1000, 6).tolist() == GOLDEN_INTEGERS
    assert rng.random(3, np.float32).tolist() == GOLDEN_FLOATS


GOLDEN_INTEGERS = [522, 296, 348, 818, 719, 903]
GOLDEN_FLOATS = [0.7051945924758911, 0.11822593212127686, 0.5688958168029785]


def test_six_numbers_of_one_call_are_not_those_of_two_calls_for_three() -> None:
    one, two = rnd.default_rng(1), rnd.default_rng(1)
    together = one.random(6)
    apart = np.concatenate([two.random(3), two.random(3)])
    assert (together[:3] == apart[:3]).all()
    assert (together[3:] != apart[3:]).all()


DRAWS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any], Any]]] = {
    "uniform": (
        lambda r, s: r.uniform(-2, 5, s),
        lambda w: uniform.uniform(w, -2, 5),
    ),
    "normal": (lambda r, s: r.normal(3, 2, s), lambda w: normal.normal(w, 3, 2)),
    "exponential": (
        lambda r, s: r.exponential(2.0, s),
        lambda w: exponential.exponential(w, 2.0),
    ),
    "gamma": (lambda r, s: r.gamma(2.5, 2.0, s), lambda w: gamma.gamma(w, 2.5, 2.0)),
    "integers": (
        lambda r, s: r.integers(-3, 9, s),
        lambda w: uniform.integers(w, -3, 9),
    ),
    "poisson": (lambda r, s: r.poisson(3.5, s), lambda w: counts.poisson(w, 3.5)),
    "vonmises": (
        lambda r, s: r.vonmises(0.5, 2.0, s),
        lambda w: directions.vonmises(w, 0.5, 2.0),
    ),
    "bernoulli": (
        lambda r, s: r.bernoulli(0.3, s),
        lambda w: uniform.bernoulli(w, 0.3),
    ),
}


@pytest.mark.parametrize("name", DRAWS)
def test_numbers_are_those_of_the_distribution_fused_and_not(name: str) -> None:
    method, function = DRAWS[name]
    wanted = function(words_of(KEY, 0, (4, 7)))
    fused = nfuser.fuse(lambda x, rng: method(rng, x.shape))
    for found in (
        method(rnd.default_rng(KEY), (4, 7)),
        fused(np.zeros((4, 7)), rnd.default_rng(KEY)),
        method(rnd.of(rnd.key(KEY)), (4, 7)),
    ):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-13)


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_cuts_layouts_and_backends_cannot_be_seen(backend: str, order: Any) -> None:
    x = np.zeros((37, 65), np.float32, order=order)
    wanted = uniform.random(words_of(KEY, 0, x.shape), np.float32)
    alone = nfuser.fuse(noisy.__wrapped__, backend=backend)
    cut = nfuser.fuse(
        lambda x, rng: (lambda u: (u, u - u.sum(0), u.T))(rng.random(x.shape, "f4")),
        backend=backend,
    )
    np.testing.assert_array_equal(alone(x, rnd.default_rng(KEY), 1.0), wanted)
    plain, _, turned = cut(x, rnd.default_rng(KEY))
    np.testing.assert_array_equal(plain, wanted)
    np.testing.assert_array_equal(turned, wanted.T)


def test_a_part_of_what_is_drawn_has_the_numbers_of_the_whole() -> None:
    part = nfuser.fuse(lambda rng: rng.random((1 << 20, 1 << 13))[7::100_000, -1])
    index = np.arange(7, 1 << 20, 100_000, dtype=np.uint64) * np.uint64(1 << 13)
    from tests.random.philox import words_at

    word = words_at(KEY, 0, 0, index + np.uint64((1 << 13) - 1), 64)
    wanted = (word >> np.uint64(11)).astype(np.float64) * 2.0**-53
    np.testing.assert_array_equal(part(rnd.default_rng(KEY)), wanted)


def test_each_call_of_a_fused_function_advances_the_generator() -> None:
    rng = rnd.default_rng(KEY)
    x = np.zeros(5, np.float32)
    for call in range(4):
        wanted = uniform.random(words_of(KEY, call, (5,)), np.float32)
        np.testing.assert_array_equal(noisy(x, rng, 1.0), wanted)
    assert rng.state["call"] == 4


def test_one_trace_and_one_kernel_serve_all_generators() -> None:
    fused = nfuser.fuse(noisy.__wrapped__)
    for seed in range(5):
        for size in (3, 8, 100):
            fused(np.zeros(size, np.float32), rnd.default_rng(seed), 2.0)
    info = fused.cache_info()
    assert info.traces == 1
    assert info.compiled + info.loaded <= 1


def test_draws_in_an_unrolled_loop_count_one_each() -> None:
    @nfuser.fuse
    def walk(x: Any, rng: Any) -> Any:
        for _ in range(3):
            x = x + rng.random(x.shape)
        return x

    rng = rnd.default_rng(KEY)
    wanted = sum(uniform.random(words_of(KEY, call, (9,))) for call in range(3))
    np.testing.assert_allclose(walk(np.zeros(9), rng), wanted, rtol=1e-15)
    assert rng.state["call"] == 3


def test_a_branch_that_is_not_taken_draws_nothing() -> None:
    @nfuser.fuse
    def maybe(x: Any, rng: Any, draws: bool) -> Any:
        return x + rng.random(x.shape) if draws else x

    rng = rnd.default_rng(KEY)
    maybe(np.zeros(3), rng, False)
    assert rng.state["call"] == 0
    maybe(np.zeros(3), rng, True)
    assert rng.state["call"] == 1


OUTSIDE = rnd.default_rng(KEY)


class Layer:
    def __init__(self, rng: Any) -> None:
        self.rng = rng

    @nfuser.fuse
    def forward(self, x: Any) -> Any:
        return x + self.rng.random(x.shape)


def test_generators_are_found_as_captures_attributes_and_in_containers() -> None:
    inner = rnd.default_rng(KEY)
    captured = nfuser.fuse(lambda x: x + inner.random(x.shape))
    held = nfuser.fuse(lambda x, d: x + d["rng"][0].random(x.shape))
    outside = nfuser.fuse(lambda x: x + OUTSIDE.random(x.shape))
    x = np.zeros(6)
    OUTSIDE.state = rnd.default_rng(KEY).state
    layer = Layer(rnd.default_rng(KEY))
    kept = {"rng": [rnd.default_rng(KEY)]}
    for call in range(3):
        wanted = uniform.random(words_of(KEY, call, (6,)))
        for found in (captured(x), held(x, kept), outside(x), layer.forward(x)):
            np.testing.assert_array_equal(found, wanted)
    layer.rng = rnd.default_rng(5)
    wanted = uniform.random(words_of(5, 0, (6,)))
    np.testing.assert_array_equal(layer.forward(x), wanted)


def test_one_generator_under_two_names_is_one() -> None:
    both = nfuser.fuse(lambda x, a, b: (a.random(x.shape), b.random(x.shape)))
    x = np.zeros(4)
    one, other = rnd.default_rng(1), rnd.default_rng(2)
    np.testing.assert_array_equal(
        both(x, one, other),
        [uniform.random(words_of(key, 0, (4,))) for key in (1, 2)],
    )
    same = rnd.default_rng(3)
    for first in (0, 2):
        np.testing.assert_array_equal(
            both(x, same, same),
            [uniform.random(words_of(3, first + k, (4,))) for k in (0, 1)],
        )
    np.testing.assert_array_equal(
        both(x, one, other),
        [uniform.random(words_of(key, 1, (4,))) for key in (1, 2)],
    )


def test_a_generator_that_the_function_makes_starts_anew_in_each_call() -> None:
    fresh = nfuser.fuse(lambda x: x + rnd.default_rng(KEY).random(x.shape))
    wanted = uniform.random(words_of(KEY, 0, (4,)))
    for _ in range(3):
        np.testing.assert_array_equal(fresh(np.zeros(4)), wanted)
    with pytest.raises(TraceError, match=r"^write default_rng\(seed\)"):
        nfuser.fuse(lambda x: x + rnd.default_rng().random(x.shape))(np.zeros(4))


def test_what_raises_leaves_the_generator_as_it_was() -> None:
    rng = rnd.default_rng(KEY)
    broken = nfuser.fuse(lambda x, rng: x + rng.random(x.shape) + np.zeros(7))
    with pytest.raises(NfuserError):
        broken(np.zeros(4), rng)
    with pytest.raises(NfuserError):
        rng.normal(scale=-1)
    assert rng.state["call"] == 0


def test_python_asks_what_was_drawn() -> None:
    """A number of Python's is the one that the generator draws in each call."""

    def decides(x: Any, rng: Any) -> Any:
        return x if float(rng.random()) < 0.5 else -x

    def counts(x: Any, rng: Any) -> Any:
        return x + int(rng.integers(1, 5))

    for function in (decides, counts):
        fused, (mine, own) = nfuser.fuse(function), (rnd.default_rng(1) for _ in "ab")
        got = [fused(np.arange(1.0, 4), mine) for _ in range(8)]
        wanted = [function(np.arange(1.0, 4), own) for _ in range(8)]
        np.testing.assert_array_equal(got, wanted)
        assert len({row.tobytes() for row in wanted}) > 1


def test_threads_share_a_generator_and_never_a_number() -> None:
    rng = rnd.default_rng(KEY)
    x = np.zeros(3, np.float32)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: noisy(x, rng, 1.0).tobytes(), range(200)))
    wanted = {
        uniform.random(words_of(KEY, call, (3,)), np.float32).tobytes()
        for call in range(200)
    }
    assert set(found) == wanted
    assert rng.state["call"] == 200


def test_generators_are_pickled_copied_and_spawned() -> None:
    rng = rnd.default_rng(KEY)
    rng.random(3)
    children = rng.spawn(2)
    for again in (pickle.loads(pickle.dumps(rng)), copy.deepcopy(rng)):
        assert again.state == rng.state
        assert again.random() == copy.copy(rng).random()
    more = rng.spawn(1)
    keys = [child.state["key"] for child in (rng, *children, *more)]
    assert len(set(keys)) == 4
    assert repr(rng) == "Generator(stream=1, key=0x0123456789abcdef, call=1)"


def test_keys_split_and_take_in_integers() -> None:
    key = rnd.key(KEY)
    assert rnd.split(key, 3).tolist() == words(KEY, 0, 254, (3,), 64).tolist()
    assert rnd.fold_in(key, 5) == words(KEY, 5, 253, (), 64)

    @nfuser.fuse
    def steps(key: Any, step: Any) -> Any:
        one, other = rnd.split(rnd.fold_in(key, step))
        return rnd.of(one).random(3), rnd.of(other).random(3)

    one, other = rnd.split(rnd.fold_in(key, 7))
    found = steps(key, 7)
    np.testing.assert_array_equal(found[0], rnd.of(one).random(3))
    np.testing.assert_array_equal(found[1], rnd.of(other).random(3))


def test_seeds_are_integers_of_any_size_and_sequences() -> None:
    keys = [0, 7, 2**64 - 1, 2**64, 2**200, [1, 2], [2, 1], (1, 2, 3)]
    found = [rnd.default_rng(seed).state["key"] for seed in keys]
    assert found[:3] == [0, 7, 2**64 - 1]
    assert len(set(found)) == len(keys)
    assert rnd.default_rng(np.random.SeedSequence(3)).state["key"] > 0
    assert rnd.default_rng().state["key"] != rnd.default_rng().state["key"]
    for bad in (-1, 2.5, "seed", [1, -1]):
        with pytest.raises(ArgumentError):
            rnd.default_rng(bad)


@pytest.mark.parametrize(
    "call",
    [
        lambda r: r.random(-1),
        lambda r: r.random((3, -2)),
        lambda r: r.random(2.5),
        lambda r: r.random(3, np.int32),
        lambda r: r.bernoulli(1.5, 3),
        lambda r: r.normal(0.0, -1.0, 3),
        lambda r: r.integers(5, 2),
        lambda r: r.integers(0, 300, 3, np.uint8),
        lambda r: r.uniform(-1e308, 1e308),
        lambda r: r.choice(3, 4, replace=False),
        lambda r: r.choice(5, -1, replace=False),
        lambda r: r.truncated_normal(np.zeros(3), 1.0),
        lambda r: rnd.fold_in(rnd.key(1), -1),
        lambda r: r.choice(3, p=[0.5, 0.5]),
        lambda r: r.choice(2, p=[0.5, 0.6]),
        lambda r: r.choice([]),
        lambda r: r.truncated_normal(2, 1),
        lambda r: r.normal(np.zeros(3), 1.0, (2, 2)),
    ],
)
def test_bad_input_is_refused_and_draws_nothing(call: Callable[[Any], Any]) -> None:
    rng = rnd.default_rng(KEY)
    with pytest.raises((NfuserError, ValueError)):
        call(rng)
    assert rng.state["call"] == 0


def test_choices_and_orders() -> None:
    rng = rnd.default_rng(KEY)
    assert sorted(rng.permutation(9)) == list(range(9))
    assert sorted(rng.permutation([3.0, 1.0, 2.0])) == [1.0, 2.0, 3.0]
    rows = rng.permuted(np.tile(np.arange(50), (3, 1)), axis=1)
    assert (np.sort(rows, axis=1) == np.arange(50)).all()
    assert (rows[0] != rows[1]).any()
    assert len(set(rng.choice(100, 30, replace=False).tolist())) == 30
    assert set(rng.choice(["a", "b"], 100).tolist()) == {"a", "b"}
    assert set(rng.choice(4, 500, p=[0.5, 0, 0, 0.5]).tolist()) == {0, 3}
    things = list(range(20))
    rng.shuffle(things)
    assert sorted(things) == list(range(20))
    table = np.arange(20).reshape(10, 2)
    rng.shuffle(table)
    assert sorted(table[:, 0]) == list(range(0, 20, 2))
    assert (table[:, 1] == table[:, 0] + 1).all()
    assert rng.categorical(np.ones((5, 3)) / 3).shape == (5,)
    assert rng.dirichlet([1.0, 2.0, 3.0], 4).sum(axis=1) == pytest.approx(1)
    cov = np.array([[1.0, 0.5], [0.5, 2.0]])
    many = rng.multivariate_normal([1.0, 2.0], cov, 100_000)
    assert many.mean(axis=0) == pytest.approx([1, 2], abs=0.03)
    assert np.cov(many.T) == pytest.approx(cov, abs=0.05)
    out = np.empty(3)
    assert rng.random(3, out=out) is out


def test_parameters_that_are_arrays_say_the_shape() -> None:
    rng = rnd.default_rng(KEY)
    assert rng.normal(np.zeros((3, 1)), np.ones(4)).shape == (3, 4)
    fused = nfuser.fuse(lambda m, rng: rng.normal(m, np.float64(2)))
    assert fused(np.zeros((2, 3)), rng).shape == (2, 3)
