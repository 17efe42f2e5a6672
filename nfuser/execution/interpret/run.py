# SPDX-License-Identifier: Apache-2.0
"""Run an emitted CUDA kernel on NumPy arrays and check what the hardware would not."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.errors import InterpreterError
from nfuser.execution.interpret.arrays import Cluster
from nfuser.execution.interpret.buffer import PointerArgument, PointerUse, RunReport
from nfuser.execution.interpret.expressions import PointerKind
from nfuser.execution.interpret.memory import Pointer, Region
from nfuser.execution.interpret.races import BlockOrder
from nfuser.execution.interpret.translate import RunnableKernel, translate
from nfuser.execution.interpret.wave import Wave

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_WAVE = 1 << 17  # threads at once: large enough for NumPy, small enough for the cache


def run(
    source_text: str,
    entry: str,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    arguments: Sequence[PointerArgument | float],
    *,
    shared_bytes: int = 0,
    seed: int = 0,
) -> RunReport:
    """Execute the kernel ``entry`` over ``grid`` and ``block``; write into the buffers.

    Blocks run in an order that ``seed`` decides, many at once; where they communicate
    by tickets, one at a time, interleaved where one waits for another.

    Raises
    ------
    InterpreterError
        At the first out-of-bounds access, read of memory that nothing wrote, race,
        misaligned packet, divergent barrier, or index that overflows its dtype.
    """
    program = translate(source_text, entry)
    _check_launch(program, grid, block)
    report = RunReport()
    values = _bound(program, arguments, report)
    blocks = list(range(grid[0] * grid[1] * grid[2]))
    random.Random(seed).shuffle(blocks)
    per_wave = 1 if program.ordered else max(1, _WAVE // int(np.prod(block)))
    waves: list[Wave] = []
    clusters: dict[int, Cluster] = {}
    for start in range(0, len(blocks), per_wave):
        some = blocks[start : start + per_wave]
        wave = Wave(some, grid, block, program.lines, shared_bytes)
        if program.ordered:
            wave.order = BlockOrder(wave, len(blocks))
        if program.cluster > 1:
            here = some[0] % grid[0]
            wave.cluster = clusters.setdefault(here, Cluster(program.cluster))
        waves.append(wave)
    with np.errstate(all="ignore"):
        _interleave(program, waves, values, random.Random(seed))
    report.waves = len(waves)
    report.barriers = sum(wave.barriers for wave in waves)
    for value in values:
        if isinstance(value, Pointer):
            value.access.distinct_elements_read = int(value.touched.sum())
    return report


def _check_launch(
    program: RunnableKernel, grid: tuple[int, int, int], block: tuple[int, int, int]
) -> None:
    threads = int(np.prod(block, dtype=np.int64))
    if not 0 < threads <= program.most_threads or block[2] > 64:
        raise InterpreterError(f"a block of {block} threads cannot be launched")
    if min(grid) < 1 or grid[0] >= 2**31 or max(grid[1:]) > 65535:
        raise InterpreterError(f"a grid of {grid} blocks cannot be launched")
    if program.cluster > 1 and grid[1:] != (program.cluster, 1):
        message = f"a grid of {grid} blocks in clusters of 1 by {program.cluster}"
        raise InterpreterError(f"{message} cannot be launched")


def _interleave(
    program: RunnableKernel, waves: list[Wave], values: list[Any], dice: random.Random
) -> None:
    """Run every wave to its end or to a wait; go on with those whose wait is over."""
    if not program.ordered:
        for wave in waves:
            _exhaust(program.function(wave, *values))
        return
    live = [(wave, program.function(wave, *values)) for wave in waves]
    progress = True  # they have not begun
    while live:
        dice.shuffle(live)
        left: list[tuple[Wave, Iterator[int]]] = []
        waiting = 0
        for wave, body in live:
            over = wave.waits
            line = next(body, None)
            progress |= line is None or wave.waits != over
            if line is not None:
                left.append((wave, body))
                waiting = line
        if left and not progress:
            left[0][0].fail(waiting, f"deadlock: {len(left)} blocks wait, none goes on")
        live, progress = left, False


def _exhaust(body: Iterator[int]) -> None:
    for _ in body:
        raise AssertionError("only kernels whose blocks communicate can wait")


def _bound(
    program: RunnableKernel,
    arguments: Sequence[PointerArgument | float],
    report: RunReport,
) -> list[Any]:
    """Return the arguments as the program takes them."""
    if len(arguments) != len(program.parameters):
        wanted, given = len(program.parameters), len(arguments)
        raise InterpreterError(f"the kernel takes {wanted} arguments, not {given}")
    pairs = list(zip(program.parameters, arguments, strict=True))
    regions = _regions(program, pairs)
    values: list[Any] = []
    for (name, kind), argument in pairs:
        if isinstance(kind, PointerKind):
            if (
                not isinstance(argument, PointerArgument)
                or argument.memory.dtype != kind.element
            ):
                found = getattr(argument, "storage", argument)
                found = getattr(found, "dtype", type(found).__name__)
                raise InterpreterError(f"{name} points to {kind.element}, not {found}")
            access = report.accesses[name] = PointerUse()
            region = regions[id(argument.storage)]
            touched = np.zeros(region.storage.size, bool)
            values.append(
                Pointer(
                    name, region, argument.offset, argument.address, access, touched
                )
            )
        elif isinstance(argument, PointerArgument):
            raise InterpreterError(f"{name} is a {kind}, not a pointer")
        else:
            values.append(_scalar(name, kind, argument))
    return values


def _regions(program: RunnableKernel, pairs: list[Any]) -> dict[int, Region]:
    """Return one region for each storage array, however many pointers go into it."""
    regions: dict[int, Region] = {}
    buffers = [(name, b) for (name, _), b in pairs if isinstance(b, PointerArgument)]
    for _, buffer in buffers:
        same = [(n, b) for n, b in buffers if b.storage is buffer.storage]
        regions[id(buffer.storage)] = Region(
            buffer.memory,
            initialized=all(b.initialized for _, b in same),
            # Of what is overwritten in place no order of accesses is required: threads
            # past the end read what another one has written, and drop it.
            written=any(n in program.written and not b.in_place for n, b in same),
            read=any(n in program.read for n, _ in same),
        )
    return regions


def _scalar(name: str, kind: str, value: float) -> Any:
    dtype = np.dtype(kind)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if value != int(value) or not limits.min <= value <= limits.max:
            raise InterpreterError(f"{name} = {value} does not fit {kind}")
    return dtype.type(value)
