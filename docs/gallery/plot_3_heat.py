# SPDX-License-Identifier: Apache-2.0
"""
A heat equation
===============

A plate with a hot edge, as one writes it first: a loop over time, and an assignment to
the inside of the array. The loop stays a loop of kernels, without Python between them,
and ``u`` really changes.
"""

import matplotlib.pyplot as plt
import numba
import numpy as np
from by_turns import bars, by_turns

import nfuser


def heat(u, steps):
    """Let the plate ``u`` rest for some steps."""
    for _ in range(steps):
        u[1:-1, 1:-1] += 0.2 * (
            u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
        )


fused = nfuser.fuse(heat)


def plate():
    """Return a plate with one hot edge and a hot spot."""
    u = np.zeros((256, 256))
    u[0] = 1.0
    u[150:170, 60:90] = 1.0
    return u


figure, several = plt.subplots(1, 3, figsize=(8, 2.8))
u = plate()
for axes, steps in zip(several, (0, 400, 4000), strict=True):
    fused(u, steps)
    axes.imshow(u, cmap="inferno", vmin=0, vmax=1)
    axes.set_axis_off()
figure.tight_layout()

# %%
# The same numbers as NumPy's, whatever the number of steps, from the same kernels.

ours, theirs = plate(), plate()
fused(ours, 50)
heat(theirs, 50)
print(np.abs(ours - theirs).max() < 1e-12, len(fused.kernels(ours, 50)))

# %%
# In Numba's loops a step needs a second array, which NumPy's meaning implies. JAX writes
# into no array.


@numba.njit
def in_loops(u, steps):
    new = u.copy()
    for _ in range(steps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
                new[i, j] = u[i, j] + 0.2 * (around - 4 * u[i, j])
        u, new = new, u
    return u


print(np.abs(in_loops(plate(), 50) - theirs).max() < 1e-12)
calls = {
    "nfuser": lambda: fused(plate(), 200),
    "NumPy": lambda: heat(plate(), 200),
    "Numba": lambda: in_loops(plate(), 200),
}
bars(by_turns(calls), "200 steps of 256 x 256")
