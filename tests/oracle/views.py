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


def moved(
    function: Callable[..., Any], rest: list[Any], options: dict[str, Any], x: Array
) -> Array:
    """Apply a view to one of the arrays of a value."""
    return function(x, *rest, **options)


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
}
