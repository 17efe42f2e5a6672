# SPDX-License-Identifier: Apache-2.0
"""How tensors lie over a mesh of ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from nfuser.ir.base import node, value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.ir.tensor import TensorView


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
