# SPDX-License-Identifier: Apache-2.0
"""What native code asks Python: whether arrays lie apart, what results are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nfuser.compiler.ir.scalars.scalar import ScalarInput, Size
from nfuser.compiler.ir.scalars.symbols import scalar_input, size
from nfuser.compiler.trace.call import tree as trees
from nfuser.compiler.trace.call.returned_views import moves_of, symbols_in, view_of
from nfuser.execution.device.describe.descriptor import describe
from nfuser.execution.device.describe.numpy import numpy_pointer
from nfuser.frontend.fuse.dynamo import graph_break

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.trace import Trace
    from nfuser.compiler.trace.call.returned_views import Move

_MOST_KNOWN = 64  # places of views, by sizes and integers


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


def assembler(
    trace: Trace, told: Sequence[Size | ScalarInput] = ()
) -> Callable[..., Any]:
    """Return what makes the result of the arrays of its leaves.

    Of an argument that a view is returned of, it is given the argument; after the
    leaves come the arguments that say where views lie, which are ``told`` by one of
    their sizes, or by their number.
    """
    leaves = trace.output_leaves
    views = {id(leaf): leaf.view for leaf in leaves if leaf.view is not None}
    known: dict[tuple[Any, ...], dict[int, tuple[Move, ...]]] = {}

    def moves(given: tuple[Any, ...]) -> Mapping[int, tuple[Move, ...]]:
        pairs = zip(told, given, strict=True)
        key: Any = tuple(x.shape if isinstance(s, Size) else int(x) for s, x in pairs)
        found = known.get(key)
        if found is None:
            values: dict[Scalar, int] = {}
            for symbol, x in zip(told, key, strict=True):
                if isinstance(symbol, Size):
                    values.update({size(symbol.slot, k): n for k, n in enumerate(x)})
                else:
                    values[scalar_input(symbol.slot)] = x
            found = {k: moves_of(steps, values) for k, steps in views.items()}
            if len(known) >= _MOST_KNOWN:
                known.clear()
            known[key] = found
        return found

    @graph_break
    def assembled(*found: Any) -> Any:
        count = len(leaves)
        made: list[Any] = []
        if views:
            where = moves(found[count:])
            objects = {
                id(leaf): view_of(array, where[id(leaf)])
                for array, leaf in zip(found, leaves, strict=False)
                if id(leaf) in where
            }
        else:
            objects: dict[int, Any] = {}
        for array, leaf in zip(found[:count], leaves, strict=True):
            if id(leaf) in objects:
                made.append(objects[id(leaf)])
            else:
                made.append(array if leaf.python is None else leaf.python(array.item()))
        return trees.unflatten(trace.output_tree, made)

    return assembled


def told_by(trace: Trace) -> list[Size | ScalarInput]:
    """Return what says where views lie: one symbol of each argument."""
    views = [leaf.view for leaf in trace.output_leaves if leaf.view]
    found = {x for steps in views for x in symbols_in(steps)}
    symbols = {x.slot: x for x in found if isinstance(x, (Size, ScalarInput))}
    return [symbols[slot] for slot in sorted(symbols)]
