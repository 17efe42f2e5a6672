# SPDX-License-Identifier: Apache-2.0
"""The Mandelbrot set."""

from __future__ import annotations

from typing import Any


def numba() -> Any:
    from numba import njit, prange
    from numpy import complex128, empty, int64, linspace

    @njit(parallel=True)
    def points(X, Y, maxiter, horizon):
        N = empty((Y.shape[0], X.shape[0]), int64)
        Z = empty((Y.shape[0], X.shape[0]), complex128)
        for i in prange(Y.shape[0]):
            for j in range(X.shape[0]):
                c, z, last = complex(X[j], Y[i]), 0j, 0
                for n in range(maxiter):
                    if not abs(z) < horizon:
                        break
                    last = n
                    z = z * z + c
                N[i, j] = 0 if last == maxiter - 1 else last
                Z[i, j] = z
        return Z, N

    def mandelbrot(xmin, xmax, ymin, ymax, xn, yn, maxiter, horizon=2.0):
        X, Y = linspace(xmin, xmax, xn), linspace(ymin, ymax, yn)
        return points(X, Y, maxiter, horizon)

    return mandelbrot


def jax() -> Any:
    from jax import jit
    from jax import numpy as jnp
    from jax.lax import fori_loop

    def mandelbrot(xmin, xmax, ymin, ymax, xn, yn, maxiter, horizon=2.0):
        X, Y = jnp.linspace(xmin, xmax, xn), jnp.linspace(ymin, ymax, yn)
        C = X + Y[:, None] * 1j

        def step(n, pair):
            Z, N = pair
            inside = abs(Z) < horizon
            return jnp.where(inside, Z * Z + C, Z), jnp.where(inside, n, N)

        start = jnp.zeros(C.shape, C.dtype), jnp.zeros(C.shape, jnp.int64)
        Z, N = fori_loop(0, maxiter, step, start)
        return Z, jnp.where(maxiter - 1 == N, 0, N)

    return jit(mandelbrot, static_argnums=(4, 5))


torch = None
