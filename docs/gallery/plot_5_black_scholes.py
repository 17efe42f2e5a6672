# SPDX-License-Identifier: Apache-2.0
"""
Black-Scholes, and its Greeks
=============================

Prices of options, and their derivatives by ``nfuser.grad``, in one kernel each.
"""

from math import erf as erf_of_one
from math import exp, log, sqrt

import matplotlib.pyplot as plt
import numba
import numpy as np
from by_turns import bars, by_turns, in_jax
from scipy.special import erf

import nfuser
import nfuser.numpy as xp


def price(spot, strike, years, rate, volatility, erf=xp.erf):
    """Return what a call is worth."""
    spread = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / spread
    up, down = (0.5 * (1 + erf(d / np.sqrt(2.0))) for d in (d1, d1 - spread))
    return spot * up - strike * np.exp(-rate * years) * down


fused = nfuser.fuse(price)
greeks = nfuser.grad(lambda *given: price(*given).sum(), argnums=(0, 2, 3, 4))
spot = np.linspace(60, 140, 200)
given = (
    spot,
    np.full(200, 100.0),
    np.full(200, 0.5),
    np.full(200, 0.03),
    np.full(200, 0.25),
)
delta, theta, rho, vega = greeks(*given)
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3))
left.plot(spot, fused(*given), label="price")
left.plot(spot, np.maximum(spot - 100, 0), "--", label="at the end")
right.plot(spot, delta, label="delta")
right.plot(spot, vega / 30, label="vega / 30")
for axes in (left, right):
    axes.set_xlabel("spot")
    axes.legend(frameon=False)
figure.tight_layout()

# %%
rng = np.random.default_rng(0)
many = [
    rng.uniform(*ends, 300_000)
    for ends in ((80, 120), (90, 110), (0.2, 2), (0, 0.1), (0.1, 0.5))
]
print(np.abs(fused(*many) - price(*many, erf=erf)).max() < 1e-10)


# %%
# For Numba the price of one option, and no gradient.


@numba.vectorize(["f8(f8, f8, f8, f8, f8)"], target="parallel")
def of_one(spot, strike, years, rate, volatility):
    spread = volatility * sqrt(years)
    d1 = (log(spot / strike) + (rate + 0.5 * volatility**2) * years) / spread
    up = 0.5 * (1 + erf_of_one(d1 / sqrt(2.0)))
    down = 0.5 * (1 + erf_of_one((d1 - spread) / sqrt(2.0)))
    return spot * up - strike * exp(-rate * years) * down


print(np.abs(of_one(*many) - price(*many, erf=erf)).max() < 1e-10)
calls = {
    "nfuser": lambda: fused(*many),
    "nfuser, four Greeks": lambda: greeks(*many),
    "NumPy and SciPy": lambda: price(*many, erf=erf),
    "Numba": lambda: of_one(*many),
    **in_jax(price, *many, erf="scipy.special.erf"),
}
bars(by_turns(calls), "300,000 options, float64")
