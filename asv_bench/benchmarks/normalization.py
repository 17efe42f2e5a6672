# SPDX-License-Identifier: Apache-2.0
"""Softmax, layer norm and RMS norm: rows read once, written once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser
from benchmarks import (
    layer_norm,
    normal,
    ratio,
    rms_norm,
    softmax,
)

if TYPE_CHECKING:
    from collections.abc import Callable

FUNCTIONS = {"softmax": softmax, "layer_norm": layer_norm, "rms_norm": rms_norm}
WEIGHTS = {"softmax": 0, "layer_norm": 2, "rms_norm": 1}
COLUMNS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: x.sum(axis=0),
    "standardize": lambda x: (x - x.mean(axis=0)) / x.std(axis=0),
}


class Cpu:
    """How many times faster than NumPy."""

    params = (tuple(FUNCTIONS), (256, 4096))
    param_names = ("function", "columns")

    def setup(self, function: str, columns: int) -> None:
        self.function = FUNCTIONS[function]
        weights = [normal(columns, seed=n + 1) for n in range(WEIGHTS[function])]
        self.arguments = [normal((1 << 21) // columns, columns), *weights]
        self.fused = nfuser.fuse(self.function, dialect="numpy")
        np.testing.assert_allclose(
            self.fused(*self.arguments),
            self.function(*self.arguments),
            rtol=1e-4,
            atol=1e-5,
        )

    def track_over_numpy(self, function: str, columns: int) -> float:
        return ratio(
            lambda: self.fused(*self.arguments), lambda: self.function(*self.arguments)
        )


class TallColumns:
    """How many times faster than NumPy, where columns are few and rows many."""

    params = (("sum", "standardize"), (8, 64))
    param_names = ("function", "columns")

    def setup(self, function: str, columns: int) -> None:
        self.function = COLUMNS[function]
        self.x = normal((1 << 22) // columns, columns)
        self.fused = nfuser.fuse(self.function, dialect="numpy")
        np.testing.assert_allclose(
            self.fused(self.x), self.function(self.x), rtol=1e-3, atol=1e-2
        )

    def track_over_numpy(self, function: str, columns: int) -> float:
        return ratio(lambda: self.fused(self.x), lambda: self.function(self.x))
