# SPDX-License-Identifier: Apache-2.0
"""What a call costs: the second one, and first ones."""

from __future__ import annotations

import shutil
import tempfile
from typing import Any

import numpy as np

import nfuser
from benchmarks import fresh_process, gelu, normal, require, require_torch_cuda, softmax


def _add(x: Any, y: Any) -> Any:
    return x + y


class HotCall:
    """A hundred elements, so that the kernel itself weighs nothing."""

    def setup(self) -> None:
        self.x, self.y = normal(100), normal(100, seed=1)
        self.out = normal(100)
        self.add = nfuser.fuse(_add)
        self.bound = self.add.bind(self.x, self.y)
        self.into = self.add.bind(self.x, self.y, out=self.out)
        for _ in range(3):
            self.add(self.x, self.y)

    def time_add(self) -> None:
        self.add(self.x, self.y)

    def time_bound(self) -> None:
        self.bound()

    def time_bound_with_output(self) -> None:
        self.into()

    def time_numpy_add(self) -> None:
        _add(self.x, self.y)


def _five(x: Any, y: Any) -> Any:
    return np.maximum((x * y + 1) * x - y, 0)


class SmallChain:
    """Five operations at once, and one after the other."""

    params = (100, 1_000, 10_000)
    param_names = ("elements",)

    def setup(self, elements: int) -> None:
        self.x, self.y = normal(elements), normal(elements, seed=1)
        self.chain = nfuser.fuse(_five)
        for _ in range(3):
            self.chain(self.x, self.y)

    def time_chain(self, elements: int) -> None:
        self.chain(self.x, self.y)

    def time_numpy_chain(self, elements: int) -> None:
        _five(self.x, self.y)


class HotCallTorch:
    """Tensors of torch on the CPU."""

    def setup(self) -> None:
        torch = require("torch")
        self.x, self.y = torch.randn(100), torch.randn(100)
        self.add = nfuser.fuse(_add)
        for _ in range(3):
            self.add(self.x, self.y)

    def time_add(self) -> None:
        self.add(self.x, self.y)

    def time_torch_add(self) -> None:
        _add(self.x, self.y)


def _several(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any) -> Any:
    first = a + b
    second = first * c + d
    return first, second, second * e - f


class HotCallCuda:
    """The same with torch tensors on the GPU; the queue is never waited for."""

    def setup(self) -> None:
        torch = require_torch_cuda()
        self.x, self.y = (torch.randn(1024, device="cuda") for _ in range(2))
        self.six = [torch.randn(1024, device="cuda") for _ in range(6)]
        self.add, self.several = nfuser.fuse(_add), nfuser.fuse(_several)
        for _ in range(3):
            self.add(self.x, self.y)
            self.several(*self.six)
        self.bound = self.add.bind(self.x, self.y)
        with nfuser.capture("torch") as self.chain:
            y = self.y
            for _ in range(10):
                y = self.add(self.x, y)
        others = [torch.randn(1024, device="cuda") for _ in range(10)]
        with nfuser.capture("torch") as self.independent:
            self.sums = [self.add(self.x, y) for y in others]

    def time_six_inputs_three_outputs(self) -> None:
        self.several(*self.six)

    def time_bound(self) -> None:
        self.bound()

    def time_graph_of_ten(self) -> None:
        self.chain.replay()

    def time_graph_of_ten_independent(self) -> None:
        self.independent.replay()

    def time_add(self) -> None:
        self.add(self.x, self.y)

    def time_torch_add(self) -> None:
        _add(self.x, self.y)


class HostProgramCuda:
    """Ten kernels, each after the one before; the queue is never waited for."""

    def setup(self) -> None:
        torch = require_torch_cuda()
        self.x, self.y = (torch.randn(1024, device="cuda") for _ in range(2))
        with nfuser.FusionDefinition() as add:
            left, right = (add.define_tensor(shape=[-1]) for _ in range(2))
            add.add_output(add.ops.add(left, right))
        hc = nfuser.HostIrContainer("ten")
        x, last = hc.define_tensor([-1]), hc.define_tensor([-1])
        for _ in range(10):
            last = hc.launch(add.fusion, x, last)
        hc.add_output(last)
        self.evaluator = nfuser.HostIrEvaluator(hc.program())
        for _ in range(3):
            self.evaluator.run([self.x, self.y])

    def time_program(self) -> None:
        self.evaluator.run([self.x, self.y])

    def time_torch_eager(self) -> None:
        last = self.y
        for _ in range(10):
            last = self.x + last


class HotCallCupy:
    """Arrays of CuPy, beside its own fusion."""

    def setup(self) -> None:
        cupy = require("cupy")
        if not cupy.cuda.is_available():
            raise NotImplementedError
        self.x, self.y = cupy.ones(1024, "f4"), cupy.ones(1024, "f4")
        self.add, self.fused = nfuser.fuse(_add), cupy.fuse()(_add)
        for _ in range(3):
            self.add(self.x, self.y)
            self.fused(self.x, self.y)

    def time_add(self) -> None:
        self.add(self.x, self.y)

    def time_cupy_fuse(self) -> None:
        self.fused(self.x, self.y)


class HotCallJax:
    """Arrays of JAX on its default device; it waits for results of fused calls."""

    def setup(self) -> None:
        jax = require("jax")
        self.x, self.y = jax.numpy.ones(1024), jax.numpy.ones(1024)
        self.add, self.jitted = nfuser.fuse(_add), jax.jit(_add)
        for _ in range(3):
            self.add(self.x, self.y)
            self.jitted(self.x, self.y)

    def time_add(self) -> None:
        self.add(self.x, self.y)

    def time_jax_jit(self) -> None:
        self.jitted(self.x, self.y).block_until_ready()


class HotCallNumba:
    """Device arrays of Numba, beside a launch of its own without an allocation."""

    def setup(self) -> None:
        cuda = require("numba.cuda")
        if not cuda.is_available():
            raise NotImplementedError
        self.x, self.y, self.out = (cuda.to_device(normal(1024)) for _ in range(3))
        self.add = nfuser.fuse(_add)

        def add(x: Any, y: Any, out: Any) -> None:
            k = cuda.grid(1)
            if k < out.size:
                out[k] = x[k] + y[k]

        self.launch = cuda.jit(add)[8, 128]
        for _ in range(3):
            self.add(self.x, self.y)
            self.launch(self.x, self.y, self.out)

    def time_add(self) -> None:
        self.add(self.x, self.y)

    def time_numba_launch(self) -> None:
        self.launch(self.x, self.y, self.out)


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
    """The first call of a process; importing Numba is most of a cold one."""

    params = (("gelu", "layer_norm"), fresh_process.LIBRARIES, ("cold", "warm"))
    param_names = ("function", "arrays", "cache")
    number = 1
    warmup_time = 0.0
    folder = ""  # of a set-up that went on

    def setup(self, function: str, arrays: str, cache: str) -> None:
        if arrays == "cuda":
            require_torch_cuda()
        elif arrays == "torch":
            require("torch")
        self.folder = tempfile.mkdtemp(prefix="nfuser-asv-first-")
        fresh_process.measure("nfuser", function, arrays, self.folder)

    def teardown(self, function: str, arrays: str, cache: str) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def track_seconds_beyond_library(
        self, function: str, arrays: str, cache: str
    ) -> float:
        given = "nfuser", function, arrays
        if cache == "cold":
            return min(fresh_process.cold(*given)["seconds"] for _ in range(2))
        return self._warm(*given, "seconds")

    def track_seconds_of_second_call(
        self, function: str, arrays: str, cache: str
    ) -> float:
        if cache == "cold":
            return fresh_process.cold("nfuser", function, arrays)["second"]
        return self._warm("nfuser", function, arrays, "second")

    def _warm(self, compiler: str, function: str, arrays: str, what: str) -> float:
        given = compiler, function, arrays, self.folder
        return min(fresh_process.measure(*given)[what] for _ in range(5))
