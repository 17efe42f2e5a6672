# SPDX-License-Identifier: Apache-2.0

# SciPy carries no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

import nfuser
from nfuser.errors import OptionError, ShapeError
from nfuser.random.distributions import counts, directions
from tests.random.philox import words_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.random.distributions.words import Words

COUNT = 50_000
DRAW = words_of(0x0123456789ABCDEF, 11, (COUNT,))

LAWS: dict[str, tuple[Callable[[Words], Any], Any]] = {
    "poisson 0.1": (lambda w: counts.poisson(w, 0.1), stats.poisson(0.1)),
    "poisson 15.9": (lambda w: counts.poisson(w, 15.9), stats.poisson(15.9)),
    "poisson 16": (lambda w: counts.poisson(w, 16), stats.poisson(16)),
    "poisson 1234.5": (lambda w: counts.poisson(w, 1234.5), stats.poisson(1234.5)),
    "binomial few": (lambda w: counts.binomial(w, 20, 0.3), stats.binom(20, 0.3)),
    "binomial one": (lambda w: counts.binomial(w, 1, 0.5), stats.binom(1, 0.5)),
    "binomial half": (lambda w: counts.binomial(w, 40, 0.5), stats.binom(40, 0.5)),
    "binomial": (lambda w: counts.binomial(w, 1000, 0.02), stats.binom(1000, 0.02)),
    "binomial most": (lambda w: counts.binomial(w, 300, 0.9), stats.binom(300, 0.9)),
    "negative_binomial": (
        lambda w: counts.negative_binomial(w, 3.5, 0.2),
        stats.nbinom(3.5, 0.2),
    ),
}


@pytest.mark.parametrize("name", LAWS)
def test_counts_follow_their_law(name: str) -> None:
    draw, law = LAWS[name]
    numbers = draw(DRAW)
    assert numbers.dtype == np.int64
    edges = np.unique(law.ppf(np.linspace(0.002, 0.998, 60))).astype(np.int64)
    cuts = np.concatenate([[-np.inf], edges, [np.inf]])
    found = np.histogram(numbers, cuts + 0.5)[0]
    expected = np.diff(law.cdf(cuts)) * COUNT
    kept = expected > 0
    assert found[~kept].sum() == 0
    assert stats.chisquare(found[kept], expected[kept]).pvalue > 1e-3
    assert abs(numbers.mean() - law.mean()) < 4 * law.std() / np.sqrt(COUNT)


@pytest.mark.parametrize("mean", [0.0, 3.0, 30.0, 1e6])
def test_arrays_and_numbers_as_parameters_give_the_same_counts(mean: float) -> None:
    many = np.full(COUNT, mean)
    assert (counts.poisson(DRAW, many) == counts.poisson(DRAW, mean)).all()
    trials = np.full(COUNT, int(4 * mean))
    for p in (0.25, 0.75):
        arrays = counts.binomial(DRAW, trials, np.full(COUNT, p))
        assert (arrays == counts.binomial(DRAW, int(4 * mean), p)).all()


def test_certain_trials_have_certain_counts() -> None:
    assert (counts.poisson(DRAW, 0.0) == 0).all()
    assert (counts.binomial(DRAW, 0, 0.5) == 0).all()
    assert (counts.binomial(DRAW, 1000, 0.0) == 0).all()
    assert (counts.binomial(DRAW, 1000, 1.0) == 1000).all()
    assert (counts.negative_binomial(DRAW, 5, 1.0) == 0).all()


def test_fused_counts_are_those_of_numpy_but_for_ties_in_rounding() -> None:
    means = np.resize([0.0, 0.4, 15.0, 100.0, 1e9], 5_000)
    slots = [DRAW(64, slot)[:5_000] for slot in range(counts.SLOTS)]

    def draw(words: Any, means: Any) -> Any:
        return counts.poisson(lambda bits, slot=0: words[slot], means)

    fused = nfuser.fuse(draw)(slots, means)
    assert (fused == draw(slots, means)).mean() > 0.999


@pytest.mark.parametrize("kappa", [0.0, 1e-3, 1.0, 40.0, 1e8])
def test_angles_follow_the_law_of_von_mises(kappa: float) -> None:
    angles = directions.vonmises(DRAW, 0.0, kappa)
    law = {0.0: stats.uniform(-np.pi, 2 * np.pi), 1e8: stats.norm(0, 1e-4)}
    expected = law.get(kappa) or stats.vonmises(kappa)
    assert stats.kstest(angles, expected.cdf).pvalue > 1e-3
    turned = directions.vonmises(DRAW, 3.0, kappa)
    assert np.abs(turned).max() <= np.pi
    np.testing.assert_allclose(np.cos(turned - 3.0), np.cos(angles), atol=1e-9)


def test_normal_vectors_have_their_mean_and_covariance() -> None:
    mean, factor = (
        np.array([1.0, -2.0, 0.5]),
        np.array([[2, 0, 0], [1, 1, 0], [0, 3, 1]]),
    )
    words = words_of(5, 12, (40_000, 3))
    vectors = directions.multivariate_normal(words, mean, factor @ factor.T)
    whitened = np.linalg.solve(factor, (vectors - mean).T)
    for numbers in (*whitened, whitened.sum(0) / np.sqrt(3)):
        assert stats.kstest(numbers, stats.norm().cdf).pvalue > 1e-3
    with pytest.raises(ShapeError, match="write a mean of n numbers"):
        directions.multivariate_normal(words, mean, np.eye(2))


def test_parameters_out_of_range_are_refused() -> None:
    with pytest.raises(OptionError, match="write lam >= 0"):
        counts.poisson(DRAW, -1)
    with pytest.raises(OptionError, match="write a probability from 0 to 1"):
        counts.binomial(DRAW, 3, 1.5)
    with pytest.raises(OptionError, match="write n >= 0"):
        counts.binomial(DRAW, -3, 0.5)
    with pytest.raises(OptionError, match="write p > 0"):
        counts.negative_binomial(DRAW, 3, 0)
    with pytest.raises(OptionError, match="write kappa >= 0"):
        directions.vonmises(DRAW, 0, -1)
