# SPDX-License-Identifier: Apache-2.0
"""
Image filters
=============

A blur, edges by Sobel and a tone curve, written with slices as one does in NumPy. All
of it is one kernel: the image is read once, and nothing but the result is written.
"""

import matplotlib.pyplot as plt
import numpy as np
from by_turns import bars, by_turns

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
bars(
    by_turns({"nfuser": lambda: fused(image), "NumPy": lambda: edges(image)}),
    "600 x 900 pixels, float32",
)
