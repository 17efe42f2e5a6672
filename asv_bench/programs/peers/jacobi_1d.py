# SPDX-License-Identifier: Apache-2.0
"""Jacobi's method in one dimension."""

from __future__ import annotations

from typing import Any


def numba() -> Any:
    from numba import njit, prange

    @njit(parallel=True)
    def jacobi_1d(steps, A, B):
        for _ in range(1, steps):
            for i in prange(1, A.shape[0] - 1):
                B[i] = 0.33333 * (A[i - 1] + A[i] + A[i + 1])
            for i in prange(1, A.shape[0] - 1):
                A[i] = 0.33333 * (B[i - 1] + B[i] + B[i + 1])

    return jacobi_1d


def jax() -> Any:
    from jax import jit
    from jax.lax import fori_loop

    def step(_, pair):
        A, B = pair
        B = B.at[1:-1].set(0.33333 * (A[:-2] + A[1:-1] + A[2:]))
        A = A.at[1:-1].set(0.33333 * (B[:-2] + B[1:-1] + B[2:]))
        return A, B

    return jit(lambda steps, A, B: fori_loop(1, steps, step, (A, B)))


def torch() -> Any:
    from torch import compile as compiled

    @compiled
    def step(A, B):
        B[1:-1] = 0.33333 * (A[:-2] + A[1:-1] + A[2:])
        A[1:-1] = 0.33333 * (B[:-2] + B[1:-1] + B[2:])

    def jacobi_1d(steps, A, B):
        for _ in range(1, steps):
            step(A, B)

    return jacobi_1d
