# SPDX-License-Identifier: Apache-2.0
"""The passes over what a block's threads hold of scanned rows, and what they keep."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.compiler.domains.maps import data_of
from nfuser.compiler.domains.space import reads
from nfuser.compiler.ir.expr import Scan, results, sources
from nfuser.compiler.schedule.placement.kept_values import read_again
from nfuser.compiler.schedule.placement.placement import Placement, Where

if TYPE_CHECKING:
    from nfuser.compiler.domains.maps import Read
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.schedule.placement.varying import Varying
    from nfuser.compiler.schedule.scheduled import Scheduled


def place_pieces(scheduled: Scheduled) -> Scheduled:
    """Return ``scheduled`` with what its passes leave for each other in registers."""
    fusion, points = scheduled.fusion, scheduled.space.points
    varying, stages = scheduled.varying(), scan_stages(fusion)
    passes = [[(s.source, points[s.result]) for s in scans] for scans in stages]
    passes[0] += read_early(scheduled, varying, stages[0])
    passes.append([(t, points[t]) for t in fusion.outputs])
    again = read_again(fusion, varying, passes)
    # What a scan gives is held by those that scan it.
    kept = (k for k in again if not isinstance(fusion.definition[k[0]], Scan))
    placed = dict.fromkeys(kept, Placement(Where.REGISTERS))
    return replace(scheduled, placements=placed)


def scan_stages(fusion: Fusion) -> list[list[Scan]]:
    """Return the scans by how many others each waits for."""
    depth: dict[TensorView, int] = {}
    stages: list[list[Scan]] = []
    for expr in fusion.exprs:
        above = max((depth[t] for t in sources(expr)), default=0)
        if isinstance(expr, Scan):
            stages += [[]] if above == len(stages) else []
            stages[above].append(expr)
            above += 1
        depth.update(dict.fromkeys(results(expr), above))
    return stages


def read_early(scheduled: Scheduled, varying: Varying, first: list[Scan]) -> list[Read]:
    """Return what is read for later only: it is loaded with what is scanned first."""
    fusion, points = scheduled.fusion, scheduled.space.points
    begin = [(t, points[t]) for t in fusion.outputs]
    begin += [(s.source, points[s.result]) for s in fusion.scans if s not in first]
    return [
        key
        for key in reads(fusion, list(dict.fromkeys(begin)))
        if scheduled.is_input(key)
        and varying.place(key).in_tile
        and not key[1].guard
        and not data_of(key[1])  # which an earlier scan may choose
    ]
