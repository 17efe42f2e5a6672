# SPDX-License-Identifier: Apache-2.0
"""Give clusters of blocks as many rows as let all of them run at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from nfuser.codegen.printers.source import Source
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.open_integer import OpenInteger
from nfuser.compiler.ir.scalars.symbols import knob

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.execution.device.cuda.module import CudaFunction
    from nfuser.execution.runtime.kernel_runtime import CompiledSegment


def fit_clusters(
    compiled: CompiledSegment, values: Mapping[Scalar, int]
) -> dict[Scalar, int]:
    """Return how many rows a cluster takes, where the device says how many there are.

    One cluster more than run at once would begin when the first ones have ended.
    """
    launch = compiled.source.form.launch
    function = cast("CudaFunction | Source | None", compiled.executable)
    if launch.cluster == 1 or function is None or isinstance(function, Source):
        return {}
    rounds = knob("rounds")
    one_each = {**values, rounds: 1}
    sizes = (launch.grid[0], *launch.block)
    tiles, x, y = scalar_walk.evaluate_all(sizes, one_each)
    if isinstance(tiles, OpenInteger):
        return {}
    there = function.clusters_at_once(launch.cluster, x * y, launch.shared_bytes)
    return {rounds: -(-tiles // there)} if there else {}
