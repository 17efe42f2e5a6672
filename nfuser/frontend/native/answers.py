# SPDX-License-Identifier: Apache-2.0
"""What native code asks Python: whether arrays lie apart, what results are made of."""

# Arguments have no static type.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nfuser.compiler.trace.call import tree as trees
from nfuser.execution.device.describe.descriptor import describe
from nfuser.execution.device.describe.numpy import numpy_pointer
from nfuser.frontend.fuse.dynamo import graph_break

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nfuser.compiler.trace import Trace


def apartness(
    written: Sequence[int], places: Mapping[int, int], args: Sequence[Any]
) -> Callable[..., bool] | None:
    """Return what tells whether no array shares memory with one that is written.

    ``places`` are the positions of the arrays of the slots among ``args``.
    """
    if not written or len(places) < 2:
        return None
    spans: dict[int, tuple[int, int]] = {}
    for place in places.values():
        d = describe(args[place], "an argument")
        low, high = d.span
        spans[place] = low - d.pointer, high - d.pointer
    pairs = [
        (places[a], b, *spans[places[a]], *spans[b])
        for a in written
        for b in spans
        if b != places[a]
    ]

    @graph_break
    def are_apart(*args: Any) -> bool:
        at = {place: numpy_pointer(args[place]) for place in spans}
        return all(
            at[a] + end <= at[b] + begin or at[b] + stop <= at[a] + low
            for a, b, low, end, begin, stop in pairs
        )

    return are_apart


def assembler(trace: Trace) -> Callable[..., Any]:
    """Return what makes the result of the arrays of its leaves."""
    kinds = [leaf.python for leaf in trace.output_leaves]

    @graph_break
    def assembled(*found: Any) -> Any:
        pairs = zip(found, kinds, strict=True)
        leaves = [a if cls is None else cls(a.item()) for a, cls in pairs]
        return trees.unflatten(trace.output_tree, leaves)

    return assembled
