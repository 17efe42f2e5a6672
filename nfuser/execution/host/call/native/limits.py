# SPDX-License-Identifier: Apache-2.0
"""What a host program may have so that native code performs it: so many of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.execution.device.native import layout as at
from nfuser.execution.host.call.program import (
    AllocateSlot,
    LaunchKernel,
    Repeat,
    SlotPart,
)

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from nfuser.execution.host.call.program import CallProgram, HostStmt, Slot


def beyond_limits(program: CallProgram, given: Container[Slot] = ()) -> str | None:
    """Return which calls of a program are too much for native code; None if none are.

    Slots that are ``given`` are the caller's.

    >>> from nfuser.compiler.dtypes import DType
    >>> from nfuser.execution.host.call.program import CallProgram, Slot
    >>> made = (AllocateSlot(Slot(f"t{k}", (2,), (1,), DType.F32)) for k in range(300))
    >>> beyond_limits(CallProgram((), (), tuple(made)))
    'they make more than 256 arrays'
    """
    statements = list(_every(program.body))
    made = {x.slot for x in statements if isinstance(x, AllocateSlot)}
    if sum(slot not in given for slot in made) > at.MOST_OBJECTS:
        return f"they make more than {at.MOST_OBJECTS} arrays"
    loops = [x for x in statements if isinstance(x, Repeat)]
    if any(loop.depth >= at.MOST_DEPTH for loop in loops):
        return f"more than {at.MOST_DEPTH} loops lie in one another"
    launches = [x for x in statements if isinstance(x, LaunchKernel)]
    if any(len(x.source.kinds) > at.MOST_PARAMETERS for x in launches):
        return f"a kernel has more than {at.MOST_PARAMETERS} parameters"
    read = (x for launch in launches for x in launch.arguments)
    moving = {x for x in read if isinstance(x, SlotPart) and x.step}
    if len(moving) > at.MOST_MOVES:
        return f"more than {at.MOST_MOVES} rows move with the turns of loops"
    return None


def _every(body: Sequence[HostStmt]) -> Iterator[HostStmt]:
    """Yield all statements, those of loops as well."""
    for stmt in body:
        yield stmt
        if isinstance(stmt, Repeat):
            yield from _every(stmt.body)
