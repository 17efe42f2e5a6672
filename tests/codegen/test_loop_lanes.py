# SPDX-License-Identifier: Apache-2.0
"""How many lanes, and vectors of them, a loop gets that asks for them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from nfuser.codegen.primitives import cpu
from nfuser.codegen.primitives.cpu.features import vector_bits
from tests.cpu_harness import compile_kernel


def _plain(n: int, out: Any, x: Any) -> None:
    cpu.wide_vectors()
    total = cpu.f64(0.0)
    for k in range(n):
        total = cpu.sum_reassoc(total, cpu.to_f64(cpu.exp(cpu.load(x, k))))
    cpu.store(out, 0, total)


def _marked(n: int, out: Any, x: Any) -> None:
    cpu.wide_vectors()
    total = cpu.f64(0.0)
    for k in range(n):
        cpu.lanes_of_32()
        total = cpu.sum_reassoc(total, cpu.to_f64(cpu.exp(cpu.load(x, k))))
    cpu.store(out, 0, total)


@pytest.mark.skipif(vector_bits() == 0, reason="it is left to LLVM here")
def test_a_marked_loop_fills_its_vectors() -> None:
    lanes = vector_bits() // 32
    x = np.linspace(-3, 3, 1000, dtype="f4")
    for kernel, fills in ((_plain, False), (_marked, True)):
        loop = compile_kernel(kernel, np.float64, np.float32)
        assert (f"fma.v{lanes}f32" in loop.text) is fills
        out = np.zeros(1)
        loop(x.size, out, x)
        np.testing.assert_allclose(out[0], np.exp(x.astype("f8")).sum(), rtol=1e-7)


def _quotients(n: int, out: Any, x: Any) -> None:
    for j in range(n):
        for k in range(n):
            cpu.interleave(4)
            t = cpu.load(x, j * n + k)
            cpu.store(out, j * n + k, cpu.divide(t, t + cpu.f32(1.0)))


def test_a_marked_loop_goes_by_as_many_vectors() -> None:
    loop = compile_kernel(_quotients, np.float32, np.float32)
    (body,) = re.findall(r"^vector\.body:.*?br i1", loop.text, re.DOTALL | re.MULTILINE)
    assert body.count("= fdiv <") == 4
    x = np.linspace(0, 3, 101 * 101, dtype="f4")
    out = np.zeros_like(x)
    loop(101, out, x)
    np.testing.assert_array_equal(out, x / (x + 1))


def _short(n: int, out: Any, x: Any) -> None:
    for j in range(n):
        for k in range(12):
            cpu.rolled()
            cpu.store(out, j * 12 + k, cpu.load(x, j))


def test_a_short_loop_becomes_vectors() -> None:
    loop = compile_kernel(_short, np.float32, np.float32)
    assert re.search(r"store <\d+ x float>", loop.text)
    x = np.linspace(0, 3, 101, dtype="f4")
    out = np.zeros(12 * 101, np.float32)
    loop(101, out, x)
    np.testing.assert_array_equal(out, np.repeat(x, 12))
