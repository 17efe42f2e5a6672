# SPDX-License-Identifier: Apache-2.0
"""From a schedule to a kernel: built first, then passed through a tuple of passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.base.debug import dump
from nfuser.base.debug.passes import run_passes
from nfuser.compiler.lower.build import build
from nfuser.compiler.lower.cpu.bound_angles import bound_angles
from nfuser.compiler.lower.cpu.bound_powers import bound_powers
from nfuser.compiler.lower.cpu.finish_rows import finish_rows
from nfuser.compiler.lower.cpu.memory.fetch_ahead import fetch_ahead
from nfuser.compiler.lower.cpu.memory.fetch_tiles import fetch_tiles
from nfuser.compiler.lower.cpu.memory.share_addresses import share_addresses
from nfuser.compiler.lower.cpu.split_ranges import split_ranges
from nfuser.compiler.lower.cpu.tile_draws import tile_draws
from nfuser.compiler.lower.cpu.unwrap_modulo import unwrap_modulo
from nfuser.compiler.lower.cpu.vectors.group_turns import group_turns
from nfuser.compiler.lower.cpu.vectors.interleave_loops import interleave_loops
from nfuser.compiler.lower.cpu.vectors.interleave_vectors import interleave_vectors
from nfuser.compiler.lower.cuda.draw_packets import draw_packets
from nfuser.compiler.lower.join import (
    Common,
    bound_indices,
    grid_of,
    in_turn,
    joined,
    side_by_side,
)
from nfuser.compiler.lower.kernel.kernel_ir import LoopCounter
from nfuser.compiler.lower.kernel.parameters import take_from_host
from nfuser.compiler.lower.kernel.text import text
from nfuser.compiler.lower.kernel.verify import verify_kernel
from nfuser.compiler.lower.loops.serial import build_serial
from nfuser.compiler.lower.prune import prune
from nfuser.compiler.schedule.scheduled import Scheduled, Serial

if TYPE_CHECKING:
    from nfuser.base.debug.passes import IrPass
    from nfuser.compiler.lower.kernel.kernel_ir import Kernel
    from nfuser.compiler.schedule.scheduled import Joined, Schedule

VECTOR_PASSES = (
    unwrap_modulo,
    split_ranges,  # after unwrap_modulo: between two multiples conditions are plain
    group_turns,  # after split_ranges: pieces have divisions of their own
    finish_rows,  # before fetch_ahead, whose requests would end turns
    fetch_ahead,  # before interleave_loops: rows are read from their begin
    interleave_loops,  # after split_ranges: pieces are not cut again
    bound_angles,  # after interleave_loops, which folds into variables of each piece
    bound_powers,
    prune,
    share_addresses,
    fetch_tiles,  # after share_addresses: requests are no accesses
    tile_draws,
    interleave_vectors,  # last: it counts what a loop has come to compute
)
"""The passes where the compiler makes vectors of inner loops."""

BLOCK_PASSES = (
    prune,
    draw_packets,
)
"""The passes where threads come in blocks."""


def lower(schedule: Schedule) -> Kernel:
    """Return the kernel that runs ``schedule``."""
    if isinstance(schedule, Scheduled):
        return take_from_host(passed(build(schedule)))
    if isinstance(schedule, Serial):
        return take_from_host(passed(build_serial(schedule)))
    return take_from_host(_parts(schedule))


def passed(kernel: Kernel) -> Kernel:
    """Return ``kernel`` after all passes of its target."""
    passes = passes_of(kernel)
    return run_passes("kernel", kernel, passes, verify=verify_kernel, dump=_dump)


def passes_of(kernel: Kernel) -> tuple[IrPass[Kernel], ...]:
    """Return the passes that ``kernel`` goes through."""
    has_vectors = kernel.scheduled.target.has_vectors
    return VECTOR_PASSES if has_vectors else BLOCK_PASSES


def _parts(schedule: Joined) -> Kernel:
    """Return one kernel of parts that run beside each other."""
    loops = LoopCounter(max(part.first_loop for part in schedule.parts))
    grid = grid_of(schedule, loops)
    common = Common(loops, bound_indices(schedule, grid))
    parts = [
        passed(in_turn(build(part, common), place.turns))
        for part, place in zip(side_by_side(schedule, grid), grid.places, strict=True)
    ]
    return joined(schedule, grid, parts, common)


def _dump(name: str, kernel: Kernel) -> None:
    if dump.wants(name):
        dump.dump(name, text(kernel), kernel.name)
