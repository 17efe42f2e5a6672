# SPDX-License-Identifier: Apache-2.0
"""How tensors lie over a mesh of ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from nfuser.compiler.ir.base import node, value
from nfuser.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nfuser.compiler.ir.tensor import TensorView

FOLDS = ("sum", "prod", "max", "min", "any", "all")  # those that ranks can complete


@value
class Sharding:
    """How a tensor lies over the ranks along one dimension of a mesh.

    Each has an equal part along ``axis``, or its own part of a fold, or all; or
    ``owner`` alone has it, and the others memory of that shape.

    >>> Sharding(axis=1), Sharding(partial="sum"), Sharding(owner=2), Sharding()
    (axis 1, partial sum, rank 2, replicated)
    """

    axis: int | None = None
    partial: str = ""
    owner: int | None = None

    def __repr__(self) -> str:
        if self.owner is not None:
            return f"rank {self.owner}"
        if self.partial:
            return f"partial {self.partial}"
        return "replicated" if self.axis is None else f"axis {self.axis}"


REPLICATED = Sharding()
Layout: TypeAlias = "tuple[Sharding, ...]"  # one for each dimension of a mesh


@node
class Shardings:
    """How some tensors of a fusion lie, or shall, over the ranks of ``mesh``.

    Other arguments are replicated, and other results lie as is cheapest.
    """

    mesh: tuple[int, ...]
    layouts: Mapping[TensorView, Layout]


def check_layouts(
    mesh: tuple[int, ...], layouts: Mapping[TensorView, Sequence[Sharding]]
) -> None:
    """Refuse a mesh without ranks, and what tensors or the mesh have no place for."""
    if not mesh or min(mesh) < 1:
        message = f"expected at least one rank in each dimension of a mesh: {mesh}"
        raise ArgumentError(message)
    for tensor, layout in layouts.items():
        if len(layout) != len(mesh):
            count = len(mesh)
            message = f"expected a sharding for each of {count} dimensions: {layout}"
            raise ArgumentError(message)
        for sharding, size in zip(layout, mesh, strict=True):
            _check(sharding)
            if sharding.axis is not None and not 0 <= sharding.axis < tensor.ndim:
                line = tensor.source.note if tensor.source else ""
                message = f"a tensor of {tensor.ndim} axes has no {sharding}{line}"
                raise ArgumentError(message)
            if sharding.owner is not None and not 0 <= sharding.owner < size:
                message = f"there is no {sharding} among {size}"
                raise ArgumentError(message)


def _check(sharding: Sharding) -> None:
    axis, partial, owner = sharding.axis, sharding.partial, sharding.owner
    told = (axis is not None) + bool(partial) + (owner is not None)
    if told > 1 or (partial and partial not in FOLDS):
        message = (
            "a sharding has an axis, an owner, or a partial fold, one of "
            f"{', '.join(FOLDS)}: found {axis=}, {partial=}, {owner=}"
        )
        raise ArgumentError(message)
