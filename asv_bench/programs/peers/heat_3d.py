# SPDX-License-Identifier: Apache-2.0
"""The heat equation in three dimensions."""

from __future__ import annotations

from typing import Any


def numba() -> Any:
    from numba import njit, prange

    @njit(parallel=True)
    def sweep(A, B):
        for i in prange(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                for k in range(1, A.shape[2] - 1):
                    here = A[i, j, k]
                    B[i, j, k] = (
                        0.125 * (A[i + 1, j, k] - 2.0 * here + A[i - 1, j, k])
                        + 0.125 * (A[i, j + 1, k] - 2.0 * here + A[i, j - 1, k])
                        + 0.125 * (A[i, j, k + 1] - 2.0 * here + A[i, j, k - 1])
                        + here
                    )

    @njit
    def heat_3d(steps, A, B):
        for _ in range(1, steps):
            sweep(A, B)
            sweep(B, A)

    return heat_3d


def _heated(A):
    here = A[1:-1, 1:-1, 1:-1]
    return (
        0.125 * (A[2:, 1:-1, 1:-1] - 2.0 * here + A[:-2, 1:-1, 1:-1])
        + 0.125 * (A[1:-1, 2:, 1:-1] - 2.0 * here + A[1:-1, :-2, 1:-1])
        + 0.125 * (A[1:-1, 1:-1, 2:] - 2.0 * here + A[1:-1, 1:-1, :-2])
        + here
    )


def jax() -> Any:
    from jax import jit
    from jax.lax import fori_loop

    def step(_, pair):
        A, B = pair
        B = B.at[1:-1, 1:-1, 1:-1].set(_heated(A))
        return A.at[1:-1, 1:-1, 1:-1].set(_heated(B)), B

    return jit(lambda steps, A, B: fori_loop(1, steps, step, (A, B)))


def torch() -> Any:
    from torch import compile as compiled

    @compiled
    def step(A, B):
        B[1:-1, 1:-1, 1:-1] = _heated(A)
        A[1:-1, 1:-1, 1:-1] = _heated(B)

    def heat_3d(steps, A, B):
        for _ in range(1, steps):
            step(A, B)

    return heat_3d
