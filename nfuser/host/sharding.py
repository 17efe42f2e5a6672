# SPDX-License-Identifier: Apache-2.0
"""How a tensor lies over ranks, and what changes that."""

from __future__ import annotations

from nfuser.errors import UnsupportedError
from nfuser.ir.base import value


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


def exchange(
    before: Sharding, after: Sharding
) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    """Return the exchange that changes how a tensor lies, with its axes and ends."""
    match before, after:
        case Sharding(owner=int(old)), Sharding(owner=int(new)):
            return "send_receive", (), (old, new)
        case Sharding(owner=int(root)), Sharding(axis=int(axis)):
            return "scatter", (axis,), (root,)
        case Sharding(owner=int(root)), Sharding(axis=None, partial=""):
            return "broadcast", (), (root,)
        case Sharding(partial=str(fold)), Sharding(owner=int(root)) if fold:
            return f"reduce_{fold}", (), (root,)
        case Sharding(axis=int(axis)), Sharding(owner=int(root)):
            return "gather", (axis,), (root,)
        case Sharding(partial=str(fold)), Sharding(axis=None, partial="") if fold:
            return f"allreduce_{fold}", (), ()
        case Sharding(partial=str(fold)), Sharding(axis=int(axis)) if fold:
            return f"reduce_scatter_{fold}", (axis,), ()
        case Sharding(axis=int(old)), Sharding(axis=int(new)):
            return "all_to_all", (new, old), ()
        case Sharding(axis=int(old)), Sharding(axis=None, partial=""):
            return "allgather", (old,), ()
        case _:
            message = f"what lies as {before} cannot become {after}"
            raise UnsupportedError(message)
