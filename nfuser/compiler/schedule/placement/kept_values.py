# SPDX-License-Identifier: Apache-2.0
"""What one pass over a row computes and a later one reads again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.domains.maps import source_points
from nfuser.compiler.domains.space import reads
from nfuser.compiler.ir.expr import (
    Argument,
    Concatenate,
    Pad,
    Pointwise,
    Reduce,
    Scan,
    sources,
)
from nfuser.compiler.ir.point_op import CAST, is_copy
from nfuser.compiler.ir.walk import toposort

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from nfuser.compiler.domains.maps import Read
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.schedule.placement.varying import Varying

_MADE = (Pointwise, Argument, Reduce, Scan, Pad, Concatenate)


def read_again(
    fusion: Fusion, varying: Varying, passes: Sequence[list[Read]]
) -> list[Read]:
    """Return what varies along rows and may be kept; ``passes`` lists their roots.

    Of what two passes both need, only the outermost values are kept: those that the
    later pass reads in computing something that the earlier one did not.
    """
    seen: set[Read] = set()
    found: dict[Read, None] = {}
    for roots in passes:
        needed = closure(fusion, varying, roots)
        fresh = set(needed) - seen
        for key in needed:
            inner = varying.needs(key) if key in fresh else []
            edges = [*inner, *([key] if key in roots and key not in fresh else [])]
            for read in edges:
                if read in seen:
                    found[_materialised(varying, read)] = None
        seen.update(needed)
    return [key for key in found if varying.place(key).in_tile]


def loaded_again(
    fusion: Fusion,
    varying: Varying,
    passes: Sequence[list[Read]],
    is_loaded: Callable[[Read], bool],
) -> list[Read]:
    """Return what more than one pass loads, of all that ``is_loaded``."""
    seen: set[Read] = set()
    found: dict[Read, None] = {}
    for roots in passes:
        needed = [k for k in closure(fusion, varying, roots) if is_loaded(k)]
        found.update(dict.fromkeys(key for key in needed if key in seen))
        seen.update(needed)
    return list(found)


def closure(fusion: Fusion, varying: Varying, roots: list[Read]) -> list[Read]:
    """Return all that ``roots`` read, themselves included, that varies along rows."""
    found = reads(fusion, list(dict.fromkeys(roots)))
    return [key for key in found if varying.place(key).in_tile]


def _materialised(varying: Varying, key: Read) -> Read:
    """Follow views and copies to the value that is really computed or loaded."""
    while True:
        expr = varying.definition[key[0]]
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


def is_costly(varying: Varying, key: Read) -> bool:
    """Tell whether anything dear is computed on the way to ``key``."""
    exprs = toposort(
        [varying.definition[key[0]]],
        lambda e: (
            []
            if isinstance(e, Reduce | Scan)
            else [varying.definition[t] for t in sources(e)]
        ),
    )
    return any(isinstance(e, Pointwise) and e.op.is_costly for e in exprs)


def is_cheap(varying: Varying, key: Read, kept: Container[Read]) -> bool:
    """Tell whether one operation makes ``key`` of what is kept, and of rows' values."""
    expr = varying.definition[key[0]]
    if not isinstance(expr, Pointwise) or expr.op.is_costly:
        return False
    inner = (_materialised(varying, read) for read in varying.needs(key))
    return all(read in kept or not varying.place(read).in_tile for read in inner)
