# SPDX-License-Identifier: Apache-2.0
"""
N bodies
========

All pairs of bodies attract each other. In NumPy the distances are arrays of n x n;
fused, they are made where they are added up, and never stored.
"""

import matplotlib.pyplot as plt
import numba
import numpy as np
from by_turns import by_turns, in_jax, lines

import nfuser


def pull(x, y, mass):
    """Return the acceleration of each body."""
    dx, dy = x[None, :] - x[:, None], y[None, :] - y[:, None]
    pulled = mass[None, :] / (dx * dx + dy * dy + 1e-3) ** 1.5
    return (dx * pulled).sum(axis=1), (dy * pulled).sum(axis=1)


fused = nfuser.fuse(pull)
rng = np.random.default_rng(1)
n = 400
radius, angle = np.sqrt(rng.uniform(0.05, 1, n)), rng.uniform(0, 2 * np.pi, n)
x, y, mass = radius * np.cos(angle), radius * np.sin(angle), np.full(n, 1 / n)
vx, vy = -0.8 * y, 0.8 * x
figure, several = plt.subplots(1, 3, figsize=(8, 2.8))
for axes in several:
    axes.plot(x, y, ".", markersize=2)
    axes.set(xlim=(-1.6, 1.6), ylim=(-1.6, 1.6), xticks=(), yticks=(), aspect="equal")
    for _ in range(60):
        ax, ay = fused(x, y, mass)
        vx, vy = vx + 0.02 * ax, vy + 0.02 * ay
        x, y = x + 0.02 * vx, y + 0.02 * vy
figure.tight_layout()

# %%
# Numba takes the same as two loops; JAX takes it as it is.


@numba.njit(parallel=True)
def in_loops(x, y, mass):
    ax, ay = np.zeros_like(x), np.zeros_like(x)
    for i in numba.prange(len(x)):
        for j in range(len(x)):
            dx, dy = x[j] - x[i], y[j] - y[i]
            pulled = mass[j] / (dx * dx + dy * dy + 1e-3) ** 1.5
            ax[i] += dx * pulled
            ay[i] += dy * pulled
    return ax, ay


sizes, found = [128, 512, 2048], []
for n in sizes:
    x, y, mass = rng.standard_normal((3, n))
    ours, theirs = fused(x, y, mass), pull(x, y, mass)
    assert np.allclose(ours, theirs)
    assert np.allclose(in_loops(x, y, mass), theirs)
    calls = {
        "nfuser": lambda given=(x, y, mass): fused(*given),
        "NumPy": lambda given=(x, y, mass): pull(*given),
        "Numba": lambda given=(x, y, mass): in_loops(*given),
        **in_jax(pull, x, y, mass),
    }
    found.append(by_turns(calls))
lines(sizes, found, "one step, float64", "bodies")
