# SPDX-License-Identifier: Apache-2.0
"""The shortest paths between all pairs of nodes."""

from __future__ import annotations

from typing import Any


def numba() -> Any:
    from numba import njit, prange

    @njit(parallel=True)
    def floyd_warshall(path):
        n = path.shape[0]
        for k in range(n):
            for i in prange(n):
                first = path[i, k]
                for j in range(n):
                    path[i, j] = min(path[i, j], first + path[k, j])

    return floyd_warshall


def jax() -> Any:
    from jax import jit
    from jax import numpy as jnp
    from jax.lax import fori_loop

    def step(k, path):
        return jnp.minimum(path, path[:, k, None] + path[k, None, :])

    return jit(lambda path: (fori_loop(0, path.shape[0], step, path),))


def torch() -> Any:
    import torch

    @torch.compile
    def step(path, column, row):
        return torch.minimum(path, column[:, None] + row)

    def floyd_warshall(path):
        found = path
        for k in range(path.shape[0]):
            found = step(found, found[:, k], found[k])
        path.copy_(found)

    return floyd_warshall
