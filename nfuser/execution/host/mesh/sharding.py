# SPDX-License-Identifier: Apache-2.0
"""What changes how a tensor lies over ranks."""

from __future__ import annotations

from nfuser.compiler.segment.sharding import REPLICATED, Sharding
from nfuser.errors import UnsupportedError

__all__ = ["REPLICATED", "Sharding", "exchange"]


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
