# SPDX-License-Identifier: Apache-2.0
"""What loops and choices of ``nfuser.lax`` give: what Python gives on plain arrays."""

# Carried values have no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
import nfuser.random as rnd
from nfuser import config, lax
from nfuser.compiler.trace.call import tree

if TYPE_CHECKING:
    from collections.abc import Callable

Function = Any
RNG = np.random.default_rng(0)
U = RNG.standard_normal((5, 7))
F = U.astype(np.float32)
Z = U + 1j * U[::-1]
N = np.arange(5)


def written(u: Any) -> Any:
    view = u[1:]  # of an array that is written before the loop
    u = u + view[0]
    view = u[1:]
    u[0] = 2

    def step(i: Any, state: Any) -> Any:
        s, total = state
        s[1:-1] += 0.25 * (s[2:] - s[:-2])
        s *= 0.5
        return s, total + s[i] + view[0]

    return lax.fori_loop(0, 4, step, (u, u[0]))


def nested(u: Any) -> Any:
    def row(i: Any, s: Any) -> Any:
        return lax.fori_loop(0, 4, lambda j, q: q * 0.5 + j * i + u[i], s)

    return lax.fori_loop(0, 3, row, u)


def counted_by_the_outer(u: Any) -> Any:
    def row(i: Any, s: Any) -> Any:
        return lax.fori_loop(0, i + 1, lambda j, q: q + j * i, s)

    return lax.fori_loop(0, 3, row, u)


def scan_in_scan(u: Any) -> Any:
    def row(c: Any, x: Any) -> Any:
        return c * 0.5, lax.scan(lambda d, y: (d + y, d * y), c, x)

    return lax.scan(row, 1.0, u)


CASES: dict[str, tuple[Function, tuple[Any, ...]]] = {
    "a carried array": (
        lambda u: lax.fori_loop(0, 5, lambda i, s: s * 0.5 + i, u),
        (U,),
    ),
    "two that change places": (
        lambda u: lax.fori_loop(0, 5, lambda i, s: (s[1] + i, s[0] * 0.5), (u, u + 1)),
        (U,),
    ),
    "neighbours": (
        lambda u: lax.fori_loop(0, 9, lambda _, s: (s + np.roll(s, 1, 1)) / 2, u),
        (F,),
    ),
    "rows": (
        lambda u: lax.fori_loop(1, 5, lambda i, s: s + u[i] * u[i - 1], 0 * u[0]),
        (U,),
    ),
    "a number that becomes f32": (
        lambda u: lax.fori_loop(0, 5, lambda i, s: s + u[i].sum(), 0.0),
        (F,),
    ),
    "numbers of Python's": (
        lambda n: lax.fori_loop(2, n, lambda i, s: s * 3 + i, 1),
        (9,),
    ),
    "bounds the wrong way round": (
        lambda x, n, m: lax.fori_loop(n, m, lambda i, s: s + i, x),
        (U, 9, 7),
    ),
    "as many as a size": (
        lambda u: lax.fori_loop(0, u.shape[0], lambda i, s: s + u[i, 0], 0.0),
        (U,),
    ),
    "as many as an element": (
        lambda n: lax.fori_loop(0, n.max(), lambda i, s: s + i, 0),
        (N,),
    ),
    "an argument by value": (
        lambda u, dt: lax.fori_loop(0, 3, lambda i, s: s + dt * i, u),
        (U, 0.5),
    ),
    "places compared with i": (
        lambda u: lax.fori_loop(
            0, 3, lambda i, s: np.where(np.arange(7) == i, -s, s), u
        ),
        (U,),
    ),
    "a dictionary": (
        lambda u: lax.fori_loop(
            0, 3, lambda _, s: {"x": s["x"] + s["y"], "y": s["y"]}, {"x": u, "y": 2.0}
        ),
        (U,),
    ),
    "complex numbers": (
        lambda z: lax.fori_loop(0, 5, lambda _, s: s * s * 0.3 + z, z * 0),
        (Z,),
    ),
    "16-bit floats": (
        lambda x: lax.fori_loop(0, 5, lambda _, s: s * 2 + 1, x),
        (np.arange(6, dtype=np.float16),),
    ),
    "truth values": (lambda x: lax.fori_loop(0, 5, lambda _, s: ~s, x), (U > 0,)),
    "columns": (
        lambda u: lax.fori_loop(0, 3, lambda _, s: s * 2, u),
        (np.asfortranarray(U),),
    ),
    "parts": (
        lambda u: lax.fori_loop(0, 3, lambda _, s: s * 2 + u[1:, 1:], u[1:, 1:]),
        (U,),
    ),
    "nothing to compute": (
        lambda u: lax.fori_loop(0, 3, lambda _, s: (s[1], s[0]), (u, u + 1)),
        (U,),
    ),
    "no elements": (lambda u: lax.fori_loop(0, 3, lambda _, s: s + 1, u), (U[:0],)),
    "reductions": (
        lambda u: lax.fori_loop(0, 3, lambda _, s: s / np.abs(s).sum(), u),
        (U,),
    ),
    "products": (
        lambda u: lax.fori_loop(0, 5, lambda _, s: s @ u[:, :5] / 4, u[:, :5]),
        (U,),
    ),
    "sorts": (
        lambda u: lax.fori_loop(0, 3, lambda _, s: np.sort(-s, axis=-1), u),
        (U,),
    ),
    "while": (
        lambda u: lax.while_loop(lambda s: s.max() < 100, lambda s: s * 2, abs(u)),
        (U,),
    ),
    "while a number": (
        lambda u: lax.while_loop(
            lambda s: s[1] < 9, lambda s: (s[0] + s[1], s[1] + 2), (u, 0)
        ),
        (U,),
    ),
    "while never": (
        lambda u: lax.while_loop(lambda s: s.max() < -9, lambda s: s * 2, u),
        (U,),
    ),
    "scan": (
        lambda u: lax.scan(lambda c, x: (c * 0.5 + x, c + x.sum()), 0 * u[0], u),
        (U,),
    ),
    "scan from the end": (
        lambda u: lax.scan(lambda c, x: (c * 0.5 + x, c), 0 * u[0], u, reverse=True),
        (U,),
    ),
    "scan of nothing": (
        lambda u: lax.scan(lambda c, _: (c * 0.5, None), u, None, length=4),
        (U,),
    ),
    "scan of no rows": (
        lambda u: lax.scan(lambda c, x: (c + 1, x * 2), 1.0, u),
        (U[:0],),
    ),
    "scan of a nest": (
        lambda u: lax.scan(
            lambda c, x: (c + x["a"].sum(), (x["a"] * 2, x["b"])),
            0.0,
            {"a": u, "b": u[:, 0]},
        ),
        (U,),
    ),
    "scan of complex rows": (
        lambda z: lax.scan(lambda c, x: (c + x, c * x), z[0] * 0, z),
        (Z,),
    ),
    "scan of products": (lambda u: lax.scan(lambda c, x: (c + 1, u @ x), 0, u), (U,)),
    "map": (lambda u: lax.map(lambda row: row / row.sum(), u), (U,)),
    "cond": (
        lambda u: lax.cond(u.sum() > 0, lambda x: x + 1, lambda x: x - 1, u),
        (U,),
    ),
    "cond otherwise": (
        lambda u: lax.cond(u.sum() < 0, lambda x: x + 1, lambda x: x - 1, u),
        (U,),
    ),
    "dear cond": (
        lambda u: lax.cond(
            u.sum() > 0,
            lambda x: (x @ x.T, x.sum()),
            lambda x: (x @ x.T * 2, x.max()),
            u,
        ),
        (U,),
    ),
    "dear cond otherwise": (
        lambda u: lax.cond(
            u.sum() < 0,
            lambda x: (x @ x.T, x.sum()),
            lambda x: (x @ x.T * 2, x.max()),
            u,
        ),
        (U,),
    ),
    "nested": (nested, (U,)),
    "carried arrays that are written": (written, (U,)),
    "rows that are written": (
        lambda u: lax.scan(lambda c, x: (c + x[0], x.__imul__(2)), 0.0, u),
        (U,),
    ),
    "counted by the outer loop": (counted_by_the_outer, (U,)),
    "scan in scan": (scan_in_scan, (U,)),
    "nothing carried": (
        lambda u: (lax.fori_loop(0, 3, lambda i, s: s, ()), u + 1),
        (U,),
    ),
}


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
@pytest.mark.parametrize("name", CASES)
def test_a_fused_loop_gives_what_python_gives(name: str, backend: str) -> None:
    function, args = CASES[name]
    given = [np.copy(x, "K") if isinstance(x, np.ndarray) else x for x in args]
    fused = nfuser.fuse(function, backend=backend)
    for _ in range(1 if backend == "interpret" else 4):  # native from the third on
        same(fused(*args), function(*args))
    same(args, tuple(given))


def same(found: Any, wanted: Any) -> None:
    pairs = [tree.flatten(x) for x in (found, wanted)]
    assert pairs[0][1] == pairs[1][1]
    for a, b in zip(pairs[0][0], pairs[1][0], strict=True):
        assert (np.shape(a), np.asarray(a).dtype) == (np.shape(b), np.asarray(b).dtype)
        np.testing.assert_allclose(a, b, rtol=2e-6)


@pytest.mark.parametrize("trips", [0, 1, 2, 3, 1000])
def test_any_number_of_iterations_has_one_trace_and_one_set_of_kernels(
    trips: int,
) -> None:
    fused = nfuser.fuse(lambda x, n: lax.fori_loop(0, n, lambda _, s: s * 0.5 + 1, x))
    for n in (trips, trips + 1):
        wanted = U
        for _ in range(n):
            wanted = wanted * 0.5 + 1
        np.testing.assert_array_equal(fused(U, n), wanted)
    info = fused.cache_info()
    assert (info.traces, info.concretizations, info.runtimes) == (1, 1, 1)


def test_results_share_no_memory_with_arguments_or_each_other() -> None:
    fused = nfuser.fuse(
        lambda x, n: lax.fori_loop(0, n, lambda _, s: (s[1], s[0]), (x, x))
    )
    for n in (0, 1, 2):
        x = U.copy()
        first, second = fused(x, n)
        assert not np.shares_memory(first, x)
        assert not np.shares_memory(second, x)
        assert not np.shares_memory(first, second)


def test_an_output_that_is_given_is_written() -> None:
    fused = nfuser.fuse(lambda x, n: lax.fori_loop(0, n, lambda _, s: s + 1, x))
    for n in (3, 4):
        out = np.empty_like(U)
        assert fused.bind(U, n, out=out)() is out
        np.testing.assert_allclose(out, U + n)


def test_only_the_dear_side_of_a_choice_that_is_taken_runs() -> None:
    def function(x: Any, n: Any) -> Any:
        endless = lambda: lax.while_loop(lambda s: s[0] > -1, lambda s: s, x)  # noqa: E731
        return lax.cond(n > x[0], lambda: x * 2, endless)

    np.testing.assert_array_equal(nfuser.fuse(function)(np.ones(2), 3), np.full(2, 2.0))


def test_draws_by_keys_are_others_in_each_iteration() -> None:
    def function(x: Any, key: Any) -> Any:
        def step(i: Any, s: Any) -> Any:
            return s + rnd.of(rnd.fold_in(key, i)).random(3)

        return lax.fori_loop(0, 4, step, x)

    key = rnd.key(5)
    wanted = sum(rnd.of(rnd.fold_in(key, i)).random(3) for i in range(4))
    np.testing.assert_allclose(nfuser.fuse(function)(np.zeros(3), key), wanted)


def test_switched_off_python_runs_loops() -> None:
    turns: list[Any] = []

    def step(i: Any, s: Any) -> Any:
        turns.append(i)
        return s + i

    with config.override(disable_all=True):
        assert nfuser.fuse(lambda x: lax.fori_loop(0, 3, step, x))(1) == 4
    assert turns == [0, 1, 2]


# -- random programs ---------------------------------------------------------

_STEPS: list[Callable[[Any, Any, Any], Any]] = [
    lambda s, u, i: s * 0.5 + u,
    lambda s, u, i: np.roll(s, 1, axis=0) * 0.5 - u * 0.25,
    lambda s, u, i: s - s.mean(axis=1, keepdims=True),
    lambda s, u, i: np.where(s > i, s * 0.5, s + 0.125),
    lambda s, u, i: s * 0.5 + u[i % 5],
    lambda s, u, i: np.concatenate([s[1:], s[:1]]) + 0.5,
    lambda s, u, i: np.maximum(s[::-1], u) - 1,
    lambda s, u, i: s / (1 + abs(s).max()),
    lambda s, u, i: (s.T @ u / 8).T[:5, :5] @ s / 8,
    lambda s, u, i: np.cumsum(s, axis=0) / 4,
    lambda s, u, i: lax.fori_loop(0, 2, lambda j, q: q * 0.5 + i + j, s),
]


@pytest.mark.parametrize("seed", range(12))
def test_random_bodies_give_what_python_gives(seed: int) -> None:
    rng = np.random.default_rng(seed)
    u = rng.standard_normal((5, 5))
    chosen = [rng.choice(len(_STEPS), 3) for _ in range(2)]

    def function(u: Any, v: Any, n: Any) -> Any:
        def body(i: Any, state: Any) -> Any:
            made = []
            for own, numbers in zip(state, chosen, strict=True):
                for number in numbers:
                    own = _STEPS[number](own, u, i)
                made.append(own)
            return tuple(made[::-1])

        return lax.fori_loop(0, n, body, (u, v))

    fused = nfuser.fuse(function)
    for n in (0, 1, 4, 7):
        args = (u, u[::-1] * 2, n)
        same(fused(*args), function(*args))
