# SPDX-License-Identifier: Apache-2.0
"""Flow in a cavity whose lid moves."""

from __future__ import annotations

from typing import Any


def numba() -> Any:
    from numba import njit, prange

    @njit(parallel=True)
    def source_of_pressure(b, rho, dt, u, v, dx, dy):
        rows, columns = u.shape
        for i in prange(1, rows - 1):
            for j in range(1, columns - 1):
                ux = (u[i, j + 1] - u[i, j - 1]) / (2 * dx)
                vy = (v[i + 1, j] - v[i - 1, j]) / (2 * dy)
                uy = (u[i + 1, j] - u[i - 1, j]) / (2 * dy)
                vx = (v[i, j + 1] - v[i, j - 1]) / (2 * dx)
                b[i, j] = rho * (1 / dt * (ux + vy) - ux * ux - 2 * uy * vx - vy * vy)

    @njit(parallel=True)
    def pressure_step(p, before, dx, dy, b):
        rows, columns = p.shape
        scale = 2 * (dx**2 + dy**2)
        for i in prange(1, rows - 1):
            for j in range(1, columns - 1):
                p[i, j] = (
                    (before[i, j + 1] + before[i, j - 1]) * dy**2
                    + (before[i + 1, j] + before[i - 1, j]) * dx**2
                ) / scale - dx**2 * dy**2 / scale * b[i, j]
            p[i, columns - 1] = p[i, columns - 2]
            p[i, 0] = p[i, 1]
        # The corners are copied last along the axes, as the statements do.
        p[0, columns - 1] = before[0, columns - 2]
        p[rows - 1, columns - 1] = before[rows - 1, columns - 2]
        for j in range(1, columns):
            p[0, j] = p[1, j]
        p[0, 0] = p[0, 1]
        for j in range(columns):
            p[rows - 1, j] = 0

    @njit(parallel=True)
    def velocities(u, v, un, vn, p, dt, dx, dy, rho, nu):
        rows, columns = u.shape
        for i in prange(1, rows - 1):
            for j in range(1, columns - 1):
                here, there = un[i, j], vn[i, j]
                u[i, j] = (
                    here
                    - here * dt / dx * (here - un[i, j - 1])
                    - there * dt / dy * (here - un[i - 1, j])
                    - dt / (2 * rho * dx) * (p[i, j + 1] - p[i, j - 1])
                    + nu
                    * (
                        dt / dx**2 * (un[i, j + 1] - 2 * here + un[i, j - 1])
                        + dt / dy**2 * (un[i + 1, j] - 2 * here + un[i - 1, j])
                    )
                )
                v[i, j] = (
                    there
                    - here * dt / dx * (there - vn[i, j - 1])
                    - there * dt / dy * (there - vn[i - 1, j])
                    - dt / (2 * rho * dy) * (p[i + 1, j] - p[i - 1, j])
                    + nu
                    * (
                        dt / dx**2 * (vn[i, j + 1] - 2 * there + vn[i, j - 1])
                        + dt / dy**2 * (vn[i + 1, j] - 2 * there + vn[i - 1, j])
                    )
                )

    @njit
    def cavity_flow(nx, ny, nt, nit, u, v, dt, dx, dy, p, rho, nu):
        b = p * 0.0
        before, un, vn = p.copy(), u.copy(), v.copy()
        for _ in range(nt):
            un[:], vn[:] = u, v
            source_of_pressure(b, rho, dt, u, v, dx, dy)
            for _ in range(nit):
                before[:] = p
                pressure_step(p, before, dx, dy, b)
            velocities(u, v, un, vn, p, dt, dx, dy, rho, nu)
            u[0, :], u[:, 0], u[:, -1], u[-1, :] = 0, 0, 0, 1
            v[0, :], v[-1, :], v[:, 0], v[:, -1] = 0, 0, 0, 0

    return cavity_flow


def _source(rho, dt, u, v, dx, dy):
    ux = (u[1:-1, 2:] - u[1:-1, :-2]) / (2 * dx)
    vy = (v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * dy)
    uy = (u[2:, 1:-1] - u[:-2, 1:-1]) / (2 * dy)
    vx = (v[1:-1, 2:] - v[1:-1, :-2]) / (2 * dx)
    return rho * (1 / dt * (ux + vy) - ux**2 - 2 * uy * vx - vy**2)


def _pressure(p, b, dx, dy):
    scale = 2 * (dx**2 + dy**2)
    across = (p[1:-1, 2:] + p[1:-1, :-2]) * dy**2
    down = (p[2:, 1:-1] + p[:-2, 1:-1]) * dx**2
    return (across + down) / scale - dx**2 * dy**2 / scale * b[1:-1, 1:-1]


def _carried(w, u, v, p_step, dt, dx, dy, nu):
    here = w[1:-1, 1:-1]
    return (
        here
        - u[1:-1, 1:-1] * dt / dx * (here - w[1:-1, :-2])
        - v[1:-1, 1:-1] * dt / dy * (here - w[:-2, 1:-1])
        - p_step
        + nu
        * (
            dt / dx**2 * (w[1:-1, 2:] - 2 * here + w[1:-1, :-2])
            + dt / dy**2 * (w[2:, 1:-1] - 2 * here + w[:-2, 1:-1])
        )
    )


def jax() -> Any:
    from jax import jit
    from jax import numpy as jnp
    from jax.lax import fori_loop

    def cavity_flow(nx, ny, nt, nit, u, v, dt, dx, dy, p, rho, nu):
        def inner(_, pair):
            p, b = pair
            p = p.at[1:-1, 1:-1].set(_pressure(p, b, dx, dy))
            p = p.at[:, -1].set(p[:, -2])
            p = p.at[0, :].set(p[1, :])
            p = p.at[:, 0].set(p[:, 1])
            return p.at[-1, :].set(0), b

        def step(_, state):
            u, v, p, b = state
            b = b.at[1:-1, 1:-1].set(_source(rho, dt, u, v, dx, dy))
            p, b = fori_loop(0, nit, inner, (p, b))
            along = dt / (2 * rho * dx) * (p[1:-1, 2:] - p[1:-1, :-2])
            down = dt / (2 * rho * dy) * (p[2:, 1:-1] - p[:-2, 1:-1])
            un = u.at[1:-1, 1:-1].set(_carried(u, u, v, along, dt, dx, dy, nu))
            vn = v.at[1:-1, 1:-1].set(_carried(v, u, v, down, dt, dx, dy, nu))
            un = un.at[0, :].set(0).at[:, 0].set(0).at[:, -1].set(0).at[-1, :].set(1)
            vn = vn.at[0, :].set(0).at[-1, :].set(0).at[:, 0].set(0).at[:, -1].set(0)
            return un, vn, p, b

        u, v, p, _ = fori_loop(0, nt, step, (u, v, p, jnp.zeros_like(p)))
        return u, v, p

    return jit(cavity_flow)


def torch() -> Any:
    from torch import compile as compiled
    from torch import zeros_like

    @compiled
    def inner(p, b, dx, dy):
        p[1:-1, 1:-1] = _pressure(p.clone(), b, dx, dy)
        p[:, -1] = p[:, -2]
        p[0, :] = p[1, :]
        p[:, 0] = p[:, 1]
        p[-1, :] = 0

    @compiled
    def source(b, rho, dt, u, v, dx, dy):
        b[1:-1, 1:-1] = _source(rho, dt, u, v, dx, dy)

    @compiled
    def move(u, v, p, dt, dx, dy, rho, nu):
        un, vn = u.clone(), v.clone()
        along = dt / (2 * rho * dx) * (p[1:-1, 2:] - p[1:-1, :-2])
        down = dt / (2 * rho * dy) * (p[2:, 1:-1] - p[:-2, 1:-1])
        u[1:-1, 1:-1] = _carried(un, un, vn, along, dt, dx, dy, nu)
        v[1:-1, 1:-1] = _carried(vn, un, vn, down, dt, dx, dy, nu)
        u[0, :], u[:, 0], u[:, -1], u[-1, :] = 0, 0, 0, 1
        v[0, :], v[-1, :], v[:, 0], v[:, -1] = 0, 0, 0, 0

    def cavity_flow(nx, ny, nt, nit, u, v, dt, dx, dy, p, rho, nu):
        b = zeros_like(p)
        for _ in range(nt):
            source(b, rho, dt, u, v, dx, dy)
            for _ in range(nit):
                inner(p, b, dx, dy)
            move(u, v, p, dt, dx, dy, rho, nu)

    return cavity_flow
