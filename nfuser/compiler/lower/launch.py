# SPDX-License-Identifier: Apache-2.0
"""How a kernel is launched: its grid, its blocks, and how often."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.lower.kernel.kernel_ir import LaunchShape
from nfuser.compiler.schedule.nest import Binding

if TYPE_CHECKING:
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.lower.cuda.combine import Combiner
    from nfuser.compiler.schedule.scheduled import Scheduled


def launch_of(
    scheduled: Scheduled, combiner: Combiner, levels: int, shared_bytes: int
) -> LaunchShape:
    """Return the launch of a kernel with so many passes that fold."""

    def extent(binding: Binding) -> Scalar:
        leaf = scheduled.nest.leaf(binding)
        return leaf.extent if leaf else sc.const(1)

    one = sc.const(1)
    phases = levels + 1 if combiner.phase else 1
    if not scheduled.target.has_blocks:
        pieces = extent(Binding.PARALLEL) * extent(Binding.BLOCK_Y)
        return LaunchShape((pieces, one), (one, one), 1, phases=phases)
    return LaunchShape(
        (extent(Binding.BLOCK_X), extent(Binding.BLOCK_Y)),
        (extent(Binding.THREAD_X), extent(Binding.THREAD_Y)),
        scheduled.threads,
        scheduled.blocks,
        is_cooperative=combiner.is_shared and combiner.boxes is None,
        cluster=combiner.boxes.blocks if combiner.boxes else 1,
        shared_bytes=shared_bytes,
        phases=phases,
    )
