# SPDX-License-Identifier: Apache-2.0
"""Softmax, layer norm and RMS norm: rows read once, written once."""

from __future__ import annotations

from typing import Any

import numpy as np

import nfuser
from benchmarks import (
    copy_share,
    layer_norm,
    normal,
    ratio,
    require_torch_cuda,
    rms_norm,
    softmax,
)

FUNCTIONS = {"softmax": softmax, "layer_norm": layer_norm, "rms_norm": rms_norm}
WEIGHTS = {"softmax": 0, "layer_norm": 2, "rms_norm": 1}


class Cpu:
    """How many times faster than NumPy."""

    params = (tuple(FUNCTIONS), (256, 4096))
    param_names = ("function", "columns")

    def setup(self, function: str, columns: int) -> None:
        self.function = FUNCTIONS[function]
        weights = [normal(columns, seed=n + 1) for n in range(WEIGHTS[function])]
        self.arguments = [normal((1 << 21) // columns, columns), *weights]
        self.fused = nfuser.fuse(self.function)
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


class Cuda:
    """Share of the bandwidth that a device copy reaches."""

    params = (tuple(FUNCTIONS), ("float32", "bfloat16"), (4096, 32768))
    param_names = ("function", "dtype", "columns")

    def setup(self, function: str, dtype: str, columns: int) -> None:
        torch = require_torch_cuda()
        kind = {"device": "cuda", "dtype": getattr(torch, dtype)}
        weights = [torch.randn(columns, **kind) for _ in range(WEIGHTS[function])]
        self.arguments = [torch.randn((1 << 27) // columns, columns, **kind), *weights]
        self.fused = nfuser.fuse(FUNCTIONS[function])
        wanted = self._reference(torch, function)
        torch.testing.assert_close(
            self.fused(*self.arguments).float(), wanted, rtol=2e-2, atol=2e-2
        )

    def _reference(self, torch: Any, function: str) -> Any:
        x, *weights = (argument.float() for argument in self.arguments)
        if function == "softmax":
            return torch.softmax(x, dim=-1)
        call = getattr(torch.nn.functional, function)
        return call(x, x.shape[-1:], *weights, eps=1e-5)

    def track_copy_share(self, function: str, dtype: str, columns: int) -> float:
        moved = 2 * self.arguments[0].nbytes
        return copy_share(lambda: self.fused(*self.arguments), moved)
