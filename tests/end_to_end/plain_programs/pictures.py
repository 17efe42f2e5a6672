# SPDX-License-Identifier: Apache-2.0
"""Pictures, automata and fields."""

# Users annotate nothing.
# pyright: basic

import numpy as np

from tests.end_to_end.plain_programs import choices, motions

NEIGHBOURS = ((-1, 0), (1, 0), (0, -1), (0, 1))
GREY = np.array([0.299, 0.587, 0.114])


def shifted(a, dy, dx, fill=0):
    out = np.full_like(a, fill)
    h, w = a.shape
    out[max(dy, 0) : h + min(dy, 0), max(dx, 0) : w + min(dx, 0)] = a[
        max(-dy, 0) : h + min(-dy, 0), max(-dx, 0) : w + min(-dx, 0)
    ]
    return out


def sobel(image, threshold=None):
    p = np.pad(image, 1, mode="edge")
    gx = (p[:-2, 2:] + 2 * p[1:-1, 2:] + p[2:, 2:]) - (
        p[:-2, :-2] + 2 * p[1:-1, :-2] + p[2:, :-2]
    )
    gy = (p[2:, :-2] + 2 * p[2:, 1:-1] + p[2:, 2:]) - (
        p[:-2, :-2] + 2 * p[:-2, 1:-1] + p[:-2, 2:]
    )
    magnitude = np.hypot(gx, gy)
    if threshold is not None:
        magnitude[magnitude < threshold] = 0
    return magnitude, np.arctan2(gy, gx)


def median3(image):
    h, w = image.shape
    stack = []
    for dy in range(3):
        for dx in range(3):
            stack.append(image[dy : h - 2 + dy, dx : w - 2 + dx])
    result = image.copy()
    result[1:-1, 1:-1] = np.median(np.array(stack), axis=0)
    return result


def box_blur(image, r=1):
    h, w = image.shape
    table = np.zeros((h + 1, w + 1))
    table[1:, 1:] = image.cumsum(axis=0).cumsum(axis=1)
    y0 = np.clip(np.arange(h) - r, 0, h)
    y1 = np.clip(np.arange(h) + r + 1, 0, h)
    x0 = np.clip(np.arange(w) - r, 0, w)
    x1 = np.clip(np.arange(w) + r + 1, 0, w)
    total = table[y1][:, x1] - table[y0][:, x1] - table[y1][:, x0] + table[y0][:, x0]
    return total / ((y1 - y0)[:, None] * (x1 - x0)[None, :])


def gaussian_blur(image, sigma, truncate=3.0):
    radius = int(truncate * sigma + 0.5)
    x = np.arange(-radius, radius + 1)
    kernel = np.exp(-0.5 * x**2 / sigma**2)
    kernel /= kernel.sum()
    out = image.astype(float)
    for axis in range(image.ndim):
        widths = [(0, 0)] * image.ndim
        widths[axis] = (radius, radius)
        padded = np.pad(out, widths, mode="reflect")
        out = np.zeros(image.shape)
        for k, weight in enumerate(kernel):
            where = [slice(None)] * image.ndim
            where[axis] = slice(k, k + image.shape[axis])
            out += weight * padded[tuple(where)]
    return out


def dilate(mask):
    out = mask.copy()
    for dy, dx in NEIGHBOURS:
        out |= shifted(mask, dy, dx, False)
    return out


def opening(mask, n=1):
    for _ in range(n):
        mask = ~dilate(~mask)
    for _ in range(n):
        mask = dilate(mask)
    return mask


def flood(passable, seed):
    region = np.zeros_like(passable)
    region[seed] = passable[seed]
    rounds = 0
    while True:
        grown = dilate(region) & passable
        if (grown == region).all():
            break
        region = grown
        rounds += 1
    return region, rounds


def equalize(image):
    histogram = np.bincount(image.ravel(), minlength=256)
    cdf = histogram.cumsum()
    first = cdf[cdf > 0].min(initial=image.size)
    lut = np.round((cdf - first) * 255.0 / max(image.size - first, 1))
    return lut.astype(np.uint8)[image]


def otsu(image, bins=32):
    counts, edges = np.histogram(image, bins=bins)
    centers = (edges[:-1] + edges[1:]) / 2
    w1 = np.cumsum(counts)
    w2 = np.cumsum(counts[::-1])[::-1]
    m1 = np.cumsum(counts * centers) / np.maximum(w1, 1)
    m2 = (np.cumsum((counts * centers)[::-1]) / np.maximum(w2[::-1], 1))[::-1]
    between = w1[:-1] * w2[1:] * (m1[:-1] - m2[1:]) ** 2
    return centers[np.argmax(between)]


def dither(image):
    a = image.astype(float)
    h, w = a.shape
    for y in range(h):
        for x in range(w):
            old = a[y, x]
            new = 1.0 if old > 0.5 else 0.0
            a[y, x] = new
            error = old - new
            if x + 1 < w:
                a[y, x + 1] += error * 7 / 16
            if y + 1 < h:
                if x > 0:
                    a[y + 1, x - 1] += error * 3 / 16
                a[y + 1, x] += error * 5 / 16
                if x + 1 < w:
                    a[y + 1, x + 1] += error * 1 / 16
    return a


def ising(spins, uniforms, beta):
    n, m = spins.shape
    parity = np.add.outer(np.arange(n), np.arange(m)) % 2
    energies = np.empty(len(uniforms))
    for t in range(len(uniforms)):
        for colour in (0, 1):
            field = (
                np.roll(spins, 1, 0)
                + np.roll(spins, -1, 0)
                + np.roll(spins, 1, 1)
                + np.roll(spins, -1, 1)
            )
            flip = (uniforms[t] < np.exp(-2.0 * beta * spins * field)) & (
                parity == colour
            )
            spins[flip] *= -1
        energies[t] = -(spins * (np.roll(spins, 1, 0) + np.roll(spins, 1, 1))).sum()
    return energies


def sandpile(grid):
    topplings = 0
    while (grid >= 4).any():
        over = grid >= 4
        grid[over] -= 4
        for dy, dx in NEIGHBOURS:
            grid += shifted(over.astype(grid.dtype), dy, dx)
        topplings += over.sum()
    return grid, topplings


def wolfram(start, steps, rule=110):
    table = np.array([(rule >> k) & 1 for k in range(8)], dtype=start.dtype)
    history = np.zeros((steps + 1, len(start)), dtype=start.dtype)
    history[0] = start
    for t in range(steps):
        row = history[t]
        history[t + 1] = table[4 * np.roll(row, 1) + 2 * row + np.roll(row, -1)]
    return history


def v_cycle(u, f, h, smoothings=2):
    def relax(v, times):
        for _ in range(times):
            v[1:-1] += (2.0 / 3.0) * (
                0.5 * (v[2:] + v[:-2] + h * h * f[1:-1]) - v[1:-1]
            )

    relax(u, smoothings)
    if len(u) > 3:
        residual = np.zeros_like(u)
        residual[1:-1] = f[1:-1] + (u[2:] - 2 * u[1:-1] + u[:-2]) / h**2
        coarse = residual[::2].copy()
        coarse[1:-1] += (
            0.5 * (residual[1:-3:2] - 2 * residual[2:-2:2] + residual[3:-1:2]) * 0.5
        )
        correction = v_cycle(np.zeros_like(coarse), coarse, 2 * h, smoothings)
        u[::2] += correction
        u[1::2] += 0.5 * (correction[1:] + correction[:-1])
    relax(u, smoothings)
    return u


def sor(u, f, omega=1.5, tolerance=1e-6, most=100):
    n, m = u.shape
    for sweep in range(most):
        change = 0.0
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                r = (
                    u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - f[i, j]
                ) / 4 - u[i, j]
                u[i, j] += omega * r
                change = max(change, abs(r))
        if change < tolerance:
            break
    else:
        sweep = -1
    return sweep


def crank_nicolson(u, r, steps):
    n = len(u)
    lower = np.full(n, -r / 2)
    upper = np.full(n, -r / 2)
    middle = np.full(n, 1 + r)
    lower[0] = upper[0] = lower[-1] = upper[-1] = 0
    middle[[0, -1]] = 1
    trace = np.empty(steps)
    for k in range(steps):
        right = u.copy()
        right[1:-1] += r / 2 * (u[2:] - 2 * u[1:-1] + u[:-2])
        u[:] = motions.tridiagonal(lower, middle, upper, right)
        trace[k] = u.mean()
    return trace


def hsv_to_rgb(hsv):
    h, s, v = hsv[..., 0], hsv[..., 1], hsv[..., 2]
    i = np.floor(h * 6).astype(int)
    f = h * 6 - i
    p, q, t = v * (1 - s), v * (1 - f * s), v * (1 - (1 - f) * s)
    i %= 6
    conditions = [i == k for k in range(6)]
    rgb = np.empty_like(hsv)
    for c, parts in enumerate(
        [(v, q, p, p, t, v), (t, v, v, q, p, p), (p, p, t, v, v, q)]
    ):
        rgb[..., c] = np.select(conditions, parts)
    return rgb, rgb @ GREY


def denoise(image, weight=0.1, rounds=20, eps=1e-3):
    p = np.zeros((2,) + image.shape)
    d = np.zeros_like(image)
    before = np.inf
    for i in range(rounds):
        if i > 0:
            d = -p.sum(0)
            d[1:] += p[0, :-1]
            d[:, 1:] += p[1, :, :-1]
            out = image + d
        else:
            out = image
        energy = (d**2).sum()
        g = np.zeros_like(p)
        g[0, :-1] = np.diff(out, axis=0)
        g[1, :, :-1] = np.diff(out, axis=1)
        norm = np.sqrt((g**2).sum(axis=0))
        energy += weight * norm.sum()
        p -= 0.25 * g
        p /= 1 + norm * 0.25 / weight
        if abs(before - energy) < eps * image.size:
            break
        before = energy
    return out


def shock_tube(rho, momentum, energy, dt, dx, steps, gamma=1.4):
    q = np.array([rho, momentum, energy])

    def flux(q):
        velocity = q[1] / q[0]
        pressure = (gamma - 1) * (q[2] - 0.5 * q[1] * velocity)
        return np.array(
            [q[1], q[1] * velocity + pressure, velocity * (q[2] + pressure)]
        ), np.abs(velocity) + np.sqrt(gamma * pressure / q[0])

    for _ in range(steps):
        f, speed = flux(q)
        a = np.maximum(speed[1:], speed[:-1])
        face = 0.5 * (f[:, 1:] + f[:, :-1]) - 0.5 * a * (q[:, 1:] - q[:, :-1])
        q[:, 1:-1] -= dt / dx * (face[:, 1:] - face[:, :-1])
    return q, choices.row_total(q)
