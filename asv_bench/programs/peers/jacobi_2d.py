# SPDX-License-Identifier: Apache-2.0
"""Jacobi's method in two dimensions."""

from __future__ import annotations

from typing import Any


def numba() -> Any:
    from numba import njit, prange

    @njit(parallel=True)
    def jacobi_2d(steps, A, B):
        for _ in range(1, steps):
            for i in prange(1, A.shape[0] - 1):
                for j in range(1, A.shape[1] - 1):
                    near = A[i, j] + A[i, j - 1] + A[i, j + 1]
                    B[i, j] = 0.2 * (near + A[i + 1, j] + A[i - 1, j])
            for i in prange(1, A.shape[0] - 1):
                for j in range(1, A.shape[1] - 1):
                    near = B[i, j] + B[i, j - 1] + B[i, j + 1]
                    A[i, j] = 0.2 * (near + B[i + 1, j] + B[i - 1, j])

    return jacobi_2d


def _mean(A):
    return 0.2 * (
        A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1]
    )


def jax() -> Any:
    from jax import jit
    from jax.lax import fori_loop

    def step(_, pair):
        A, B = pair
        B = B.at[1:-1, 1:-1].set(_mean(A))
        return A.at[1:-1, 1:-1].set(_mean(B)), B

    return jit(lambda steps, A, B: fori_loop(1, steps, step, (A, B)))


def torch() -> Any:
    from torch import compile as compiled

    @compiled
    def step(A, B):
        B[1:-1, 1:-1] = _mean(A)
        A[1:-1, 1:-1] = _mean(B)

    def jacobi_2d(steps, A, B):
        for _ in range(1, steps):
            step(A, B)

    return jacobi_2d
