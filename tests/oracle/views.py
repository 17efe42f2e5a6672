# SPDX-License-Identifier: Apache-2.0
"""Functions that only move elements: the same for values, bounds and doubts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.oracle.number_types import Array


def _item(x: Array, index: Any) -> Any:
    return np.asarray(x)[index]


def _reshape(x: Array, *shape: Any, **options: Any) -> Array:
    return x.reshape(*shape, **options)


def _repeat(x: Array, repeats: int, axis: int | None = None) -> Array:
    return np.repeat(x, repeats, axis)


def moved(
    function: Callable[..., Any], rest: list[Any], options: dict[str, Any], x: Array
) -> Array:
    """Apply a view to one of the arrays of a value."""
    return function(x, *rest, **options)


def padded(x: Array, widths: Any, fill: Any) -> Array:
    """Return ``x`` with ``fill`` around it; a negative width drops elements."""
    pairs = np.broadcast_to(np.asarray(widths, int), (x.ndim, 2)).tolist()
    shape = [n + left + right for n, (left, right) in zip(x.shape, pairs, strict=True)]
    if min(shape, default=0) < 0:
        message = f"pad: widths {pairs} leave nothing of {x.shape}"
        raise ValueError(message)
    made = np.full(shape, fill, x.dtype)
    kept = [
        range(max(0, -left), max(0, -left, min(n, n + right)))
        for n, (left, right) in zip(x.shape, pairs, strict=True)
    ]
    inside = tuple(
        slice(k.start + left, k.stop + left)
        for k, (left, _) in zip(kept, pairs, strict=True)
    )
    made[inside] = x[tuple(slice(k.start, k.stop) for k in kept)]
    return made


VIEWS: dict[str, Callable[..., Any]] = {
    "broadcast_to": np.broadcast_to,
    "expand_dims": np.expand_dims,
    "squeeze": np.squeeze,
    "transpose": np.transpose,
    "matrix_transpose": np.matrix_transpose,
    "moveaxis": np.moveaxis,
    "swapaxes": np.swapaxes,
    "flip": np.flip,
    "T": np.transpose,
    "mT": np.matrix_transpose,
    "getitem": _item,
    "reshape": _reshape,
    "ravel": np.ravel,
    "flatten": np.ravel,
    "roll": np.roll,
    "tile": np.tile,
    "repeat": _repeat,
}
