# SPDX-License-Identifier: Apache-2.0
"""Maxwell's equations on a staggered grid."""

from __future__ import annotations

from typing import Any


def numba() -> Any:
    from numba import njit, prange

    @njit(parallel=True)
    def fdtd_2d(steps, ex, ey, hz, source):
        rows, columns = hz.shape
        for t in range(steps):
            for i in prange(rows):
                if i == 0:
                    for j in range(columns):
                        ey[0, j] = source[t]
                else:
                    for j in range(columns):
                        ey[i, j] -= 0.5 * (hz[i, j] - hz[i - 1, j])
                for j in range(1, columns):
                    ex[i, j] -= 0.5 * (hz[i, j] - hz[i, j - 1])
            for i in prange(rows - 1):
                for j in range(columns - 1):
                    hz[i, j] -= 0.7 * (
                        ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j]
                    )

    return fdtd_2d


def jax() -> Any:
    from jax import jit
    from jax.lax import fori_loop

    def fdtd_2d(steps, ex, ey, hz, source):
        def step(t, fields):
            ex, ey, hz = fields
            ey = ey.at[0, :].set(source[t])
            ey = ey.at[1:, :].add(-0.5 * (hz[1:, :] - hz[:-1, :]))
            ex = ex.at[:, 1:].add(-0.5 * (hz[:, 1:] - hz[:, :-1]))
            turned = ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]
            return ex, ey, hz.at[:-1, :-1].add(-0.7 * turned)

        return fori_loop(0, steps, step, (ex, ey, hz))

    return jit(fdtd_2d)


def torch() -> Any:
    from torch import compile as compiled

    @compiled
    def step(ex, ey, hz, source):
        ey[0, :] = source
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        turned = ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]
        hz[:-1, :-1] -= 0.7 * turned

    def fdtd_2d(steps, ex, ey, hz, source):
        for t in range(steps):
            step(ex, ey, hz, source[t])

    return fdtd_2d
