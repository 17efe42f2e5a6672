# SPDX-License-Identifier: Apache-2.0
"""Whole kernels: softmax in a block, reductions that are split over blocks."""

from __future__ import annotations

import time

import numpy as np
import pytest

from nfuser.codegen.numba.compile_cuda import compile_cuda
from nfuser.execution.interpret import InterpreterError, PointerArgument, run
from tests.interpret.kernels import (
    CENTRE,
    CLUSTERS,
    KERNELS,
    NORMALIZE,
    SIGNATURES,
    SOFTMAX,
    SPLIT_SUM,
)


def _softmax(text: str, rows: int = 64) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(0).standard_normal((rows, 256)).astype(np.float32)
    y = np.full_like(x, np.nan)
    arguments = [
        PointerArgument(x.reshape(-1)),
        PointerArgument(y.reshape(-1), initialized=False),
        256,
    ]
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


def _split_sum(text: str, seed: int = 0, blocks: int = 40) -> tuple[np.ndarray, ...]:
    x = np.random.default_rng(seed).standard_normal(5000).astype(np.float32)
    total, counter = np.zeros(1, np.float32), np.zeros(1, np.uint32)
    arguments = [
        PointerArgument(x),
        PointerArgument(total, initialized=False),
        PointerArgument(np.zeros(blocks, np.float32), initialized=False),
        PointerArgument(counter),
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


def _normalize(text: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(seed).random(160).astype(np.float32)
    y = np.zeros_like(x)
    arguments = [
        PointerArgument(x),
        PointerArgument(y, initialized=False),
        PointerArgument(np.zeros(5, np.float32), initialized=False),
        PointerArgument(np.zeros(1, np.uint32)),
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


def _centre(text: str, seed: int = 0, boxes: int = 10) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(seed).random(160)
    y = np.zeros_like(x)
    arguments = [
        PointerArgument(x),
        PointerArgument(y, initialized=False),
        PointerArgument(np.zeros(boxes, np.uint64)),
    ]
    run(text, "centre", (5, 1, 1), (32, 1, 1), arguments, seed=seed)
    return x, y


@pytest.mark.parametrize("seed", range(4))
def test_blocks_that_receive_what_others_post_interleave(seed: int) -> None:
    x, y = _centre(CENTRE, seed)
    np.testing.assert_allclose(y, x - x.mean(), atol=1e-15)


def test_a_box_that_nobody_fills_is_a_deadlock() -> None:
    text = CENTRE.replace("post(w0, bx, a)", "post(w0, int32(bx + 1), a)")
    with pytest.raises(InterpreterError, match="deadlock: 5 blocks wait"):
        _centre(text, boxes=12)


def test_a_box_is_filled_once() -> None:
    text = CENTRE.replace("post(w0, bx, a)", "post(w0, udiv(bx, int32(2)), a)")
    with pytest.raises(InterpreterError, match=r"box w0\[\d\] is filled twice"):
        _centre(text)


def test_boxes_have_bounds() -> None:
    with pytest.raises(InterpreterError, match=r"out-of-bounds box of w0\[\d"):
        _centre(CENTRE, boxes=8)


def _clusters(
    text: str, seed: int = 0, blocks: int = 4
) -> tuple[np.ndarray, np.ndarray]:
    """Subtract its mean from each of six rows, three for each of two clusters."""
    x = np.random.default_rng(seed).random((6, 128))
    y = np.zeros_like(x)
    arguments = [PointerArgument(x.ravel()), PointerArgument(y.reshape(-1)), 3]
    run(text, "clusters", (2, blocks, 1), (32, 1, 1), arguments, seed=seed)
    return x, y


@pytest.mark.parametrize("seed", range(4))
def test_blocks_of_a_cluster_post_to_each_other(seed: int) -> None:
    x, y = _clusters(CLUSTERS, seed)
    np.testing.assert_allclose(y, x - x.mean(-1, keepdims=True), atol=1e-15)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("cluster_barrier()", "pass"), "before the blocks of its cluster have met"),
        (("boxes[tx] = uint64(0)", "pass"), "was not emptied before"),
        (
            ("by + urem(k, int32(2)) * 4, tx, a, int32(k + 1))", "by, tx, a, 1)"),
            "holds turn 1 already",
        ),
        (("tx, a, int32(k + 1))", "tx, a, int32(k + 2))"), "is of turn 2 already"),
        (("if tx < 4:", "if tx < 3:"), "deadlock: .* blocks wait"),
        (("if tx < 4:", "if tx < 5:"), "block 4 of a cluster of 4"),
        (("boxes, by +", "boxes, 20 + by +"), "out-of-bounds box of shared boxes"),
        (
            ("    cluster_barrier()", "    if tx < 4:\n        cluster_barrier()"),
            "some threads",
        ),
    ],
)
def test_what_goes_wrong_in_a_cluster_is_said(
    change: tuple[str, str], message: str
) -> None:
    assert CLUSTERS.count(change[0]) == 1
    with pytest.raises(InterpreterError, match=message):
        _clusters(CLUSTERS.replace(*change))


def test_a_grid_is_made_of_whole_clusters() -> None:
    with pytest.raises(InterpreterError, match="in clusters of 1 by 4 cannot be"):
        _clusters(CLUSTERS, blocks=3)


@pytest.mark.parametrize("entry", KERNELS)
def test_the_same_text_compiles_for_the_device(entry: str) -> None:
    binary = compile_cuda(KERNELS[entry], entry, SIGNATURES[entry])
    assert binary.spills == 0
    assert binary.local_bytes == 0
