# SPDX-License-Identifier: Apache-2.0
"""Operations of ``fd.ops`` that put elements in order; NaN is larger than all else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nfuser.compiler.ops as ops
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.frontend.definition.operations.shapes import along

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.frontend.definition.draft import Draft


def _sort(d: Draft, arg: Any, dim: int = -1, descending: bool = False) -> Any:
    """Put the elements along ``dim`` in order."""

    def order(x: Any, place: int) -> Any:
        return ops.sort(d.builder, x, place, descending=descending)

    return along(d, arg, dim, order)


def _argsort(
    d: Draft, arg: Any, dim: int, descending: bool = False, stable: bool = False
) -> Any:
    """Find where each element along ``dim`` was before they were put in order."""

    def order(x: Any, place: int) -> Any:
        return ops.argsort(d.builder, x, place, stable=stable, descending=descending)

    return along(d, arg, dim, order)


def _topk(
    d: Draft,
    arg: Any,
    k: Any,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,  # noqa: A002 (nvFuser's name)
) -> Any:
    """Find the ``k`` largest or smallest elements, in order, and where they are."""
    del sorted  # they always are
    x, count = d.tensor(arg), d.integer(k, "the k of topk")
    place = ops.normal_axis(dim, x.ndim)
    extent = x.shape[place]
    text = f"k is {k}, more than axis {place} of shape {d.shape_text(x)} has, by {{}}"
    d.require_natural(count, "k is {}, below 0")
    d.require_natural(extent - count, text)
    order = ops.argsort(d.builder, x, place, stable=True, descending=largest)
    extents = [*order.shape]
    extents[place] = count
    first = ops.sliced(d.builder, order, [sc.const(0)] * x.ndim, extents, (1,) * x.ndim)
    return ops.take_along_axis(d.builder, x, first, place), first


ORDERS: dict[str, Callable[..., Any]] = {
    "argsort": _argsort,
    "sort": _sort,
    "topk": _topk,
}
