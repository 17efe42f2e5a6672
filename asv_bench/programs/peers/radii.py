# SPDX-License-Identifier: Apache-2.0
"""The mean of pixels by their distance from the centre."""

from __future__ import annotations

from typing import Any


def numba() -> Any:
    from numba import get_num_threads, njit, prange
    from numpy import zeros

    @njit(parallel=True)
    def mean_by_radius(data, radius, npt):
        low, high = radius.min(), radius.max()
        parts = get_num_threads()
        count, total = zeros((parts, npt)), zeros((parts, npt))
        step = (radius.shape[0] + parts - 1) // parts
        for part in prange(parts):
            for i in range(part * step, min((part + 1) * step, radius.shape[0])):
                at = int((radius[i] - low) / (high - low) * npt)
                at = min(at, npt - 1)
                # An edge decides where rounding and it disagree, as NumPy's does.
                if radius[i] < low + (high - low) / npt * at:
                    at -= 1
                elif at < npt - 1 and radius[i] >= low + (high - low) / npt * (at + 1):
                    at += 1
                count[part, at] += 1.0
                total[part, at] += data[i]
        return total.sum(axis=0) / count.sum(axis=0)

    return mean_by_radius


def jax() -> Any:
    from jax import jit
    from jax import numpy as jnp

    def mean_by_radius(data, radius, npt):
        count = jnp.histogram(radius, npt)[0]
        return (jnp.histogram(radius, npt, weights=data)[0] / count,)

    return jit(mean_by_radius, static_argnums=2)


torch = None
