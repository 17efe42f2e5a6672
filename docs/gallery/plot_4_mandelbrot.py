# SPDX-License-Identifier: Apache-2.0
"""
Mandelbrot
==========

How long a point takes to leave. NumPy goes over all points in each turn, and writes
every intermediate array; fused, fifty turns are written down in one kernel, whose
values stay in registers.
"""

import matplotlib.pyplot as plt
import numba
import numpy as np
from by_turns import bars, by_turns, in_jax

import nfuser


def escape(x, y, turns):
    """Return in which turn each point has left the circle of radius 2."""
    a, b, left = x, y, x * 0
    for _ in nfuser.unroll(range(turns)):
        a, b = np.clip(a * a - b * b + x, -4, 4), np.clip(2 * a * b + y, -4, 4)
        left = left + (a * a + b * b < 4)
    return left


fused = nfuser.fuse(escape)
x, y = np.meshgrid(
    np.linspace(-2.2, 0.8, 900, dtype=np.float32),
    np.linspace(-1.2, 1.2, 720, dtype=np.float32),
)
picture = fused(x, y, 50)
figure, axes = plt.subplots(figsize=(6, 4.8))
axes.imshow(picture, cmap="twilight_shifted", extent=(-2.2, 0.8, -1.2, 1.2))
axes.set_axis_off()
figure.tight_layout()

# %%
print((picture == escape(x, y, 50)).mean() > 0.999, len(fused.kernels(x, y, 50)))

# %%
# A loop over points, as one writes it for Numba, may end where a point has left, which no
# function of whole arrays can say. Fused, many points go in one vector.


@numba.njit(parallel=True)
def in_loops(x, y, turns):
    left = np.zeros_like(x)
    for i in numba.prange(x.shape[0]):
        for j in range(x.shape[1]):
            a, b = x[i, j], y[i, j]
            for _ in range(turns):
                a, b = a * a - b * b + x[i, j], 2 * a * b + y[i, j]
                if a * a + b * b >= 4:
                    break
                left[i, j] += 1
    return left


print((in_loops(x, y, 50) == picture).mean() > 0.999)
calls = {
    "nfuser": lambda: fused(x, y, 50),
    "NumPy": lambda: escape(x, y, 50),
    "Numba": lambda: in_loops(x, y, 50),
    **in_jax(escape, x, y, 50),
}
bars(by_turns(calls), "50 turns of 720 x 900 points, float32")
