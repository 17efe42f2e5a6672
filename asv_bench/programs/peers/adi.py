# SPDX-License-Identifier: Apache-2.0
"""Alternating directions: an implicit heat step, by columns and then by rows."""

from __future__ import annotations

from typing import Any


def _constants(steps, n):
    one, two = 2.0 / steps * n * n, 1.0 / steps * n * n
    a, d = -one / 2.0, -two / 2.0
    return a, 1.0 + one, d, 1.0 + two


def numba() -> Any:
    from numba import njit, prange

    @njit(parallel=True)
    def sweep(steps, N, u, v, p, q, a, b, d, e):
        for _ in range(steps):
            for i in prange(1, N - 1):
                v[0, i], p[i, 0], q[i, 0] = 1.0, 0.0, 1.0
                for j in range(1, N - 1):
                    divisor = a * p[i, j - 1] + b
                    p[i, j] = -a / divisor
                    q[i, j] = (
                        -d * u[j, i - 1]
                        + (1.0 + 2.0 * d) * u[j, i]
                        - d * u[j, i + 1]
                        - a * q[i, j - 1]
                    ) / divisor
                v[N - 1, i] = 1.0
                for j in range(N - 2, 0, -1):
                    v[j, i] = p[i, j] * v[j + 1, i] + q[i, j]
            for i in prange(1, N - 1):
                u[i, 0], p[i, 0], q[i, 0] = 1.0, 0.0, 1.0
                for j in range(1, N - 1):
                    divisor = d * p[i, j - 1] + e
                    p[i, j] = -d / divisor
                    q[i, j] = (
                        -a * v[i - 1, j]
                        + (1.0 + 2.0 * a) * v[i, j]
                        - a * v[i + 1, j]
                        - d * q[i, j - 1]
                    ) / divisor
                u[i, N - 1] = 1.0
                for j in range(N - 2, 0, -1):
                    u[i, j] = p[i, j] * u[i, j + 1] + q[i, j]

    def adi(steps, N, u):
        from numpy import empty_like

        work = (empty_like(u) for _ in range(3))
        sweep(steps, N, u, *work, *_constants(steps, N))

    return adi


def jax() -> Any:
    from jax import jit
    from jax import numpy as jnp
    from jax.lax import fori_loop

    def adi(steps, N, u):
        a, b, d, e = _constants(steps, N)

        def half(u, a, b, d, e):  # by columns: rows of v, columns of p and q
            inner = slice(1, N - 1)
            p, q, v = jnp.zeros_like(u), jnp.zeros_like(u), jnp.zeros_like(u)
            v = v.at[0, inner].set(1.0)
            q = q.at[0, inner].set(1.0)

            def forth(j, pq):
                p, q = pq
                divisor = a * p[j - 1, inner] + b
                right = -d * u[j, :-2] + (1 + 2 * d) * u[j, 1:-1] - d * u[j, 2:]
                q = q.at[j, inner].set((right - a * q[j - 1, inner]) / divisor)
                return p.at[j, inner].set(-a / divisor), q

            p, q = fori_loop(1, N - 1, forth, (p, q))
            v = v.at[N - 1, inner].set(1.0)

            def back(k, v):
                j = N - 1 - k
                return v.at[j, inner].set(p[j, inner] * v[j + 1, inner] + q[j, inner])

            return fori_loop(1, N - 1, back, v)

        def step(_, u):
            v = half(u, a, b, d, e)
            found = half(v.T, d, e, a, b).T
            return u.at[1 : N - 1, :].set(found[1 : N - 1, :])

        return (fori_loop(0, steps, step, u),)

    return jit(adi, static_argnums=(0, 1))


torch = None
