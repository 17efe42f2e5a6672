# SPDX-License-Identifier: Apache-2.0
"""Sums of a way back that are multiples of one another are added up once."""

# What is differentiated has no static type.
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

import nfuser
from nfuser.compiler.ir.text import text
from nfuser.compiler.rewrite import passes
from nfuser.compiler.rewrite.passes import rewrite
from nfuser.compiler.rewrite.share_derived_sums import share_derived_sums
from tests.differentiate.numeric import agree, numbers
from tests.hand_built import settle, sizes_of, traced
from tests.oracle.fusion_meaning import Evaluator

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.ir.fusion import Fusion

X, T, W = numbers(6, 4), numbers(6, 4, seed=1) - 0.6, numbers(4, seed=2)
EACH = {"x": 0, "t": 1, "w": 2}


def _normalized(x: Any, axes: Any) -> Any:
    c = x - x.mean(axis=axes, keepdims=True)
    return c, np.sqrt((c * c).mean(axis=axes, keepdims=True) + 1e-3)


def _batch_norm(x: Any, w: Any) -> Any:
    c, s = _normalized(x, 0)
    return c / s * w + 2 * w


def _scaled_first(x: Any, w: Any) -> Any:
    c, s = _normalized(x, 0)
    return c * (w / s) + w


def _of_moments(x: Any, w: Any) -> Any:
    return (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + 1e-3) * w - w


def _channels(x: Any, w: Any) -> Any:
    y = x.reshape(3, 2, 4).transpose(0, 2, 1)
    c, s = _normalized(y, (0, 2))
    return (c / s * w[:, None] + w[:, None]).transpose(0, 2, 1).reshape(6, 4)


def _all(x: Any, w: Any) -> Any:
    c, s = _normalized(x, (0, 1))
    return c / s * w[0] + w[1]


SHARED = {
    f.__name__: f for f in (_batch_norm, _scaled_first, _of_moments, _channels, _all)
}


def _back(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, t, w: nfuser.vjp(function, x, w)[1](t)


def _rewritten(function: Callable[..., Any], *arrays: Any) -> Fusion:
    shapes = [np.shape(a) for a in arrays]
    return rewrite(settle(traced(function, *arrays), *shapes)).fusion


def _run(fusion: Fusion, *arrays: Any) -> list[Any]:
    return Evaluator(arrays, sizes_of(*map(np.shape, arrays))).run(fusion)


def _apart(monkeypatch: pytest.MonkeyPatch, *given: Any) -> Fusion:
    """Return the fusion whose sums are not shared."""
    others = tuple(p for p in passes.PASSES if p is not share_derived_sums)
    with monkeypatch.context() as patch:
        patch.setattr(passes, "PASSES", others)
        return _rewritten(*given)


@pytest.mark.parametrize("name", SHARED)
def test_gradients_are_those_of_differences(name: str) -> None:
    agree(lambda x, w: (np.sin(SHARED[name](x, w)) * T).sum(), X, W)


@pytest.mark.parametrize("name", SHARED)
def test_a_norm_adds_up_two_sums_on_its_way_back(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    back = _back(SHARED[name])
    there = len(_rewritten(SHARED[name], X, W).reductions)
    shared = len(_rewritten(back, X, T, W).reductions)
    assert shared == there + 2 < len(_apart(monkeypatch, back, X, T, W).reductions)


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan, 0.0, 1e150, 1e-150])
def test_what_is_finite_or_no_number_is_where_it_was(
    name: str, bad: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    back, rng = _back(SHARED[name]), np.random.default_rng(4)
    shared = _rewritten(back, X, T, W)
    apart = _apart(monkeypatch, back, X, T, W)
    for number in range(6):
        given = [X.copy(), T.copy(), W.copy()]
        given[number % 3].flat[rng.integers(given[number % 3].size)] = bad
        with np.errstate(all="ignore"):
            for found, wanted in zip(
                _run(shared, *given), _run(apart, *given), strict=True
            ):
                finite = np.isfinite(wanted)
                assert (np.isfinite(found) == finite).all()
                assert np.isnan(found[np.isnan(wanted)]).all()
                scale = abs(wanted[finite]).max(initial=1)
                np.testing.assert_allclose(
                    found[finite], wanted[finite], rtol=1e-9, atol=1e-12 * scale
                )


def test_sums_over_no_elements_are_zero_whatever_the_factors() -> None:
    x, w = np.zeros((0, 4)), np.array([np.inf, np.nan, 0.0, 1.0])

    def weighted(x: Any, w: Any, v: Any) -> Any:
        return x * w * v + x * v

    def back(x: Any, w: Any, v: Any) -> Any:
        return nfuser.vjp(weighted, x, w, v)[1](x)

    _, one, other = _run(_rewritten(back, x, w, w), x, w, w)
    assert not one.any()
    assert not other.any()


def test_a_multiple_that_comes_first_waits_for_the_sum(
    golden: Callable[[str], None],
) -> None:
    def back(x: Any, t: Any, w: Any, s: Any) -> Any:
        return nfuser.vjp(lambda s, w: x * w / s, s, w)[1](t)

    golden(re.sub("  # .*", "", text(_rewritten(back, X, T, W, W))))


def test_sums_of_the_function_itself_stay() -> None:
    fusion = _rewritten(lambda x, w: (x.sum(axis=0), (x * w).sum(axis=0)), X, W)
    assert len(fusion.reductions) == 2
    assert share_derived_sums(fusion) is fusion


def test_a_sum_of_more_factors_than_are_looked_at_stays() -> None:
    def back(x: Any, t: Any, w: Any, s: Any) -> Any:
        def many(w: Any, s: Any) -> Any:
            y = x * w
            for _ in range(20):
                y = y * s
            return y

        return nfuser.vjp(many, w, s)[1](t)

    found = _run(_rewritten(back, X, T, W, W), X, T, W, W)
    powers = (X * T).sum(axis=0) * W**20
    np.testing.assert_allclose(found[0], powers, rtol=1e-12)
    np.testing.assert_allclose(found[1], 20 * powers, rtol=1e-12)


@pytest.mark.parametrize(("w", "s", "g"), [(1e300, 1e300, 1e100), (1e-300,) * 3])
def test_factors_that_met_before_the_sum_stay_one(w: float, s: float, g: float) -> None:
    def back(x: Any, t: Any, w: Any, s: Any) -> Any:
        return nfuser.vjp(lambda m, b: (x - m) * (w / s) + b, w, s)[1](t)

    given = X, np.full_like(X, g), np.full(4, w), np.full(4, s)
    fusion = _rewritten(back, *given)
    assert len(fusion.reductions) == 1
    for found, sign in zip(_run(fusion, *given), (-1, 1), strict=True):
        np.testing.assert_allclose(found, sign * 6 * g)


def _scattered(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return numbers of one magnitude of several, and maybe one that is none."""
    found = rng.standard_normal(shape) * 10.0 ** rng.integers(-4, 5)
    found = found.astype(dtype)
    if rng.random() < 0.3:
        found.flat[rng.integers(found.size)] = rng.choice([np.inf, np.nan, 0, 6e4])
    return found


def _weighted(x: Any, w: Any) -> Any:
    return x * w / (w * w + 1) - w * x * x * w


NEARNESS = {"float16": 2e-2, "bfloat16": 2e-1, "float32": 1e-3}


@pytest.mark.parametrize("rows", [5, 6, 50])
@pytest.mark.parametrize("dtype", NEARNESS)
@pytest.mark.parametrize("function", [_batch_norm, _weighted])
def test_in_narrow_dtypes_sums_are_what_they_are_apart(
    function: Callable[..., Any],
    dtype: str,
    rows: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    rng, shapes = np.random.default_rng(rows), ((rows, 4), (rows, 4), (4,))
    back = _back(function)
    given = [_scattered(rng, s, kind) for s in shapes]
    shared, apart = _rewritten(back, *given), _apart(monkeypatch, back, *given)
    assert len(shared.reductions) < len(apart.reductions)
    for _ in range(8):
        given = [_scattered(rng, s, kind) for s in shapes]
        with np.errstate(all="ignore"):
            results = zip(_run(shared, *given), _run(apart, *given), strict=True)
            for found, wanted in (map(_wide, pair) for pair in results):
                finite = np.isfinite(wanted)
                assert (np.isfinite(found) == finite).all()
                assert np.isnan(found[np.isnan(wanted)]).all()
                scale = abs(wanted[finite]).max(initial=0)
                error = abs(found[finite] - wanted[finite]).max(initial=0)
                assert error <= NEARNESS[dtype] * scale


def _wide(x: Any) -> Any:
    return np.asarray(x).astype(np.float64)


def test_sums_of_complex_products_stay() -> None:
    def back(x: Any, t: Any, w: Any) -> Any:
        return nfuser.vjp(lambda w: x * w + np.conj(w) * x, w)[1](t)

    x, w = X + 1j * T, W * (1 - 2j)
    fusion = _rewritten(back, x, x, w)
    assert share_derived_sums(fusion) is fusion


@pytest.mark.parametrize("name", SHARED)
def test_second_derivatives_are_those_of_differences(name: str) -> None:
    def steepness(x: Any, w: Any) -> Any:
        along, scale = nfuser.vjp(SHARED[name], x, w)[1](T)
        return (along * along).sum() + (scale * np.sin(scale)).sum()

    agree(steepness, X, W)


def test_a_sum_with_another_factor_is_no_multiple() -> None:
    def back(x: Any, t: Any, p: Any, q: Any) -> Any:
        return nfuser.vjp(lambda p, q: x * p * q, p, q)[1](t)

    given = X, T, W, W + 1
    found = _run(_rewritten(back, *given), *given)
    plain = (X * T).sum(axis=0)
    np.testing.assert_allclose(found[0], plain * (W + 1), rtol=1e-12)
    np.testing.assert_allclose(found[1], plain * W, rtol=1e-12)
