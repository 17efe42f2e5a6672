# SPDX-License-Identifier: Apache-2.0
"""Rows with sums across them: the numbers, by the sizes of one call.

A thread of the CPU, or a block of a GPU, goes through a part of the rows one after the
other. A GPU's threads stay at their columns, whose sums lie in their registers; a CPU
adds to a row of memory that stays in its cache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.schedule.facts.memory import (
    memory_tensors,
    needs_wide_index,
    patterns,
)
from nfuser.compiler.schedule.facts.target import WARP
from nfuser.compiler.schedule.facts.weight import ROW_LIMIT, limited, weight
from nfuser.compiler.schedule.heuristics.cpu import CpuReduction
from nfuser.compiler.schedule.heuristics.cuda import CudaReduction, Geometry
from nfuser.compiler.schedule.reduction.cpu import CHUNK_ALONE
from nfuser.compiler.schedule.reduction.cuda.geometry import RESIDENT_THREADS
from nfuser.compiler.schedule.reduction.folding import sums_in_f64
from nfuser.compiler.segment.both_ways import PARTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.schedule.facts.target import Target
    from nfuser.compiler.schedule.reduction.row_shape import RowShape

THREADS = 256  # of a block, as long as the sums of its columns fit their registers
BESIDE = 128 // WARP  # short rows that a block goes through side by side
WORDS = 96  # registers of a thread for its columns' sums, and for what is kept
REGISTERS = 65536  # of a multiprocessor
SPARE = 28  # registers of a thread for addresses, and for what is being computed


def cpu_both_ways(fusion: Fusion, shape: RowShape) -> CpuReduction:
    """Let a thread take a part of the rows, and keep rows that fit its stack."""
    is_chunked = sums_in_f64(fusion)
    room = shape.facts.target.stack_elements
    return CpuReduction(
        shape.kept,
        shape.reduced,
        patterns(fusion, shape.facts),
        inner=True,
        room=room if shape.length <= room else 0,
        chunk=CHUNK_ALONE if is_chunked else 0,
        compensated=is_chunked,
        short=shape.is_short,
    )


def cuda_both_ways(fusion: Fusion, shape: RowShape) -> CudaReduction:
    """Let a block take a part of the rows, each thread packets of columns."""
    width = limited(shape.width(), fusion)
    most = shape.facts.target.most_threads
    packets = max(shape.length // width, 1)
    fold, steps = _threads_and_steps(fusion, shape, packets, width)
    keeps = _fits(fusion, shape, fold, steps, width)
    keep = BESIDE if fold == WARP and keeps else 1
    return CudaReduction(
        shape.kept,
        shape.reduced,
        patterns(fusion, shape.facts),
        inner=True,
        width=width,
        steps=steps if keeps else 0,
        known=Geometry(0, 0, 1, 0),
        wide_index=needs_wide_index(fusion, shape.facts),
        compensated=not keeps and sums_in_f64(fusion),
        packed=shape.packed(width, memory_tensors(fusion)),
        threads=max(fold, BESIDE * WARP) if fold * keep <= THREADS else most,
        geometry=Geometry(fold, keep, 1),
    )


def _threads_and_steps(
    fusion: Fusion, shape: RowShape, packets: int, width: int
) -> tuple[int, int]:
    """Return the threads of a row, whole warps, and the packets that each has of it.

    There are more threads where the packets would not fit the registers of few.
    """
    fold = WARP
    while fold < shape.facts.target.most_threads and (
        -(-packets // fold) > (1 if fold < THREADS else 2)
        or not _fits(fusion, shape, fold, -(-packets // fold), width)
    ):
        fold *= 2
    steps = -(-packets // fold)
    return fold, 1 << (steps - 1).bit_length()


def summed_in_shared_memory(fusion: Fusion, heuristic: CudaReduction) -> int:
    """Return the bytes of the sums of a block's columns, if its registers are too few.

    0 if they lie in registers: what is read of a row needs these, too.
    """
    sums = sum(p.result.dtype.itemsize for p in fusion.partial_sums)
    size = heuristic.room * sums
    read = sum(a.result.dtype.itemsize for a in fusion.arguments if a.result.ndim > 1)
    words = (size + heuristic.room * read) // 4
    is_full = words > REGISTERS // max(heuristic.most_threads, THREADS) - SPARE
    return size * heuristic.most_threads if is_full else 0


def has_registers(
    fusion: Fusion, heuristic: CudaReduction, beside: Sequence[TensorView] = ()
) -> bool:
    """Tell whether a thread has registers for its columns' sums, and more ``beside``.

    What is read of a row lies elsewhere.
    """
    kept = [*(p.result for p in fusion.partial_sums), *beside]
    size = sum(max(t.dtype.compute.itemsize, 4) for t in kept)
    threads = max(heuristic.most_threads, THREADS)
    return heuristic.room * size // 4 <= REGISTERS // threads - SPARE


def blocks_of_parts(target: Target, threads: int) -> int:
    """Return how many blocks of ``threads`` a multiprocessor has of the parts."""
    room = max(RESIDENT_THREADS // threads, 1)
    return min(-(-PARTS // target.multiprocessors), room)


def _fits(fusion: Fusion, shape: RowShape, fold: int, steps: int, width: int) -> bool:
    """Tell whether a thread has registers for its columns."""
    sums = sum(p.result.dtype.itemsize for p in fusion.partial_sums)
    words = steps * width * sums // 4 + shape.loaded_words(steps, width)
    return words <= WORDS and steps * width * weight(fusion) <= ROW_LIMIT
