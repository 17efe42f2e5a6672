# SPDX-License-Identifier: Apache-2.0
"""Where the values of assignments lie: in the memory of what they are assigned to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.schedule.facts.facts import TensorLayout

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.compiler.ir.expr import Assign
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView


def owners(fusion: Fusion) -> dict[TensorView, TensorView]:
    """Return the tensor whose memory the result of each assignment lies in."""
    found: dict[TensorView, TensorView] = {}
    for assign in fusion.assignments:
        found[assign.result] = found.get(assign.source, assign.source)
    return found


def lay_out_assigned(
    fusion: Fusion,
    layouts: dict[TensorView, TensorLayout],
    values: Mapping[Scalar, int],
) -> None:
    """Add the layouts of what assignments read and give.

    What a kernel has for itself lies nowhere.
    """
    owner = owners(fusion)
    given = {a.result for a in fusion.arguments}
    for tensor in fusion.outputs:
        if tensor in owner and owner[tensor] not in given:
            layouts[owner[tensor]] = layouts[tensor]
    for assign in fusion.assignments:
        if assign.source not in layouts:
            continue
        whole = layouts[assign.source]
        layouts[assign.result] = whole
        offset = first_byte(assign, whole.strides, values)
        pairs = zip(whole.strides, assign.steps, strict=True)
        alignment = min(whole.alignment, offset & -offset or whole.alignment)
        layouts[assign.value] = TensorLayout(tuple(s * k for s, k in pairs), alignment)


def first_byte(
    assign: Assign, strides: tuple[int, ...], values: Mapping[Scalar, int]
) -> int:
    """Return where the first element that is assigned lies, in bytes from the whole."""
    starts = scalar_walk.evaluate_all(assign.starts, values)
    pairs = zip(starts, strides, strict=True)
    return sum(int(a) * s for a, s in pairs) * assign.source.dtype.itemsize
