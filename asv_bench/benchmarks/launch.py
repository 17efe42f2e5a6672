# SPDX-License-Identifier: Apache-2.0
"""What a call costs: the second one, and first ones."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import nfuser
from benchmarks import gelu, normal, require_torch_cuda, softmax


def _add(x: Any, y: Any) -> Any:
    return x + y


class HotCall:
    """A hundred elements, so that the kernel itself weighs nothing."""

    def setup(self) -> None:
        self.x, self.y = normal(100), normal(100, seed=1)
        self.out = normal(100)
        self.add = nfuser.fuse(_add)
        self.add(self.x, self.y)

    def time_add(self) -> None:
        self.add(self.x, self.y)

    def time_numpy_add(self) -> None:
        _add(self.x, self.y)


class HotCallCuda:
    """The same with torch tensors on the GPU; the queue is never waited for."""

    def setup(self) -> None:
        torch = require_torch_cuda()
        self.x, self.y = (torch.randn(100, device="cuda") for _ in range(2))
        self.add = nfuser.fuse(_add)
        self.add(self.x, self.y)

    def time_add(self) -> None:
        self.add(self.x, self.y)

    def time_torch_add(self) -> None:
        _add(self.x, self.y)


class FirstCall:
    """A new function whose kernel this process has compiled before."""

    params = ("gelu", "softmax")
    param_names = ("function",)
    number = 1
    warmup_time = 0.0

    def setup(self, function: str) -> None:
        self.function = {"gelu": gelu, "softmax": softmax}[function]
        shapes = {"gelu": [(64, 64), (64,)], "softmax": [(64, 64)]}
        self.arguments = [normal(*shape) for shape in shapes[function]]

    def time_known_kernel(self, function: str) -> None:
        nfuser.fuse(self.function)(*self.arguments)


class FreshProcess:
    """The first call of a process: importing Numba is most of it."""

    number = 1
    warmup_time = 0.0
    code = (
        "import numpy as np, nfuser\n"
        "f = nfuser.fuse(lambda x: np.exp(x) + 1)\n"
        "f(np.ones((64, 64), np.float32))\n"
    )

    def time_first_call(self) -> None:
        subprocess.run([sys.executable, "-c", self.code], check=True)
