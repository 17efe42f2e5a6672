# SPDX-License-Identifier: Apache-2.0
"""Elementwise kernels against NumPy and numexpr; on the GPU against a copy."""

from __future__ import annotations

import numexpr
import numpy as np

import nfuser
from benchmarks import copy_share, gelu, normal, ratio, require_torch_cuda, swiglu

ROWS = 1024
COLUMNS = 4096


class Cpu:
    """How many times faster than the peer, both giving a fresh output."""

    def setup(self) -> None:
        self.x, self.bias = normal(ROWS, COLUMNS), normal(COLUMNS, seed=1)
        self.gelu = nfuser.fuse(gelu)
        np.testing.assert_allclose(
            self.gelu(self.x, self.bias), gelu(self.x, self.bias), rtol=2e-5, atol=1e-6
        )

    def track_gelu_over_numpy(self) -> float:
        x, bias = self.x, self.bias
        return ratio(lambda: self.gelu(x, bias), lambda: gelu(x, bias))

    def track_gelu_over_numexpr(self) -> float:
        text = "y * 0.5 * (1 + tanh(0.7978845608 * (y + 0.044715 * y * y * y)))"
        expression = text.replace("y", "(x + bias)")
        names = {"x": self.x, "bias": self.bias}
        return ratio(
            lambda: self.gelu(self.x, self.bias),
            lambda: numexpr.evaluate(expression, names),
        )

    def track_swiglu_over_numpy(self) -> float:
        x, gate = self.x, normal(ROWS, COLUMNS, seed=2)
        fused = nfuser.fuse(swiglu)
        np.testing.assert_allclose(fused(x, gate), swiglu(x, gate), rtol=2e-6)
        return ratio(lambda: fused(x, gate), lambda: swiglu(x, gate))


class Cuda:
    """Share of the bandwidth that a device copy reaches."""

    params = ("float32", "bfloat16")
    param_names = ("dtype",)

    def setup(self, dtype: str) -> None:
        torch = require_torch_cuda()
        self.dtype = getattr(torch, dtype)
        self.torch = torch

    def track_gelu_copy_share(self, dtype: str) -> float:
        torch = self.torch
        x = torch.randn(16384, 4096, device="cuda", dtype=self.dtype)
        bias = torch.randn(4096, device="cuda", dtype=self.dtype)
        fused = nfuser.fuse(gelu)
        wanted = torch.nn.functional.gelu(x.float() + bias, approximate="tanh")
        torch.testing.assert_close(fused(x, bias).float(), wanted, rtol=1e-2, atol=1e-2)
        return copy_share(lambda: fused(x, bias), 2 * x.nbytes)

    def track_swiglu_copy_share(self, dtype: str) -> float:
        torch = self.torch
        x, gate = (
            torch.randn(16384, 8192, device="cuda", dtype=self.dtype) for _ in range(2)
        )
        fused = nfuser.fuse(swiglu)
        wanted = x.float() * torch.nn.functional.silu(gate.float())
        torch.testing.assert_close(fused(x, gate).float(), wanted, rtol=1e-2, atol=1e-2)
        return copy_share(lambda: fused(x, gate), 3 * x.nbytes)
