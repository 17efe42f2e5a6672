# SPDX-License-Identifier: Apache-2.0
"""Drop what no output needs."""

from __future__ import annotations

from nfuser.ir.expr import Argument
from nfuser.ir.fusion import Fusion, live_exprs


def drop_dead_code(fusion: Fusion) -> Fusion:
    """Keep the arguments and what the outputs are computed from, in program order."""
    live = set(live_exprs(fusion.outputs, fusion.definition))
    kept = [e for e in fusion.exprs if e in live or isinstance(e, Argument)]
    if len(kept) == len(fusion.exprs):
        return fusion
    return Fusion(fusion.name, kept, fusion.outputs)
