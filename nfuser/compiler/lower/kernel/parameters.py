# SPDX-License-Identifier: Apache-2.0
"""The integers that a kernel takes from the host."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

import nfuser.compiler.ir.scalars.exact_division as exact_division
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.operators import Op
from nfuser.compiler.ir.scalars.scalar import Binary, Scalar, Select
from nfuser.compiler.ir.walk import toposort
from nfuser.compiler.lower.kernel.walk import every

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nfuser.compiler.lower.kernel.kernel_ir import Kernel, Stmt

_SCALARS = frozenset(get_args(Scalar))


def take_from_host(kernel: Kernel) -> Kernel:
    """Let ``kernel`` take all integers that it uses, and does not compute, as given."""
    prepares = kernel.scheduled.target.prepares_divisions and not kernel.wide_index
    scalars = host_scalars(kernel.body, prepare_divisions=prepares)
    return replace(kernel, scalars=scalars)


def host_scalars(
    body: Iterable[Stmt], *, prepare_divisions: bool
) -> tuple[Scalar, ...]:
    """Return the symbols that ``body`` uses, in order of first use.

    Quotients and the like that no loop enters come from the host too. With
    ``prepare_divisions``, also what the host computes of each divisor that is not a
    constant, so that kernels divide by multiplying.
    """
    found: dict[Scalar, None] = {}
    for scalar in scalars_in(body):
        for x in toposort([scalar], computed_from):
            if isinstance(x, (sc.Size, sc.ScalarInput, sc.Stride, sc.Knob)) or is_host(
                x
            ):
                found[x] = None
            elif prepare_divisions and isinstance(x, Binary):
                found.update(dict.fromkeys(_prepared(x)))
    return tuple(found)


def is_host(x: Scalar) -> bool:
    """Tell whether the host computes ``x``: what no loop enters, and takes a while."""
    if not isinstance(x, (Binary, Select)):
        return False
    if isinstance(x, Binary) and x.op in (Op.LT, Op.EQ):
        return False
    return not scalar_walk.varying(x)


def computed_from(x: Scalar) -> tuple[Scalar, ...]:
    """Return what the kernel computes ``x`` of."""
    if is_host(x) or isinstance(x, sc.LoopIndex):
        return ()
    # What an index tensor says is in a variable, however it was computed.
    return () if isinstance(x, sc.Datum) else scalar_walk.children(x)


def _prepared(x: Binary) -> tuple[Scalar, ...]:
    if x.op not in (Op.FLOORDIV, Op.MOD) or isinstance(x.rhs, sc.Const):
        return ()
    return exact_division.multiplier(x.rhs), exact_division.shift(x.rhs)


def scalars_in(body: Iterable[Any]) -> list[Any]:
    """Return every scalar in ``body``, in program order."""
    return [x for x in every(body, _SCALARS) if type(x) in _SCALARS]
