# SPDX-License-Identifier: Apache-2.0
"""Arrays of every kind of number in every kind of memory, from a seed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeGuard, cast

import ml_dtypes
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray[Any, np.dtype[Any]]

FLOAT_VALUES = ("normal", "small", "positive", "special", "huge", "tiny")
INTEGER_VALUES = ("normal", "small", "positive", "extreme")
LAYOUTS = (
    "contiguous",
    "fortran",
    "permuted",
    "reversed",
    "stepped",
    "offset",
    "stretched",
)
# Decimal exponents of what counts as huge and tiny.
_RANGE = {
    "float16": (2.0, 4.8, -8.0, -4.0),
    "bfloat16": (20.0, 38.0, -44.0, -30.0),
    "float32": (20.0, 38.0, -45.0, -30.0),
    "float64": (150.0, 308.0, -323.0, -200.0),
}


def dtype_of(name: str) -> np.dtype[Any]:
    """Return the dtype called ``name``, bfloat16 among them."""
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def is_array(x: object) -> TypeGuard[Array]:
    """Tell arrays from numbers, NumPy's among these."""
    return isinstance(x, np.ndarray)


def build(
    dtype: str,
    shape: tuple[int, ...],
    values: str = "normal",
    layout: str = "contiguous",
    seed: int = 0,
) -> Array:
    """Return an array; the same arguments give the same array everywhere."""
    rng = np.random.default_rng(seed)
    flat = _numbers(dtype, math.prod(shape), values, rng)
    made = arrange(flat.reshape(shape), layout, rng)
    # Some layouts make NumPy numbers of 0-d arrays, which is as good for these.
    return made if isinstance(made, np.number) else np.asarray(made)


def _numbers(dtype: str, n: int, values: str, rng: np.random.Generator) -> Array:
    target = dtype_of(dtype)
    if target.kind == "b":
        return rng.random(n) < 0.5
    if target.kind in "iu":
        return _integers(target, n, values, rng)
    if target.kind == "c":
        part = f"float{target.itemsize * 4}"
        parts = [_floats(part, n, values, rng) for _ in range(2)]
        made = np.empty(n, target)
        made.real, made.imag = parts
        return made
    with np.errstate(over="ignore"):
        return _floats(dtype, n, values, rng).astype(target)


def _integers(
    target: np.dtype[Any], n: int, values: str, rng: np.random.Generator
) -> Array:
    limits = np.iinfo(target)
    if values == "extreme":
        low, high = int(limits.min), int(limits.max)
        middle = high // 2
        picks = [low, low + 1, high, high - 1, middle, 0, 1, 2]
        picks += [-1, -2] if low < 0 else [3, 7]
        return np.array(picks, target)[rng.integers(0, len(picks), n)]
    bounds = {"small": (-3, 4), "positive": (1, 9)}.get(values, (-100, 101))
    return rng.integers(max(bounds[0], limits.min), bounds[1], n).astype(target)


def _floats(dtype: str, n: int, values: str, rng: np.random.Generator) -> Array:
    normal = rng.standard_normal(n) * 2
    big, biggest, least, little = _RANGE[dtype]
    if values == "small":
        return rng.integers(-8, 9, n) / 2
    if values == "positive":
        return np.abs(normal) + 0.125
    if values == "huge":
        return np.sign(normal) * 10 ** rng.uniform(big, biggest, n)
    if values == "tiny":
        return np.sign(normal) * 10 ** rng.uniform(least, little, n)
    if values == "special":
        limits = cast("Any", ml_dtypes.finfo(dtype_of(dtype)))
        picks = np.array(
            [
                *(np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0),
                *(float(limits.max), float(limits.smallest_subnormal)),
            ]
        )
        chosen = picks[rng.integers(0, len(picks), n)]
        return np.where(rng.random(n) < 0.15, chosen, normal)
    return normal


def arrange(values: Array, layout: str, rng: np.random.Generator) -> Array:
    """Return ``values`` with strides of another kind."""
    return _ARRANGE[layout](values, rng)


def _permuted(values: Array, rng: np.random.Generator) -> Array:
    order = rng.permutation(values.ndim)
    stored = np.array(values.transpose(order), order="C")
    return stored.transpose(np.argsort(order))


def _reversed(values: Array, rng: np.random.Generator) -> Array:
    turned = tuple(
        slice(None, None, -1 if rng.random() < 0.6 else 1) for _ in values.shape
    )
    return np.array(values[turned], order="C")[turned]


def _stepped(values: Array, rng: np.random.Generator) -> Array:
    if values.size == 0:  # the room around nothing may be larger than any memory
        return values
    steps = [int(rng.integers(1, 4)) for _ in values.shape]
    room = [n * s + 1 for n, s in zip(values.shape, steps, strict=True)]
    store = np.full(room, 77, values.dtype)
    every = tuple(
        slice(1, 1 + n * s, s) for n, s in zip(values.shape, steps, strict=True)
    )
    store[every] = values
    return store[every]


def _offset(values: Array, rng: np.random.Generator) -> Array:
    start = int(rng.integers(1, 8))
    store = np.full(values.size + start + 3, 77, values.dtype)
    view = store[start : start + values.size]
    view[:] = values.ravel()
    return view.reshape(values.shape)


def _stretched(values: Array, rng: np.random.Generator) -> Array:
    kept = tuple(
        slice(0, 1) if rng.random() < 0.5 else slice(None) for _ in values.shape
    )
    return (
        np.broadcast_to(np.array(values[kept]), values.shape) if values.size else values
    )


_ARRANGE: dict[str, Callable[[Array, np.random.Generator], Array]] = {
    "contiguous": lambda values, rng: np.array(values, order="C"),
    "fortran": lambda values, rng: np.array(values, order="F"),
    "permuted": _permuted,
    "reversed": _reversed,
    "stepped": _stepped,
    "offset": _offset,
    "stretched": _stretched,
}
