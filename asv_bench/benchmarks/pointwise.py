# SPDX-License-Identifier: Apache-2.0
"""Elementwise kernels against NumPy and numexpr."""

from __future__ import annotations

import numpy as np

import nfuser
from benchmarks import gelu, normal, ratio, require, swiglu

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
        numexpr = require("numexpr")
        return ratio(
            lambda: self.gelu(self.x, self.bias),
            lambda: numexpr.evaluate(expression, names),
        )

    def track_swiglu_over_numpy(self) -> float:
        x, gate = self.x, normal(ROWS, COLUMNS, seed=2)
        fused = nfuser.fuse(swiglu)
        np.testing.assert_allclose(fused(x, gate), swiglu(x, gate), rtol=2e-6)
        return ratio(lambda: fused(x, gate), lambda: swiglu(x, gate))
