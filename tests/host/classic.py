# SPDX-License-Identifier: Apache-2.0
"""The three classic programs: copies, each with its stream axis, if any."""

from __future__ import annotations

from typing import TYPE_CHECKING

import nfuser
from nfuser.execution.host.passes.lower_streams import lower_streams

if TYPE_CHECKING:
    from nfuser.compiler.ir.tensor import TensorView

CLASSIC: dict[str, tuple[int | None, ...]] = {
    "one_set": (0,),
    "two_sets_share_a_loop": (0, 0),
    "a_plain_set_between_two_loops": (0, None, 0),
}


def sets(*axes: int | None) -> nfuser.HostProgram:
    """Return chained copies."""
    hc = nfuser.HostIrContainer("sets")
    last = hc.define_tensor([-1, -1])
    bindings: dict[TensorView, int] = {}
    for axis in axes:
        last = hc.set(last)
        if axis is not None:
            bindings[last] = axis
    hc.add_output(last)
    return lower_streams(hc.program(), bindings)
