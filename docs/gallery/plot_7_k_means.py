# SPDX-License-Identifier: Apache-2.0
"""
A step of k-means
=================

Each point is given to the nearest centre, and each centre goes to the middle of its
points. The distances are never stored.
"""

import matplotlib.pyplot as plt
import numba
import numpy as np
from by_turns import bars, by_turns, in_jax

import nfuser
import nfuser.numpy as xp


def step(points, centres):
    """Return the centres after one step, and whose each point is."""
    away = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=-1)
    nearest = away.argmin(axis=1)
    is_of = nearest[:, None] == xp.arange(centres.shape[0])[None, :]
    counts = is_of.sum(axis=0)
    sums = (is_of[:, :, None] * points[:, None, :]).sum(axis=0)
    return sums / np.maximum(counts, 1)[:, None], nearest


fused = nfuser.fuse(step)
rng = np.random.default_rng(0)
points = np.concatenate(
    [rng.normal(c, 0.35, (400, 2)) for c in ((0, 0), (2, 1), (1, 3))]
)
centres = points[::400]
for _ in range(12):
    centres, nearest = fused(points, centres)
figure, axes = plt.subplots(figsize=(5, 3.6))
axes.scatter(*points.T, c=nearest, s=5, cmap="viridis")
axes.plot(*centres.T, "r*", markersize=14)
axes.set_axis_off()
figure.tight_layout()

# %%
# In loops, as one writes it for Numba, a point is added to the one centre that is its.


@numba.njit
def in_loops(points, centres):
    nearest = np.empty(len(points), np.int64)
    sums, counts = np.zeros_like(centres), np.zeros(len(centres))
    for i in range(len(points)):
        least = np.inf
        for j in range(len(centres)):
            away = 0.0
            for k in range(points.shape[1]):
                away += (points[i, k] - centres[j, k]) ** 2
            if away < least:
                least, nearest[i] = away, j
        sums[nearest[i]] += points[i]
        counts[nearest[i]] += 1
    return sums / np.maximum(counts, 1)[:, None], nearest


many, few = rng.standard_normal((20_000, 3)), rng.standard_normal((16, 3))
ours, theirs = fused(many, few), step(many, few)
print(np.allclose(ours[0], theirs[0]), (ours[1] == theirs[1]).all())
assert np.allclose(in_loops(many, few)[0], theirs[0])
calls = {
    "nfuser": lambda: fused(many, few),
    "NumPy": lambda: step(many, few),
    "Numba": lambda: in_loops(many, few),
    **in_jax(step, many, few),
}
bars(by_turns(calls), "20,000 points of 3 numbers, 16 centres")
