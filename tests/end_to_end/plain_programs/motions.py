# SPDX-License-Identifier: Apache-2.0
"""Systems that move, filters, prices and signals."""

# Users annotate nothing.
# pyright: basic

import numpy as np

from tests.end_to_end.plain_programs import choices, pictures

DAYS = 252
defaults = {"rate": 0.03, "strike": 1.0}


def tridiagonal(a, b, c, d):
    n = len(d)
    b, d = b.copy(), d.copy()
    for i in range(1, n):
        w = a[i] / b[i - 1]
        b[i] = b[i] - w * c[i - 1]
        d[i] = d[i] - w * d[i - 1]
    x = np.empty(n)
    x[-1] = d[-1] / b[-1]
    for i in reversed(range(n - 1)):
        x[i] = (d[i] - c[i] * x[i + 1]) / b[i]
    return x


def rk4(f, y, dt):
    k1 = f(y)
    k2 = f(y + 0.5 * dt * k1)
    k3 = f(y + 0.5 * dt * k2)
    k4 = f(y + dt * k3)
    return y + dt * (k1 + 2 * k2 + 2 * k3 + k4) / 6


def van_der_pol(y0, mu, dt, n):
    path = [y0]
    for _ in range(n):
        path.append(
            rk4(
                lambda y: np.array([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]]),
                path[-1],
                dt,
            )
        )
    return np.array(path)


def adaptive(y, end, tolerance=1e-4):
    def slope(y):
        return -2.0 * y + np.sin(y)

    t, h, steps = 0.0, 0.1, 0
    while t < end:
        h = min(h, end - t)
        k1 = slope(y)
        k2 = slope(y + h * k1)
        error = np.abs(0.5 * h * (k2 - k1)).max()
        if error <= tolerance:
            t += h
            y = y + 0.5 * h * (k1 + k2)
            steps += 1
        h *= min(2.0, max(0.2, 0.9 * np.sqrt(tolerance / (error + 1e-12))))
    return y, steps


class Tracker:
    def __init__(self, dt, q=0.1, r=0.5):
        self.F = np.array([[1.0, dt], [0.0, 1.0]])
        self.H = np.array([[1.0, 0.0]])
        self.Q = q * np.eye(2)
        self.R = np.array([[r]])
        self.x = np.zeros(2)
        self.P = np.eye(2)

    def predict(self):
        self.x = self.F @ self.x
        self.P = self.F @ self.P @ self.F.T + self.Q

    def correct(self, z):
        S = self.H @ self.P @ self.H.T + self.R
        K = self.P @ self.H.T @ np.linalg.inv(S)
        self.x = self.x + K @ (z - self.H @ self.x)
        self.P = (np.eye(2) - K @ self.H) @ self.P

    def follow(self, measured):
        found = np.zeros((len(measured), 2))
        for i in range(len(measured)):
            self.predict()
            self.correct(measured[i : i + 1])
            found[i] = self.x
        return found


def biquad(x, b, a):
    y = np.zeros(len(x))
    z1 = z2 = 0.0
    for n in range(len(x)):
        y[n] = b[0] * x[n] + z1
        z1 = b[1] * x[n] - a[1] * y[n] + z2
        z2 = b[2] * x[n] - a[2] * y[n]
    return y


def fir(x, taps):
    y = np.zeros(x.shape)
    for k, tap in enumerate(taps):
        if k == 0:
            y += tap * x
        else:
            y[k:] += tap * x[:-k]
    return y


def asian_option(spot, sigma, normals, **options):
    options = {**defaults, **options}
    steps, paths = normals.shape
    dt = 1.0 / DAYS
    drift = (options["rate"] - 0.5 * sigma**2) * dt
    prices = spot * np.exp(np.cumsum(drift + sigma * np.sqrt(dt) * normals, axis=0))
    payoff = np.maximum(prices.mean(axis=0) - options["strike"], 0)
    discounted = np.exp(-options["rate"] * steps * dt) * payoff
    return {"price": discounted.mean(), "error": discounted.std() / np.sqrt(paths)}


def american_put(spot, strikes, sigma, rate, n):
    dt = 1.0 / n
    up = np.exp(sigma * np.sqrt(dt))
    p = (np.exp(rate * dt) - 1 / up) / (up - 1 / up)
    values = np.maximum(strikes[:, None] - spot * up ** (2.0 * np.arange(n + 1) - n), 0)
    for i in range(n - 1, -1, -1):
        prices = spot * up ** (2.0 * np.arange(i + 1) - i)
        values = np.exp(-rate * dt) * (p * values[:, 1:] + (1 - p) * values[:, :-1])
        values = np.maximum(values, strikes[:, None] - prices)
    return values[:, 0]


def garch(returns, omega, alpha, beta):
    variance = np.empty_like(returns)
    variance[0] = returns.var()
    for t in range(1, len(returns)):
        variance[t] = omega + alpha * returns[t - 1] ** 2 + beta * variance[t - 1]
    return -0.5 * np.sum(np.log(variance) + returns**2 / variance)


def running(x):
    mean, m2, low, high = 0.0, 0.0, np.inf, -np.inf
    count = 0
    for value in x:
        count += 1
        delta = value - mean
        mean += delta / count
        m2 += delta * (value - mean)
        low = min(low, value)
        high = max(high, value)
    return {"mean": mean, "var": m2 / max(count, 1), "range": (low, high)}


def moving_median(x, width=3):
    half = width // 2
    padded = np.concatenate([np.repeat(x[0], half), x, np.repeat(x[-1], half)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, width)
    return np.median(windows, axis=1)


def autocorrelation(x, lags):
    x = x - x.mean()
    out = np.ones(lags)
    scale = (x * x).sum()
    for k in range(1, lags):
        out[k] = (x[k:] * x[:-k]).sum() / scale
    return out


def anneal(x, uniforms, moves, temperature=1.0, cooling=0.95):
    energy = lambda v: (v**2).sum() - np.cos(3 * v).sum()
    best, best_energy = x.copy(), energy(x)
    current = best_energy
    accepted = 0
    for i in range(len(uniforms)):
        candidate = x + moves[i]
        e = energy(candidate)
        if e < current or uniforms[i] < np.exp((current - e) / temperature):
            x, current = candidate, e
            accepted += 1
            if e < best_energy:
                best, best_energy = candidate, e
        temperature *= cooling
    return best, best_energy, accepted


def metropolis(start, steps, uniforms, logp=lambda x: -0.5 * x * x):
    chain = np.zeros(len(steps))
    x, accepted = start, 0
    for i, (step, u) in enumerate(zip(steps, uniforms)):
        proposal = x + step
        if np.log(u) < logp(proposal) - logp(x):
            x = proposal
            accepted += 1
        chain[i] = x
    return chain, accepted / max(len(steps), 1)


def spline(xp, fp, x):
    h = np.diff(xp)
    slopes = np.diff(fp) / h
    n = len(xp)
    a, b, c, d = np.zeros(n), np.ones(n), np.zeros(n), np.zeros(n)
    a[1:-1], c[1:-1] = h[:-1], h[1:]
    b[1:-1] = 2 * (h[:-1] + h[1:])
    d[1:-1] = 6 * (slopes[1:] - slopes[:-1])
    m = tridiagonal(a, b, c, d)
    k = np.clip(np.searchsorted(xp, x) - 1, 0, n - 2)
    left, right = x - xp[k], xp[k + 1] - x
    return (
        (m[k] * right**3 + m[k + 1] * left**3) / (6 * h[k])
        + (fp[k] / h[k] - m[k] * h[k] / 6) * right
        + (fp[k + 1] / h[k] - m[k + 1] * h[k] / 6) * left
    )


def pendulums(state, dt, steps, g=9.81):
    energies = []
    for _ in range(steps):
        state["omega"] -= dt * g * np.sin(state["theta"])
        state["theta"] += dt * state["omega"]
        energies.append(0.5 * state["omega"] ** 2 - g * np.cos(state["theta"]))
    return np.array(energies).max(axis=0) if energies else None


def springs(x, v, i, j, rest, dt, steps):
    for _ in range(steps):
        d = x[j] - x[i]
        length = np.linalg.norm(d, axis=1)
        pull = ((length - rest) / length)[:, None] * d
        force = np.zeros_like(x)
        np.add.at(force, i, pull)
        np.subtract.at(force, j, pull)
        v += dt * force
        v *= 0.999
        x += dt * v
    return 0.5 * (v**2).sum()


def goertzel(x, bin):
    w = 2 * np.pi * bin / len(x)
    coefficient = 2 * np.cos(w)
    s1, s2 = 0.0, 0.0
    for sample in x:
        s1, s2 = sample + coefficient * s1 - s2, s1
    return np.sqrt(s1**2 + s2**2 - coefficient * s1 * s2)


def longest_run(x):
    best = current = 0
    for i in range(len(x)):
        if x[i]:
            current += 1
            if current > best:
                best = current
        else:
            current = 0
    return best


def peaks(x, height, smooth=None):
    if smooth:
        x = pictures.gaussian_blur(x, smooth)
    is_peak = np.zeros(len(x), bool)
    is_peak[1:-1] = (x[1:-1] > x[:-2]) & (x[1:-1] >= x[2:])
    is_peak &= x > height
    gaps = choices.distance_to_true(is_peak)
    return is_peak, gaps, np.count_nonzero(is_peak)
