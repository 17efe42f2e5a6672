# SPDX-License-Identifier: Apache-2.0
"""What ranks that run the same program tell each other."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Protocol

from nfuser.errors import ArgumentError
from nfuser.execution.host.mesh.mesh import peers

if TYPE_CHECKING:
    from nfuser.execution.host.ir.statements import Communicate


class Communicator(Protocol):
    """One rank's end of the exchanges; ranks of a group call them in the same order."""

    rank: int
    size: int

    def communicate(
        self,
        kind: str,
        array: Any,
        axes: tuple[int, ...] = (),
        ends: tuple[int, ...] = (),
        ranks: tuple[int, ...] | None = None,
    ) -> Any:
        """Return this rank's result of the exchange ``kind`` among ``ranks``.

        None stands for all ranks. ``ends`` are places in ``ranks``: the rank that has
        what is broadcast, scattered or sent, or gets what is gathered, reduced or
        sent. A rank that gets nothing is given an array of the shape that it would
        get; one that gives nothing passes an array of the shape that it would give.
        """
        ...


def exchange(
    stmt: Communicate, ours: Communicator | None, read: list[Any]
) -> list[Any]:
    """Return this rank's result of an exchange in a program."""
    if ours is None:
        message = f"{stmt.kind}: the program exchanges data, and was run without ranks"
        raise ArgumentError(message)
    if stmt.mesh and prod(stmt.mesh) != ours.size:
        shape = "x".join(map(str, stmt.mesh))
        message = f"{stmt.kind}: a program for {shape} ranks was run by {ours.size}"
        raise ArgumentError(message)
    ranks = peers(stmt.mesh, stmt.along, ours.rank) if stmt.mesh else None
    (array,) = read
    return [ours.communicate(stmt.kind, array, stmt.axes, stmt.ends, ranks)]
