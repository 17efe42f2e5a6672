# SPDX-License-Identifier: Apache-2.0
"""Whole kernels: softmax in a block, reductions that are split over blocks."""

from __future__ import annotations

import time

import numpy as np
import pytest

from nfuser.codegen.compile_cuda import compile_cuda
from nfuser.interpret import Buffer, InterpreterError, run

HEADER = "from numba import cuda\nfrom nfuser.codegen.primitives.cuda import *\n"


def _reduced(value: str, combine: str) -> str:
    """Return lines that combine ``value`` over the 64 threads of a block."""
    lines = [
        f"{value} = {combine.format(f'shuffle_xor({value}, {distance})', value)}"
        for distance in (16, 8, 4, 2, 1)
    ]
    lines += [
        "cuda.syncthreads()",
        "if lane == 0:",
        f"    s0[warp] = {value}",
        "cuda.syncthreads()",
        f"{value} = {combine.format('s0[0]', 's0[1]')}",
    ]
    return "".join(f"    {line}\n" for line in lines)


SOFTMAX = (
    HEADER
    + """
@cuda.jit("void(CPointer(float32), CPointer(float32), int32)", launch_bounds=64)
def softmax(T0, T1, n1):
    tx = int32(cuda.threadIdx.x)
    lane = urem(tx, int32(32))
    warp = udiv(tx, int32(32))
    s0 = cuda.shared.array(2, float32)
    r0 = cuda.local.array(4, float32)
    i0 = int32(cuda.blockIdx.x * n1 + tx * 4)
    load_packet_4(r0, 0, T0, i0)
    m = r0[0]
    for k in range(1, 4):
        m = maximum(m, r0[k])
"""
    + _reduced("m", "maximum({}, {})")
    + """
    a = float32(0.0)
    for k in range(4):
        r0[k] = exp(r0[k] - m)
        a = a + r0[k]
"""
    + _reduced("a", "{} + {}")
    + """
    for k in range(4):
        r0[k] = divide(r0[k], a)
    store_packet_4(T1, i0, r0, 0)
"""
)


def _softmax(text: str, rows: int = 64) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(0).standard_normal((rows, 256)).astype(np.float32)
    y = np.full_like(x, np.nan)
    arguments = [Buffer(x.reshape(-1)), Buffer(y.reshape(-1), initialized=False), 256]
    run(text, "softmax", (rows, 1, 1), (64, 1, 1), arguments)
    return x, y


def test_softmax_by_shuffles_and_shared_memory() -> None:
    x, y = _softmax(SOFTMAX)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-6)


def test_every_barrier_of_softmax_is_needed() -> None:
    pieces = SOFTMAX.split("    cuda.syncthreads()\n")
    assert len(pieces) == 5
    barrier = "    cuda.syncthreads()\n"
    for left_out in range(2, 5):  # nothing is in s0 before the first
        before, after = pieces[:left_out], pieces[left_out:]
        text = barrier.join(before) + barrier.join(after)
        with pytest.raises(InterpreterError, match=r"race|nothing wrote"):
            _softmax(text, rows=2)


def test_softmax_runs_in_well_under_50_ms() -> None:
    _softmax(SOFTMAX)
    best = 1.0
    for _ in range(5):
        start = time.perf_counter()
        _softmax(SOFTMAX)
        best = min(best, time.perf_counter() - start)
    assert best < 0.05


SPLIT_SUM = (
    HEADER
    + """
@cuda.jit("void(CPointer(float32), CPointer(float32), CPointer(float32), "
          "CPointer(uint32), int32)", launch_bounds=32)
def split_sum(T0, T1, w0, w1, n0):
    tx = int32(cuda.threadIdx.x)
    bx = int32(cuda.blockIdx.x)
    s0 = cuda.shared.array(1, int32)
    a = float32(0.0)
    k = int32(bx * 32 + tx)
    while k < n0:
        a = a + load(T0, k)
        k = int32(k + cuda.gridDim.x * 32)
    a = a + shuffle_xor(a, 16)
    a = a + shuffle_xor(a, 8)
    a = a + shuffle_xor(a, 4)
    a = a + shuffle_xor(a, 2)
    a = a + shuffle_xor(a, 1)
    if tx == 0:
        store(w0, bx, a)
        cuda.threadfence()
        s0[0] = ticket(w1, 0)
    cuda.syncthreads()
    if s0[0] == cuda.gridDim.x - 1:
        a = float32(0.0)
        k = tx
        while k < cuda.gridDim.x:
            a = a + load_volatile(w0, k)
            k = int32(k + 32)
        a = a + shuffle_xor(a, 16)
        a = a + shuffle_xor(a, 8)
        a = a + shuffle_xor(a, 4)
        a = a + shuffle_xor(a, 2)
        a = a + shuffle_xor(a, 1)
        if tx == 0:
            store(T1, 0, a)
            reset(w1, 0)
"""
)


def _split_sum(text: str, seed: int = 0, blocks: int = 40) -> tuple[np.ndarray, ...]:
    x = np.random.default_rng(seed).standard_normal(5000).astype(np.float32)
    total, counter = np.zeros(1, np.float32), np.zeros(1, np.uint32)
    arguments = [
        Buffer(x),
        Buffer(total, initialized=False),
        Buffer(np.zeros(blocks, np.float32), initialized=False),
        Buffer(counter),
        x.size,
    ]
    run(text, "split_sum", (blocks, 1, 1), (32, 1, 1), arguments, seed=seed)
    return x, total, counter


@pytest.mark.parametrize("seed", range(4))
def test_the_block_that_finishes_last_adds_the_others_up(seed: int) -> None:
    x, total, counter = _split_sum(SPLIT_SUM, seed)
    np.testing.assert_allclose(total[0], x.sum(dtype=np.float64), atol=1e-3)
    assert counter[0] == 0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("load_volatile(w0", "load(w0", "use load_volatile"),
        ("== cuda.gridDim.x - 1", "== cuda.gridDim.x - 2", "nothing wrote"),
        ("== cuda.gridDim.x - 1", ">= 0", "nothing wrote|race"),
        (
            "        s0[0] = ticket(w1, 0)\n    cuda.syncthreads()\n",
            "        s0[0] = ticket(w1, 0)\n",
            "race: read of shared",
        ),
    ],
)
def test_a_broken_split_sum_is_found(old: str, new: str, message: str) -> None:
    text = SPLIT_SUM.replace(old, new)
    assert text != SPLIT_SUM
    with pytest.raises(InterpreterError, match=message):
        _split_sum(text)


def test_a_ticket_publishes_only_what_came_before_it() -> None:
    late = SPLIT_SUM.replace("        store(w0, bx, a)\n", "").replace(
        "        s0[0] = ticket(w1, 0)\n",
        "        s0[0] = ticket(w1, 0)\n        store(w0, bx, a)\n",
    )
    with pytest.raises(InterpreterError, match=r"race: read of w0\[\d+\], written by"):
        _split_sum(late)


NORMALIZE = (
    HEADER
    + """
@cuda.jit("void(CPointer(float32), CPointer(float32), CPointer(float32), "
          "CPointer(uint32))")
def normalize(T0, T1, w0, w1):
    tx = int32(cuda.threadIdx.x)
    bx = int32(cuda.blockIdx.x)
    i = int32(bx * 32 + tx)
    x = load(T0, i)
    a = x
    a = a + shuffle_xor(a, 16)
    a = a + shuffle_xor(a, 8)
    a = a + shuffle_xor(a, 4)
    a = a + shuffle_xor(a, 2)
    a = a + shuffle_xor(a, 1)
    if tx == 0:
        store(w0, bx, a)
        t = ticket(w1, 0)
    wait(w1, 0, int32(cuda.gridDim.x))
    a = float32(0.0)
    k = int32(0)
    while k < cuda.gridDim.x:
        a = a + load_volatile(w0, k)
        k = int32(k + 1)
    store(T1, i, divide(x, a))
"""
)


def _normalize(text: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(seed).random(160).astype(np.float32)
    y = np.zeros_like(x)
    arguments = [
        Buffer(x),
        Buffer(y, initialized=False),
        Buffer(np.zeros(5, np.float32), initialized=False),
        Buffer(np.zeros(1, np.uint32)),
    ]
    run(text, "normalize", (5, 1, 1), (32, 1, 1), arguments, seed=seed)
    return x, y


@pytest.mark.parametrize("seed", range(4))
def test_blocks_that_wait_for_each_other_interleave(seed: int) -> None:
    x, y = _normalize(NORMALIZE, seed)
    np.testing.assert_allclose(y, x / x.sum(), rtol=1e-5)


def test_a_wait_that_never_ends_is_a_deadlock() -> None:
    text = NORMALIZE.replace("int32(cuda.gridDim.x))", "int32(cuda.gridDim.x + 1))")
    with pytest.raises(InterpreterError, match="deadlock: 5 blocks wait"):
        _normalize(text)


def test_a_wait_for_too_few_is_found() -> None:
    text = NORMALIZE.replace("int32(cuda.gridDim.x))", "int32(cuda.gridDim.x - 1))")
    with pytest.raises(InterpreterError, match=r"nothing wrote|race: read of w0"):
        _normalize(text)


@pytest.mark.parametrize(
    ("text", "entry"),
    [(SOFTMAX, "softmax"), (SPLIT_SUM, "split_sum"), (NORMALIZE, "normalize")],
)
def test_the_same_text_compiles_for_the_device(text: str, entry: str) -> None:
    signature = {
        "softmax": "void(CPointer(float32), CPointer(float32), int32)",
        "split_sum": "void(CPointer(float32), CPointer(float32), CPointer(float32), "
        "CPointer(uint32), int32)",
        "normalize": "void(CPointer(float32), CPointer(float32), CPointer(float32), "
        "CPointer(uint32))",
    }
    binary = compile_cuda(text, entry, signature[entry])
    assert binary.spills == 0
    assert binary.local_bytes == 0
