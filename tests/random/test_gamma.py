# SPDX-License-Identifier: Apache-2.0

# SciPy carries no types.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

import nfuser
from nfuser.errors import OptionError
from nfuser.random.distributions import gamma
from tests.random.philox import words_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.random.distributions.words import Words

COUNT = 50_000
DRAW = words_of(0x0123456789ABCDEF, 9, (COUNT,))

LAWS: dict[str, tuple[Callable[[Words], Any], Any]] = {
    "gamma below 1": (lambda w: gamma.gamma(w, 0.3, 2.0), stats.gamma(0.3, 0, 2)),
    "gamma of 1": (lambda w: gamma.standard_gamma(w, 1), stats.expon()),
    "gamma": (lambda w: gamma.standard_gamma(w, 7.5), stats.gamma(7.5)),
    "gamma f32": (lambda w: gamma.standard_gamma(w, 7.5, "f4"), stats.gamma(7.5)),
    "chisquare": (lambda w: gamma.chisquare(w, 5), stats.chi2(5)),
    "beta": (lambda w: gamma.beta(w, 0.5, 3), stats.beta(0.5, 3)),
    "f": (lambda w: gamma.f(w, 4, 9), stats.f(4, 9)),
    "standard_t": (lambda w: gamma.standard_t(w, 4), stats.t(4)),
}


@pytest.mark.parametrize("name", LAWS)
def test_numbers_made_of_gamma_numbers_follow_their_law(name: str) -> None:
    draw, law = LAWS[name]
    numbers = draw(DRAW)
    assert stats.kstest(numbers, law.cdf).pvalue > 1e-3
    assert abs(numbers.mean() - law.mean()) < 4 * law.std() / np.sqrt(COUNT)


def test_a_fused_gamma_number_is_that_of_numpy_within_rounding() -> None:
    shapes = np.resize([0.0, 0.4, 1.0, 30.0], 4_000)
    slots = [DRAW(64, slot)[:4_000] for slot in range(gamma.SLOTS)]

    def draw(words: Any, shapes: Any) -> Any:
        return gamma.standard_gamma(lambda bits, slot=0: words[slot], shapes)

    numbers = draw(slots, shapes)
    np.testing.assert_allclose(nfuser.fuse(draw)(slots, shapes), numbers, rtol=1e-10)
    assert (numbers[::4] == 0).all()


def test_dirichlet_parts_sum_to_one_with_their_means() -> None:
    alpha = np.array([0.5, 2.0, 7.5])
    parts = gamma.dirichlet(words_of(5, 5, (20_000, 3)), alpha)
    np.testing.assert_allclose(parts.sum(-1), 1)
    np.testing.assert_allclose(parts.mean(0), alpha / 10, atol=0.005)


def test_shapes_out_of_range_are_refused() -> None:
    with pytest.raises(OptionError, match="write shape >= 0"):
        gamma.standard_gamma(DRAW, -1)
    with pytest.raises(OptionError, match="write a > 0"):
        gamma.beta(DRAW, 0, 1)


def test_beta_and_dirichlet_numbers_of_tiny_parameters_are_zeros_and_ones() -> None:
    tiny = gamma.beta(DRAW, 1e-5, 1e-5)
    assert np.isfinite(tiny).all()
    assert 0.48 < tiny.mean() < 0.52
    assert ((tiny < 1e-3) | (tiny > 1 - 1e-3)).mean() > 0.999
    parts = gamma.dirichlet(words_of(5, 6, (20_000, 3)), np.array([1e-6, 2e-6, 1e-6]))
    np.testing.assert_allclose(parts.sum(-1), 1)
    np.testing.assert_allclose(parts.mean(0), [0.25, 0.5, 0.25], atol=0.02)
