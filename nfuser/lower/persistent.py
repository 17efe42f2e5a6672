# SPDX-License-Identifier: Apache-2.0
"""What one pass over a row computes and a later one reads again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.domains.maps import source_points
from nfuser.domains.space import reads
from nfuser.ir import scalar as sc
from nfuser.ir.expr import (
    Argument,
    Concatenate,
    Pad,
    Pointwise,
    Reduce,
    Scan,
    results,
    sources,
)
from nfuser.ir.point_op import CAST, is_copy
from nfuser.ir.walk import toposort
from nfuser.lower.kernel.kernel_ir import For, Number, SetElement
from nfuser.schedule.heuristics.cuda import CudaReduction

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nfuser.ir.fusion import Fusion
    from nfuser.ir.tensor import TensorView
    from nfuser.lower.scopes import Key
    from nfuser.lower.values import Values


_CLEARING = 2000  # number of the loop made here, unlike those of nests and combiners
_MADE = (Pointwise, Argument, Reduce, Scan, Pad, Concatenate)


def kept_values(values: Values, passes: list[list[Key]]) -> list[Key]:
    """Return the values to keep; ``passes`` lists the roots of each pass.

    Of what two passes both need, only the outermost values are kept: those that the
    later pass reads in computing something that the earlier one did not. A GPU thread
    keeps whatever it can; a CPU reads its cache again unless the value was costly.
    """
    seen: set[Key] = set()
    found: dict[Key, None] = {}
    for roots in passes:
        needed = closure(values, roots)
        fresh = set(needed) - seen
        for key in needed:
            inner = values.needs(key) if key in fresh else []
            edges = [*inner, *([key] if key in roots and key not in fresh else [])]
            for read in edges:
                if read in seen:
                    found[_materialised(values, read)] = None
        seen.update(needed)
    return [k for k in found if _is_worth_keeping(values, k, found)]


def read_again(values: Values, passes: list[list[Key]]) -> list[Key]:
    """Return the packets of rows that more than one pass reads."""
    packed = values.scheduled.heuristic.packed
    seen: set[Key] = set()
    found: dict[Key, None] = {}
    for roots in passes:
        needed = [
            key
            for key in closure(values, roots)
            if key[0] in values.buffers and values.numbered(key) in packed
        ]
        found.update(dict.fromkeys(key for key in needed if key in seen))
        seen.update(needed)
    return list(found)


def is_everywhere(values: Values, roots: list[Key]) -> bool:
    """Tell whether steps beyond the end have all kept values that ``roots`` read."""
    return (values.filled - values.everywhere).isdisjoint(closure(values, roots))


def computed_everywhere(values: Values, roots: list[Key]) -> list[Key]:
    """Return what every step can compute of what ``roots`` read and is to be kept."""
    return [
        key
        for key in closure(values, roots)
        if key in values.kept
        and key not in values.filled
        and key[0] not in values.buffers
        and is_everywhere(values, [key])
    ]


def closure(values: Values, roots: list[Key]) -> list[Key]:
    """Return all that ``roots`` read, themselves included, that varies along rows."""
    found = reads(values.scheduled.fusion, list(dict.fromkeys(roots)))
    return [key for key in found if values.place(key).in_tile]


def forget(values: Values) -> None:
    """Clear what is kept: where a row ends early, nothing of the last one stays.

    Else its registers would be taken from one row to the next.
    """
    for array in values.kept.values():
        each = sc.loop_index(_CLEARING, array.size)
        zero = Number(0, array.dtype)
        clear = SetElement(array, each, zero)
        values.emit(For(each, each.extent, (clear,)))


def _materialised(values: Values, key: Key) -> Key:
    """Follow views and copies to the value that is really computed or loaded."""
    while True:
        expr = values.definition[key[0]]
        is_alias = not isinstance(expr, _MADE) or (
            isinstance(expr, Pointwise)
            and (
                is_copy(expr.op)
                or (
                    expr.op is CAST
                    and expr.operands[0].dtype.compute is expr.result.dtype
                )
            )
        )
        inner = source_points(expr, key[1]) if is_alias else []
        if not inner:
            return key
        key = inner[0]


def _is_worth_keeping(values: Values, key: Key, found: Iterable[Key]) -> bool:
    if not values.place(key).in_tile:
        return False
    heuristic = values.scheduled.heuristic
    if isinstance(heuristic, CudaReduction) and heuristic.is_shared:
        # Blocks that share rows have registers for what was read, and for little more.
        return not _is_cheap(values, key, found)
    if values.scheduled.target.has_blocks:
        return True
    exprs = toposort(
        [values.definition[key[0]]],
        lambda e: (
            []
            if isinstance(e, Reduce | Scan)
            else [values.definition[t] for t in sources(e)]
        ),
    )
    return any(isinstance(e, Pointwise) and e.op.is_costly for e in exprs)


def _is_cheap(values: Values, key: Key, found: Iterable[Key]) -> bool:
    """Tell whether one operation makes ``key`` of what is kept, and of rows' values."""
    expr = values.definition[key[0]]
    if not isinstance(expr, Pointwise) or expr.op.is_costly:
        return False
    inner = (_materialised(values, read) for read in values.needs(key))
    return all(read in found or not values.place(read).in_tile for read in inner)


def depths(fusion: Fusion) -> dict[TensorView, int]:
    """Count the reductions that must be complete before each tensor is known."""
    depth: dict[TensorView, int] = {}
    for expr in fusion.exprs:
        above = max((depth[t] for t in sources(expr)), default=0)
        above += isinstance(expr, Reduce)
        depth.update(dict.fromkeys(results(expr), above))
    return depth
