# SPDX-License-Identifier: Apache-2.0
"""Matrices, points and tables."""

# Users annotate nothing.
# pyright: basic

import numpy as np

from tests.end_to_end.plain_programs import grids, series

counts = {"calls": np.zeros(1), "seen": np.zeros(7)}


def standardize(x):
    x = x - x.mean(axis=0)
    s = x.std(axis=0)
    s[s == 0] = 1.0
    x /= s
    return x


def row_norms(x):
    n = np.sqrt((x * x).sum(axis=1))
    n[n < 1e-12] = 1.0
    return x / n[:, None]


def distances(p):
    d = np.sqrt(((p[:, None, :] - p[None, :, :]) ** 2).sum(-1))
    np.fill_diagonal(d, np.inf)
    return d, d.argmin(axis=1)


def jacobi_solve(a, b, iterations):
    x = np.zeros_like(b)
    d = np.diag(a)
    r = a - np.diag(d)
    for _ in range(iterations):
        x = (b - r @ x) / d
    return x


def power_iteration(a, iterations):
    v = np.ones(a.shape[0])
    for _ in range(iterations):
        v = a @ v
        v /= np.sqrt(v @ v)
    return v @ (a @ v)


def gram_schmidt(a):
    q = np.zeros_like(a)
    for j in range(a.shape[1]):
        v = a[:, j].copy()
        for k in range(j):
            v -= (q[:, k] @ a[:, j]) * q[:, k]
        q[:, j] = v / np.sqrt(v @ v)
    return q


def cholesky_by_hand(a):
    n = a.shape[0]
    l = np.zeros_like(a)
    for j in range(n):
        l[j, j] = np.sqrt(a[j, j] - (l[j, :j] * l[j, :j]).sum())
        for i in range(j + 1, n):
            l[i, j] = (a[i, j] - (l[i, :j] * l[j, :j]).sum()) / l[j, j]
    return l


def k_means(points, centres, steps):
    for _ in range(steps):
        d = ((points[:, None] - centres[None]) ** 2).sum(-1)
        nearest = d.argmin(1)
        for k in range(centres.shape[0]):
            mine = nearest == k
            if mine.any():
                centres[k] = points[mine].mean(axis=0)
    return centres


def one_hot(labels, classes):
    out = np.zeros((labels.shape[0], classes))
    out[np.arange(labels.shape[0]), labels] = 1.0
    return out


def relu_layer(x, w, b):
    z = x @ w + b
    z[z < 0] = 0
    return z


def batch_norm(x, gamma, beta, running):
    mean, var = x.mean(axis=0), x.var(axis=0)
    running[0] = 0.9 * running[0] + 0.1 * mean
    running[1] = 0.9 * running[1] + 0.1 * var
    return gamma * (x - mean) / np.sqrt(var + 1e-5) + beta


def sgd(w, x, y, rate, epochs):
    for _ in range(epochs):
        g = x.T @ (x @ w - y) / x.shape[0]
        w -= rate * g
    return w


def max_pool(x):
    n, m = x.shape[0] // 2, x.shape[1] // 2
    out = np.zeros((n, m))
    for i in range(2):
        for j in range(2):
            np.maximum(out, x[i : 2 * n : 2, j : 2 * m : 2], out=out)
    return out


def convolve(image, kernel):
    k = kernel.shape[0] // 2
    out = np.zeros_like(image)
    padded = np.pad(image, k)
    for i in range(kernel.shape[0]):
        for j in range(kernel.shape[1]):
            out += kernel[i, j] * padded[i : i + image.shape[0], j : j + image.shape[1]]
    return out


def threshold_image(image, low, high):
    out = np.zeros_like(image)
    strong = image >= high
    weak = (image >= low) & ~strong
    out[strong] = 1.0
    out[weak] = 0.5
    out[strong] *= image[strong]
    return out


def note(x):
    counts["calls"][0] += 1
    counts["seen"][1:-1] += x[0, 1:-1]
    return counts["calls"][0]


def upper_mean(x):
    mask = np.triu(np.ones(x.shape, dtype=bool), 1)
    return x[mask].mean(), x[mask].std()


def sorted_rows(x):
    x.sort(axis=1)
    x[:, 0] = -1
    return x


def blend(u, v, w):
    grids.reflect(u)
    s = series.exponential(w, 0.5)
    u[0, : s.shape[0]] = s
    return u + v
