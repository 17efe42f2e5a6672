# SPDX-License-Identifier: Apache-2.0
"""The distributions, as methods of whatever random words are drawn from."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.random.choosing import Choosing, array_of, axes_of
from nfuser.random.distributions import (
    counts,
    directions,
    exponential,
    gamma,
    normal,
    uniform,
)
from nfuser.random.distributions.words import is_number

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.random.distributions.words import Array, Words


class Distributions(Choosing):
    """Methods that draw: in a fused function within its kernels, elsewhere at once.

    ``size`` is a number or a tuple; without one, the parameters say the shape.
    ``like`` is an array of the library, and on the device, that the numbers are to be
    of; in a fused function they are where its arrays are.
    """

    def random(
        self,
        size: Any = None,
        dtype: Any = np.float64,
        out: Any = None,
        *,
        like: Any = None,
    ) -> Array:
        """Return numbers of [0, 1): multiples of 2^-53, or of 2^-24 in f32."""
        found = self._draw(uniform.random, (), size, like, dtype=dtype)
        return _written(found, out)

    def uniform(
        self,
        low: Any = 0.0,
        high: Any = 1.0,
        size: Any = None,
        dtype: Any = np.float64,
        *,
        like: Any = None,
    ) -> Array:
        """Return numbers from ``low`` to ``high``."""
        return self._draw(uniform.uniform, (low, high), size, like, dtype=dtype)

    def bernoulli(self, p: Any = 0.5, size: Any = None, *, like: Any = None) -> Array:
        """Return True with probability ``p``."""
        return self._draw(uniform.bernoulli, (p,), size, like)

    def standard_normal(
        self,
        size: Any = None,
        dtype: Any = np.float64,
        out: Any = None,
        *,
        like: Any = None,
    ) -> Array:
        """Return normal numbers of mean 0 and deviation 1."""
        found = self._draw(normal.standard_normal, (), size, like, dtype=dtype)
        return _written(found, out)

    def normal(
        self,
        loc: Any = 0.0,
        scale: Any = 1.0,
        size: Any = None,
        dtype: Any = np.float64,
        *,
        like: Any = None,
    ) -> Array:
        """Return normal numbers."""
        return self._draw(normal.normal, (loc, scale), size, like, dtype=dtype)

    def lognormal(
        self,
        mean: Any = 0.0,
        sigma: Any = 1.0,
        size: Any = None,
        dtype: Any = np.float64,
        *,
        like: Any = None,
    ) -> Array:
        """Return numbers whose logarithms are normal."""
        return self._draw(normal.lognormal, (mean, sigma), size, like, dtype=dtype)

    def standard_exponential(
        self,
        size: Any = None,
        dtype: Any = np.float64,
        out: Any = None,
        *,
        like: Any = None,
    ) -> Array:
        """Return exponential numbers of mean 1."""
        found = self._draw(
            exponential.standard_exponential, (), size, like, dtype=dtype
        )
        return _written(found, out)

    def exponential(
        self,
        scale: Any = 1.0,
        size: Any = None,
        dtype: Any = np.float64,
        *,
        like: Any = None,
    ) -> Array:
        """Return exponential numbers."""
        return self._draw(exponential.exponential, (scale,), size, like, dtype=dtype)

    def laplace(
        self,
        loc: Any = 0.0,
        scale: Any = 1.0,
        size: Any = None,
        dtype: Any = np.float64,
        *,
        like: Any = None,
    ) -> Array:
        """Return numbers of Laplace's distribution."""
        return self._draw(exponential.laplace, (loc, scale), size, like, dtype=dtype)

    def logistic(
        self,
        loc: Any = 0.0,
        scale: Any = 1.0,
        size: Any = None,
        dtype: Any = np.float64,
        *,
        like: Any = None,
    ) -> Array:
        """Return logistic numbers."""
        return self._draw(exponential.logistic, (loc, scale), size, like, dtype=dtype)

    def standard_cauchy(
        self, size: Any = None, dtype: Any = np.float64, *, like: Any = None
    ) -> Array:
        """Return numbers of Cauchy's distribution."""
        return self._draw(exponential.standard_cauchy, (), size, like, dtype=dtype)

    def gumbel(
        self,
        loc: Any = 0.0,
        scale: Any = 1.0,
        size: Any = None,
        dtype: Any = np.float64,
        *,
        like: Any = None,
    ) -> Array:
        """Return numbers of Gumbel's distribution."""
        return self._draw(exponential.gumbel, (loc, scale), size, like, dtype=dtype)

    def rayleigh(
        self,
        scale: Any = 1.0,
        size: Any = None,
        dtype: Any = np.float64,
        *,
        like: Any = None,
    ) -> Array:
        """Return numbers of Rayleigh's distribution."""
        return self._draw(exponential.rayleigh, (scale,), size, like, dtype=dtype)

    def weibull(
        self, a: Any, size: Any = None, dtype: Any = np.float64, *, like: Any = None
    ) -> Array:
        """Return numbers of Weibull's distribution."""
        return self._draw(exponential.weibull, (a,), size, like, dtype=dtype)

    def pareto(
        self, a: Any, size: Any = None, dtype: Any = np.float64, *, like: Any = None
    ) -> Array:
        """Return numbers of Lomax's distribution, as NumPy's."""
        return self._draw(exponential.pareto, (a,), size, like, dtype=dtype)

    def power(
        self, a: Any, size: Any = None, dtype: Any = np.float64, *, like: Any = None
    ) -> Array:
        """Return numbers of [0, 1] with density ``a * x**(a - 1)``."""
        return self._draw(exponential.power, (a,), size, like, dtype=dtype)

    def triangular(
        self,
        left: Any,
        mode: Any,
        right: Any,
        size: Any = None,
        dtype: Any = np.float64,
        *,
        like: Any = None,
    ) -> Array:
        """Return numbers of a triangle."""
        return self._draw(
            exponential.triangular, (left, mode, right), size, like, dtype=dtype
        )

    def geometric(self, p: Any, size: Any = None, *, like: Any = None) -> Array:
        """Return how many trials the first success takes."""
        return self._draw(exponential.geometric, (p,), size, like)

    def standard_gamma(
        self,
        shape: Any,
        size: Any = None,
        dtype: Any = np.float64,
        out: Any = None,
        *,
        like: Any = None,
    ) -> Array:
        """Return gamma numbers of scale 1."""
        found = self._draw(gamma.standard_gamma, (shape,), size, like, dtype=dtype)
        return _written(found, out)

    def gamma(
        self,
        shape: Any,
        scale: Any = 1.0,
        size: Any = None,
        dtype: Any = np.float64,
        *,
        like: Any = None,
    ) -> Array:
        """Return gamma numbers."""
        return self._draw(gamma.gamma, (shape, scale), size, like, dtype=dtype)

    def chisquare(
        self, df: Any, size: Any = None, dtype: Any = np.float64, *, like: Any = None
    ) -> Array:
        """Return sums of ``df`` squares of normal numbers."""
        return self._draw(gamma.chisquare, (df,), size, like, dtype=dtype)

    def beta(
        self,
        a: Any,
        b: Any,
        size: Any = None,
        dtype: Any = np.float64,
        *,
        like: Any = None,
    ) -> Array:
        """Return beta numbers."""
        return self._draw(gamma.beta, (a, b), size, like, dtype=dtype)

    def f(
        self,
        dfnum: Any,
        dfden: Any,
        size: Any = None,
        dtype: Any = np.float64,
        *,
        like: Any = None,
    ) -> Array:
        """Return numbers of Fisher's distribution."""
        return self._draw(gamma.f, (dfnum, dfden), size, like, dtype=dtype)

    def standard_t(
        self, df: Any, size: Any = None, dtype: Any = np.float64, *, like: Any = None
    ) -> Array:
        """Return numbers of Student's distribution."""
        return self._draw(gamma.standard_t, (df,), size, like, dtype=dtype)

    def poisson(self, lam: Any = 1.0, size: Any = None, *, like: Any = None) -> Array:
        """Return how often what is rare happens."""
        return self._draw(counts.poisson, (lam,), size, like)

    def binomial(self, n: Any, p: Any, size: Any = None, *, like: Any = None) -> Array:
        """Return how many of ``n`` trials succeed."""
        return self._draw(counts.binomial, (n, p), size, like)

    def negative_binomial(
        self, n: Any, p: Any, size: Any = None, *, like: Any = None
    ) -> Array:
        """Return failures before ``n`` successes."""
        return self._draw(counts.negative_binomial, (n, p), size, like)

    def vonmises(
        self, mu: Any, kappa: Any, size: Any = None, *, like: Any = None
    ) -> Array:
        """Return angles around ``mu``."""
        return self._draw(directions.vonmises, (mu, kappa), size, like)

    def integers(
        self,
        low: Any,
        high: Any = None,
        size: Any = None,
        dtype: Any = np.int64,
        endpoint: bool = False,
        *,
        like: Any = None,
    ) -> Array:
        """Return integers from ``low`` up to ``high``, which ``endpoint`` counts in.

        One bound alone is the upper one, of integers from 0.
        """
        bounds = (0, low) if high is None else (low, high)
        options = {"dtype": dtype, "endpoint": bool(endpoint)}
        return self._draw(uniform.integers, bounds, size, like, **options)

    def truncated_normal(
        self,
        low: float,
        high: float,
        size: Any = None,
        dtype: Any = np.float64,
        *,
        like: Any = None,
    ) -> Array:
        """Return normal numbers between ``low`` and ``high``."""
        are_known = is_number(low) and is_number(high)
        make = _between if are_known else _truncated_between
        return self._draw(make(low, high), (), size, like, dtype=dtype)

    def dirichlet(
        self, alpha: Any, size: Any = None, dtype: Any = np.float64, *, like: Any = None
    ) -> Array:
        """Return numbers that sum to 1 along a last axis, of weights ``alpha``."""
        weights = array_of(alpha)
        shape = (*axes_of(size), *weights.shape)
        return self._draw(gamma.dirichlet, (weights,), shape, like, dtype=dtype)

    def multivariate_normal(
        self, mean: Any, cov: Any, size: Any = None, *, like: Any = None
    ) -> Array:
        """Return normal vectors along a last axis; ``cov`` is positive definite."""
        turn = directions.turning(mean, cov)
        shape = (*axes_of(size), np.shape(mean)[-1])
        return self._draw(normal.standard_normal, (), shape, like) @ turn + mean


def _truncated_between(low: Any, high: Any) -> Callable[..., Any]:
    return partial(_truncated, low=low, high=high)


_between = lru_cache(256)(_truncated_between)
"""The same function for the same bounds: a trace is found by it."""


def _truncated(words: Words, low: float, high: float, dtype: Any) -> Array:
    return normal.truncated_normal(words, low, high, dtype)


def _written(found: Array, out: Any) -> Array:
    if out is None:
        return found
    out[...] = found
    return out
