# SPDX-License-Identifier: Apache-2.0
"""Stencils, waves and flows on grids."""

# Users annotate nothing.
# pyright: basic

import numpy as np

from tests.end_to_end.plain_programs import series, tables

C0 = 0.5
state = np.zeros((6, 7))


def laplacian(u):
    out = np.zeros_like(u)
    out[1:-1, 1:-1] = (
        u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
    )
    return out


def reflect(u):
    u[0, :] = u[1, :]
    u[-1, :] = u[-2, :]
    u[:, 0] = u[:, 1]
    u[:, -1] = u[:, -2]


def diffuse(u, steps, alpha):
    for _ in range(steps):
        u += alpha * laplacian(u)
        reflect(u)
    return u


def gray_scott(u, v, steps, f=0.035, k=0.065):
    for _ in range(steps):
        uvv = u * v * v
        u += 0.16 * laplacian(u) - uvv + f * (1 - u)
        v += 0.08 * laplacian(v) + uvv - (f + k) * v
        reflect(u)
        reflect(v)
    return v.sum()


def wave_1d(u, previous, c, steps):
    for _ in range(steps):
        following = np.empty_like(u)
        following[1:-1] = (
            2 * u[1:-1] - previous[1:-1] + c**2 * (u[2:] - 2 * u[1:-1] + u[:-2])
        )
        following[0] = following[-1] = 0.0
        previous, u = u, following
    return u


def upwind(q, velocity, dt, dx, steps):
    for _ in range(steps):
        q[1:] = q[1:] - velocity * dt / dx * (q[1:] - q[:-1])
        q[0] = q[-1]
    return q


def lax_wendroff(q, c):
    new = q.copy()
    new[1:-1] = (
        q[1:-1]
        - 0.5 * c * (q[2:] - q[:-2])
        + 0.5 * c * c * (q[2:] - 2 * q[1:-1] + q[:-2])
    )
    return new


def burgers(u, dt, dx, nu, steps):
    for _ in range(steps):
        un = u.copy()
        u[1:-1] = (
            un[1:-1]
            - un[1:-1] * dt / dx * (un[1:-1] - un[:-2])
            + nu * dt / dx**2 * (un[2:] - 2 * un[1:-1] + un[:-2])
        )
        u[0] = un[0] - un[0] * dt / dx * (un[0] - un[-2])
        u[-1] = u[0]


def laplace_to(p, target):
    change = 1.0
    while change > target:
        before = p.copy()
        p[1:-1, 1:-1] = 0.25 * (
            before[1:-1, 2:] + before[1:-1, :-2] + before[2:, 1:-1] + before[:-2, 1:-1]
        )
        reflect(p)
        p[-1, :] = 1.0
        change = np.abs(p - before).sum() / np.abs(before).sum()
    return p


def red_black(u, f, sweeps):
    for _ in range(sweeps):
        for start in (0, 1):
            u[1 + start : -1 : 2, 1:-1] = 0.25 * (
                u[start:-2:2, 1:-1]
                + u[2 + start :: 2, 1:-1]
                + u[1 + start : -1 : 2, :-2]
                + u[1 + start : -1 : 2, 2:]
                - f[1 + start : -1 : 2, 1:-1]
            )


def life(board, generations):
    for _ in range(generations):
        n = (
            board[:-2, :-2]
            + board[:-2, 1:-1]
            + board[:-2, 2:]
            + board[1:-1, :-2]
            + board[1:-1, 2:]
            + board[2:, :-2]
            + board[2:, 1:-1]
            + board[2:, 2:]
        )
        inner = board[1:-1, 1:-1]
        birth = (n == 3) & (inner == 0)
        survive = ((n == 2) | (n == 3)) & (inner == 1)
        board[...] = 0
        board[1:-1, 1:-1][birth | survive] = 1
    return board


def shallow_water(h, u, v, dt, steps):
    for _ in range(steps):
        u[1:-1, :] -= dt * (h[2:, :] - h[:-2, :])
        v[:, 1:-1] -= dt * (h[:, 2:] - h[:, :-2])
        h[1:-1, 1:-1] -= dt * (u[2:, 1:-1] - u[:-2, 1:-1] + v[1:-1, 2:] - v[1:-1, :-2])
    return h.mean(), u, v


def smooth_then_normalize(u, passes):
    diffuse(u, passes, 0.1)
    return tables.standardize(u)


def keep_state(u):
    state[...] = C0 * state + u
    state[0] += 1.0
    return state.sum()


def sponge(field, width):
    for k in range(width):
        field[k, :] *= 1 - 0.1 * (width - k)
        field[-1 - k, :] *= 1 - 0.1 * (width - k)
    return field


def bilinear(image, x, y):
    x0, y0 = np.floor(x).astype(int), np.floor(y).astype(int)
    wx, wy = x - x0, y - y0
    top = (1 - wx) * image[y0, x0] + wx * image[y0, x0 + 1]
    bottom = (1 - wx) * image[y0 + 1, x0] + wx * image[y0 + 1, x0 + 1]
    return (1 - wy) * top + wy * bottom


def filtered_columns(u):
    out = np.empty_like(u)
    for j in range(u.shape[1]):
        out[:, j] = series.exponential(u[:, j], 0.3)
    return out
