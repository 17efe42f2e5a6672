# SPDX-License-Identifier: Apache-2.0
"""Formulas people write in NumPy: finance, geography, long chains."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from asv_bench.compare.workload import Array, Workload
from nfuser import numpy as nnp


def black_scholes(spot: Any, strike: Any, years: Any) -> Any:
    spread = 0.2 * np.sqrt(years)
    d1 = (np.log(spot / strike) + 0.07 * years) / spread
    discounted = strike * np.exp(-0.05 * years)
    half = 0.7071067811865476
    up, down = nnp.erf(d1 * half), nnp.erf((d1 - spread) * half)
    return 0.5 * (spot * (1 + up) - discounted * (1 + down))


def haversine(lat: Any, lon: Any, lat2: Any, lon2: Any) -> Any:
    a = np.sin((lat2 - lat) * 0.5)
    b = np.sin((lon2 - lon) * 0.5)
    h = a * a + np.cos(lat) * np.cos(lat2) * (b * b)
    return 12742.0 * np.arcsin(np.sqrt(h))


def chain(x: Any, y: Any) -> Any:
    for k in range(10):
        x = x * y + 0.1 * k
        x = x / (1 + np.abs(x))
    return x


def torch_black_scholes(t: Any, spot: Any, strike: Any, years: Any) -> Any:
    spread = 0.2 * t.sqrt(years)
    d1 = (t.log(spot / strike) + 0.07 * years) / spread
    discounted = strike * t.exp(-0.05 * years)
    half = 0.7071067811865476
    up, down = t.erf(d1 * half), t.erf((d1 - spread) * half)
    return 0.5 * (spot * (1 + up) - discounted * (1 + down))


def torch_haversine(t: Any, lat: Any, lon: Any, lat2: Any, lon2: Any) -> Any:
    a = t.sin((lat2 - lat) * 0.5)
    b = t.sin((lon2 - lon) * 0.5)
    h = a * a + t.cos(lat) * t.cos(lat2) * (b * b)
    return 12742.0 * t.asin(t.sqrt(h))


def torch_chain(t: Any, x: Any, y: Any) -> Any:
    for k in range(10):
        x = x * y + 0.1 * k
        x = x / (1 + t.abs(x))
    return x


def jax_black_scholes(jnp: Any, spot: Any, strike: Any, years: Any) -> Any:
    from jax.scipy.special import erf

    spread = 0.2 * jnp.sqrt(years)
    d1 = (jnp.log(spot / strike) + 0.07 * years) / spread
    discounted = strike * jnp.exp(-0.05 * years)
    half = 0.7071067811865476
    up, down = erf(d1 * half), erf((d1 - spread) * half)
    return 0.5 * (spot * (1 + up) - discounted * (1 + down))


def numba_black_scholes(spot: float, strike: float, years: float) -> float:
    spread = 0.2 * math.sqrt(years)
    d1 = (math.log(spot / strike) + 0.07 * years) / spread
    discounted = strike * math.exp(-0.05 * years)
    half = 0.7071067811865476
    up, down = math.erf(d1 * half), math.erf((d1 - spread) * half)
    return 0.5 * (spot * (1 + up) - discounted * (1 + down))


def numba_haversine(lat: float, lon: float, lat2: float, lon2: float) -> float:
    a = math.sin((lat2 - lat) * 0.5)
    b = math.sin((lon2 - lon) * 0.5)
    h = a * a + math.cos(lat) * math.cos(lat2) * (b * b)
    return 12742.0 * math.asin(math.sqrt(h))


def numba_chain(x: float, y: float) -> float:
    one, tenth = np.float32(1), np.float32(0.1)
    for k in range(10):
        x = x * y + tenth * np.float32(k)
        x = x / (one + abs(x))
    return x


WORKLOADS = (
    Workload(
        "Black-Scholes f64",
        black_scholes,
        lambda n: tuple(Array((n,), "float64", low=low) for low in (1.0, 1.0, 0.5)),
        torch_black_scholes,
        cpu=(2_000_000,),
        is_elementwise=True,
        jax=jax_black_scholes,
        numba=numba_black_scholes,
    ),
    Workload(
        "haversine f64",
        haversine,
        lambda n: tuple(Array((n,), "float64", low=low) for low in (0.0, 0.5, 0.1, 1)),
        torch_haversine,
        cpu=(2_000_000,),
        is_elementwise=True,
        numexpr=(
            "12742.0 * arcsin(sqrt(sin((c - a) * 0.5) ** 2"
            " + cos(a) * cos(c) * sin((d - b) * 0.5) ** 2))"
        ),
        numba=numba_haversine,
    ),
    Workload(
        "chain of 40 operations f32",
        chain,
        lambda rows, n: (Array((rows, n)), Array((rows, n))),
        torch_chain,
        cpu=(2048, 2048),
        is_elementwise=True,
        numba=numba_chain,
    ),
)
