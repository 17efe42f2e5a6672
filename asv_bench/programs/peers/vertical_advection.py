# SPDX-License-Identifier: Apache-2.0
"""Vertical advection: a tridiagonal system in each column."""

from __future__ import annotations

from typing import Any


def numba() -> Any:
    from numba import njit, prange
    from numpy import empty

    @njit(parallel=True)
    def columns(utens_stage, u_stage, wcon, u_pos, utens, dtr):
        rows, depth, height = utens_stage.shape
        for i in prange(rows):
            c, d = empty(height), empty(height)
            for j in range(depth):
                for k in range(height):
                    a, below, above, cs = 0.0, 0.0, 0.0, 0.0
                    if k > 0:
                        gav = -0.25 * (wcon[i + 1, j, k] + wcon[i, j, k])
                        a = gav * 0.5
                        below = -a * (u_stage[i, j, k - 1] - u_stage[i, j, k])
                    if k < height - 1:
                        cs = 0.25 * (wcon[i + 1, j, k + 1] + wcon[i, j, k + 1]) * 0.5
                        above = -cs * (u_stage[i, j, k + 1] - u_stage[i, j, k])
                    b = dtr - a - cs
                    right = (
                        dtr * u_pos[i, j, k]
                        + utens[i, j, k]
                        + utens_stage[i, j, k]
                        + below
                        + above
                    )
                    if k > 0:
                        divided = 1.0 / (b - c[k - 1] * a)
                        d[k] = (right - d[k - 1] * a) * divided
                    else:
                        divided = 1.0 / b
                        d[k] = right * divided
                    c[k] = cs * divided
                x = d[height - 1]
                utens_stage[i, j, height - 1] = dtr * (x - u_pos[i, j, height - 1])
                for k in range(height - 2, -1, -1):
                    x = d[k] - c[k] * x
                    utens_stage[i, j, k] = dtr * (x - u_pos[i, j, k])

    return columns


def jax() -> Any:
    from jax import jit
    from jax import numpy as jnp
    from jax.lax import scan

    def vadv(utens_stage, u_stage, wcon, u_pos, utens, dtr):
        first = lambda x: jnp.moveaxis(x, -1, 0)  # noqa: E731
        flux = first(0.125 * (wcon[1:] + wcon[:-1]))
        u, pos = first(u_stage), first(u_pos)
        right = dtr * pos + first(utens) + first(utens_stage)
        nothing = jnp.zeros_like(u[:1])
        a = jnp.concatenate([nothing, -flux[1:]])
        c = jnp.concatenate([flux[1:], nothing])
        drop = u[:-1] - u[1:]
        right = right + jnp.concatenate([nothing, -a[1:] * drop])
        right = right + jnp.concatenate([c[:-1] * drop, nothing])
        b = dtr - a - c

        def forth(before, row):
            a, b, c, right = row
            cp, dp = before
            divided = 1.0 / (b - cp * a)
            now = (c * divided, (right - dp * a) * divided)
            return now, now

        start = (jnp.zeros_like(u[0]), jnp.zeros_like(u[0]))
        _, (cp, dp) = scan(forth, start, (a, b, c, right))

        def back(x, row):
            cp, dp, pos = row
            x = dp - cp * x
            return x, dtr * (x - pos)

        _, found = scan(back, jnp.zeros_like(u[0]), (cp, dp, pos), reverse=True)
        return (jnp.moveaxis(found, 0, -1),)

    return jit(vadv)


torch = None
