# SPDX-License-Identifier: Apache-2.0
"""
A gradient of one's own
=======================

Rounding has no slope, so nothing behind it could learn. A *straight-through* estimate
lets the gradient pass as if nothing had been rounded. ``nfuser.custom_vjp`` says so, and
the whole step of training stays one fused function.
"""

import matplotlib.pyplot as plt
import numpy as np

import nfuser


@nfuser.custom_vjp
def quantized(w):
    """Return weights rounded to quarters."""
    return np.round(w * 4) / 4


quantized.defvjp(lambda w: (quantized(w), None), lambda _, slope: (slope,))


def loss(w, x, y):
    """Return the error of a model whose weights are few bits each."""
    return ((x @ quantized(w) - y) ** 2).mean()


@nfuser.fuse
def step(w, x, y):
    value, slope = nfuser.value_and_grad(loss)(w, x, y)
    return value, w - 0.05 * slope


rng = np.random.default_rng(0)
x, true = rng.standard_normal((400, 6)), np.array([0.5, -1.25, 2.0, 0.0, -0.75, 1.5])
y, w, values = x @ true, np.zeros(6), []
for _ in range(60):
    value, w = step(w, x, y)
    values.append(value)
figure, axes = plt.subplots(figsize=(6.4, 3))
axes.semilogy(np.maximum(values, 1e-6), color="#2f9e44")
axes.set_xlabel("step")
axes.set_ylabel("loss")
figure.tight_layout()

# %%
print(np.round(w * 4) / 4, step.cache_info().traces)
