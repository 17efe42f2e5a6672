# SPDX-License-Identifier: Apache-2.0
"""Recurrences, filters and series along one axis."""

# Users annotate nothing.
# pyright: basic

import numpy as np

from tests.end_to_end.plain_programs import grids, tables


class Kalman:
    def __init__(self, n):
        self.x = np.zeros(n)
        self.p = np.ones(n)
        self.count = 0

    def update(self, z, q, r):
        self.p += q
        gain = self.p / (self.p + r)
        self.x += gain * (z - self.x)
        self.p *= 1 - gain
        return self.x.copy()


def exponential(x, alpha):
    y = np.empty_like(x)
    y[0] = x[0]
    for i in range(1, x.shape[0]):
        y[i] = alpha * x[i] + (1 - alpha) * y[i - 1]
    return y


def thomas(a, b, c, d):
    n = d.shape[0]
    cp, dp = np.zeros_like(d), np.zeros_like(d)
    cp[0] = c[0] / b[0]
    dp[0] = d[0] / b[0]
    for i in range(1, n):
        m = b[i] - a[i] * cp[i - 1]
        cp[i] = c[i] / m
        dp[i] = (d[i] - a[i] * dp[i - 1]) / m
    x = np.zeros_like(d)
    x[-1] = dp[-1]
    for i in range(n - 2, -1, -1):
        x[i] = dp[i] - cp[i] * x[i + 1]
    return x


def euler(y0, rate, dt, steps):
    y = np.zeros((steps + 1, y0.shape[0]))
    y[0] = y0
    for k in range(steps):
        y[k + 1] = y[k] + dt * (-rate * y[k])
    return y


def runge_kutta(y, dt, steps):
    def slope(y):
        out = np.empty_like(y)
        out[0] = y[1]
        out[1] = -y[0]
        return out

    for _ in range(steps):
        k1 = slope(y)
        k2 = slope(y + dt / 2 * k1)
        k3 = slope(y + dt / 2 * k2)
        k4 = slope(y + dt * k3)
        y = y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


def lorenz(p, steps, dt=0.01):
    x, y, z = p
    for _ in range(steps):
        dx = 10.0 * (y - x)
        dy = x * (28.0 - z) - y
        dz = x * y - 8.0 / 3.0 * z
        x, y, z = x + dt * dx, y + dt * dy, z + dt * dz
    return np.array([x, y, z])


def moving_sum(x, width):
    c = np.cumsum(x)
    out = c.copy()
    out[width:] -= c[:-width]
    return out


def clip_outliers(x, limit):
    m, s = x.mean(), x.std()
    x[x > m + limit * s] = m + limit * s
    x[x < m - limit * s] = m - limit * s
    return x


def fill_missing(x):
    missing = np.isnan(x)
    x[missing] = x[~missing].mean()
    return x


def log_returns(prices):
    r = np.zeros_like(prices)
    r[1:] = np.log(prices[1:] / prices[:-1])
    return r


def drawdown(prices):
    peak = np.maximum.accumulate(prices)
    d = prices / peak - 1.0
    return d.min(), d


def logistic_map(x, r, steps):
    for _ in range(steps):
        x[:] = r * x * (1 - x)


def alternate(x):
    x[::2], x[1::2] = x[1::2].copy(), x[::2].copy()
    return x


def bubble_pass(x):
    even, odd = x[:-1:2].copy(), x[1::2].copy()
    x[:-1:2] = np.minimum(even, odd)
    x[1::2] = np.maximum(even, odd)


def newton(x, tolerance):
    for _ in range(50):
        step = (x * x - 2.0) / (2.0 * x)
        x = x - step
        if np.abs(step).max() < tolerance:
            break
    return x


def horner(coefficients, x):
    y = np.zeros_like(x)
    for c in coefficients:
        y *= x
        y += c
    return y


def collatz(n):
    steps = np.zeros_like(n)
    active = n > 1
    while active.any():
        even = active & (n % 2 == 0)
        odd = active & (n % 2 == 1)
        n[even] //= 2
        n[odd] = 3 * n[odd] + 1
        steps[active] += 1
        active = n > 1
    return steps


def trend(x):
    t = np.arange(x.shape[0], dtype=float)
    t -= t.mean()
    slope = (t * (x - x.mean())).sum() / (t * t).sum()
    x -= slope * t
    return slope


def damped(u, steps):
    for k in range(steps):
        u *= 0.99
        if k % 2 == 0:
            grids.reflect(u)
    return tables.row_norms(u)
