# SPDX-License-Identifier: Apache-2.0
"""Gradients of random programs are those of differences, and those of JAX."""

# Arrays of any library have no static type.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

import nfuser
from tests.differentiate.calls import Derived, Tally, check, of_jax, within
from tests.differentiate.numeric import differences, gradients, meaning
from tests.differentiate.programs import random_program

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MANY = range(1000, 1048)


def _function(seed: int) -> tuple[Callable[..., Any], list[Any]]:
    program = random_program(seed, 4 + seed % 9)
    return lambda *args: program.run(np, *args), program.arguments()


def _close(found: Sequence[Any], wanted: Sequence[Any], tolerance: float) -> None:
    for one, other in zip(found, wanted, strict=True):
        scale = 1 + np.abs(other).max(initial=0)
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("seed", MANY)
def test_gradients_are_those_of_differences(seed: int) -> None:
    function, xs = _function(seed)
    _close(gradients(function, *xs), differences(function, *xs), 2e-4)


@pytest.mark.parametrize("seed", MANY[::3])
def test_tangents_pair_with_gradients(seed: int) -> None:
    function, xs = _function(seed)
    tangents = [np.cos(3 * x + 1) for x in xs]

    def pushed(xs: Any, tangents: Any) -> Any:
        return nfuser.jvp(function, xs, tangents)[1]

    forward = meaning(nfuser.fuse(pushed), tuple(xs), tuple(tangents))
    pairs = zip(gradients(function, *xs), tangents, strict=True)
    backward = sum(float((g * t).sum()) for g, t in pairs)
    assert abs(forward - backward) <= 1e-9 * (1 + abs(backward))


@pytest.mark.parametrize("seed", MANY[::4])
def test_gradients_of_gradients_are_those_of_differences(seed: int) -> None:
    function, xs = _function(seed)
    everywhere = tuple(range(len(xs)))
    weights = [np.sin(2 * x + 1) for x in xs]

    def along(xs: Any, weights: Any) -> Any:
        slopes = nfuser.grad(function, argnums=everywhere)(*xs)
        return sum((g * w).sum() for g, w in zip(slopes, weights, strict=True))

    found = meaning(nfuser.grad(along), tuple(xs), tuple(weights))
    # The slope along the weights of each gradient, by differences of gradients.
    step = 1e-6
    sides = [
        gradients(function, *(x + s * w for x, w in zip(xs, weights, strict=True)))
        for s in (step, -step)
    ]
    _close(found, [(a - c) / (2 * step) for a, c in zip(*sides, strict=True)], 1e-3)


@pytest.mark.parametrize("seed", MANY[:3])
def test_kernels_compute_what_gradients_mean(seed: int) -> None:
    function, xs = _function(seed)
    slope = nfuser.grad(function, argnums=tuple(range(len(xs))))
    _close(slope(*xs), meaning(slope, *xs), 1e-12)


@pytest.mark.parametrize("seed", MANY[:3])
def test_gradients_are_those_of_jax(seed: int) -> None:
    pytest.importorskip("jax")
    function, xs = _function(seed)
    wanted = of_jax(random_program(seed, 4 + seed % 9), xs)
    _close(gradients(function, *xs), wanted, 1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_gradients_of_narrow_floats_are_near_those_of_wide_ones(dtype: Any) -> None:
    import ml_dtypes

    def loss(x: Any, w: Any) -> Any:
        centred = x - x.mean(axis=-1, keepdims=True)
        spread = (centred * centred).mean(axis=-1, keepdims=True)
        return (np.tanh(centred / np.sqrt(spread + 1e-3) * w) ** 2).sum()

    rng = np.random.default_rng(0)
    xs = [rng.standard_normal((4, 33)), rng.standard_normal(33)]
    narrow = [x.astype(dtype) for x in xs]
    found = nfuser.grad(loss, argnums=(0, 1))(*narrow)
    wanted = gradients(loss, *(x.astype(np.float64) for x in narrow))
    unit = float(ml_dtypes.finfo(dtype).eps)
    assert [g.dtype for g in found] == [x.dtype for x in narrow]
    _close([g.astype(np.float64) for g in found], wanted, 8 * unit)


def test_calls_in_every_dtype_are_right() -> None:
    tally = check(1003, "cpu")
    assert tally.calls == 2 * 4
    assert not tally.problems


@pytest.mark.parametrize("seed", [210210, 210213])
def test_steep_functions_and_the_least_of_sines_are_right(seed: int) -> None:
    assert not check(seed, "cpu").problems


def test_a_gradient_that_is_off_by_more_than_rounding_is_found() -> None:
    function, xs = _function(1003)
    derived = Derived(function, len(xs), "cpu")
    exact = derived.meaning(xs)
    meant = exact()
    for off, count in ((1e-14, 0), (1e-9, len(xs))):
        tally = Tally()
        found = [g * (1 + off) + off for g in meant]
        within(tally, "", found, exact, 2**-51)
        assert len(tally.problems) == count
