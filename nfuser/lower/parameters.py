# SPDX-License-Identifier: Apache-2.0
"""The integers that a kernel takes from the host."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, cast, get_args

from nfuser.ir import scalar as sc
from nfuser.ir import scalar_walk
from nfuser.ir.scalar import Binary, Op, Scalar
from nfuser.ir.walk import toposort
from nfuser.lower.kernel_ir import Stmt, Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SCALARS = get_args(Scalar)
_PARTS = (*get_args(Stmt), *get_args(Value))


def host_scalars(
    body: Iterable[Stmt], *, prepare_divisions: bool
) -> tuple[Scalar, ...]:
    """Return the symbols that ``body`` uses, in order of first use.

    With ``prepare_divisions``, also what the host computes of each divisor that is not
    a constant, so that kernels divide by multiplying.
    """
    found: dict[Scalar, None] = {}
    for scalar in scalars_in(body):
        for x in toposort([scalar], scalar_walk.children):
            if isinstance(x, (sc.Size, sc.ScalarInput, sc.Stride)):
                found[x] = None
            elif prepare_divisions and isinstance(x, Binary):
                found.update(dict.fromkeys(_prepared(x)))
    return tuple(found)


def _prepared(x: Binary) -> tuple[Scalar, ...]:
    if x.op not in (Op.FLOORDIV, Op.MOD) or isinstance(x.rhs, sc.Const):
        return ()
    return sc.multiplier(x.rhs), sc.shift(x.rhs)


def scalars_in(body: Iterable[Any]) -> Iterator[Scalar]:
    """Yield every scalar in ``body``, in program order."""
    for item in body:
        if isinstance(item, _SCALARS):
            yield item
        elif isinstance(item, tuple):
            yield from scalars_in(cast("tuple[Any, ...]", item))
        elif isinstance(item, _PARTS):
            yield from scalars_in(getattr(item, f.name) for f in fields(item))
