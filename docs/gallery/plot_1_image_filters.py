# SPDX-License-Identifier: Apache-2.0
"""
Image filters
=============

A blur, edges by Sobel and a tone curve, written with slices as one does in NumPy. All
of it is one kernel: the image is read once, and nothing but the result is written.
"""

import matplotlib.pyplot as plt
import numba
import numpy as np
from by_turns import bars, by_turns, in_jax

import nfuser


def edges(image):
    """Return a softened image with its edges drawn dark."""
    p = np.pad(image, 1, mode="edge")
    up, row, down = p[:-2], p[1:-1], p[2:]
    soft, across = up + 2 * row + down, down - up  # along one axis
    blurred = (soft[:, :-2] + 2 * soft[:, 1:-1] + soft[:, 2:]) / 16
    gx = soft[:, 2:] - soft[:, :-2]
    gy = across[:, :-2] + 2 * across[:, 1:-1] + across[:, 2:]
    return np.clip(blurred**0.8 - 0.15 * np.sqrt(gx * gx + gy * gy), 0, 1)


fused = nfuser.fuse(edges)

# %%
# A picture made by a formula, and what becomes of it.

y, x = np.mgrid[-2:2:600j, -3:3:900j].astype(np.float32)
image = (0.5 + 0.5 * np.sin(4 * np.hypot(x, y) + 2 * np.arctan2(y, x))).astype(
    np.float32
)
image[np.hypot(x - 1, y) < 0.6] = 0.9
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3))
left.imshow(image, cmap="gray")
right.imshow(fused(image), cmap="gray")
for axes in (left, right):
    axes.set_axis_off()
figure.tight_layout()

# %%
# The result is NumPy's, and one kernel does it.

print(np.abs(fused(image) - edges(image)).max() < 1e-5, len(fused.kernels(image)))
print(*fused.explain(image).summary, sep="\n")

# %%
# Numba takes the same as loops over pixels; JAX takes it as it is.


@numba.njit(parallel=True)
def in_loops(image):
    height, width = image.shape
    out = np.empty_like(image)
    for i in numba.prange(height):
        rows = max(i - 1, 0), i, min(i + 1, height - 1)
        for j in range(width):
            left, right = max(j - 1, 0), min(j + 1, width - 1)
            up, row, down = rows
            soft_left = image[up, left] + 2 * image[row, left] + image[down, left]
            soft = image[up, j] + 2 * image[row, j] + image[down, j]
            soft_right = image[up, right] + 2 * image[row, right] + image[down, right]
            gx = soft_right - soft_left
            gy = image[down, left] - image[up, left]
            gy += 2 * (image[down, j] - image[up, j])
            gy += image[down, right] - image[up, right]
            blurred = (soft_left + 2 * soft + soft_right) / np.float32(16)
            tone = blurred ** np.float32(0.8)
            tone -= np.float32(0.15) * np.sqrt(gx * gx + gy * gy)
            out[i, j] = min(max(tone, np.float32(0)), np.float32(1))
    return out


print(np.abs(in_loops(image) - edges(image)).max() < 1e-5)
calls = {
    "nfuser": lambda: fused(image),
    "NumPy": lambda: edges(image),
    "Numba": lambda: in_loops(image),
    **in_jax(edges, image),
}
bars(by_turns(calls), "600 x 900 pixels, float32")
