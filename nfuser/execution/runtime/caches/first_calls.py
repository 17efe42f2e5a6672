# SPDX-License-Identifier: Apache-2.0
"""First calls: what some process decided for one, told to those that begin alike.

To decide takes as long as to trace a function whose kernels are on disk. What is kept
are the heuristics and, where kernels alone run, the forms of these and the program of
the call: who finds them does not concretize, rewrite, cut or lay out.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeAlias

from nfuser.compiler.ir.base import value
from nfuser.compiler.ir.identity import spelled, structure
from nfuser.compiler.schedule.registry import CHAINS
from nfuser.execution.host.call.program import (
    AllocateSlot,
    CallProgram,
    Clear,
    FreeSlot,
    LaunchKernel,
)
from nfuser.execution.runtime.disk.plans import find_plan, keep_plan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nfuser.codegen.printers.source import KernelForm, Source
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.schedule.heuristics.heuristics import Heuristic
    from nfuser.execution.device.describe.descriptor import Descriptor
    from nfuser.execution.host.call.program import HostStmt, Slot
    from nfuser.execution.runtime.kernel_runtime import (
        CompiledSegment,
        FusionKernelRuntime,
    )
    from nfuser.execution.runtime.place import Place

    _Kernels: TypeAlias = Sequence[tuple[Source, object]]

_CLOSED = {int, str}
_PACKET = 16  # bytes that move at once at most: a choice asks for no more alignment
_REST = tuple(
    f.name for f in fields(LaunchKernel) if f.name not in ("source", "executable")
)


@value
class KeptLaunch:
    """A launch of kernel ``number``; ``rest`` is all else that it says."""

    number: int
    rest: tuple[Any, ...]


@value
class KeptProgram:
    """The program of a call, and the forms of the kernels that it launches.

    Beside each stands what its name has after that of the whole fusion. Pieces that a
    CPU runs as one are one where it ``has_chains``.
    """

    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    body: tuple[HostStmt | KeptLaunch, ...]
    forms: tuple[tuple[str, KernelForm], ...]
    has_chains: bool

    def launching(self, kernels: _Kernels) -> CallProgram:
        """Return the program that launches ``kernels``."""
        body = (
            LaunchKernel(*kernels[stmt.number], *stmt.rest)
            if isinstance(stmt, KeptLaunch)
            else stmt
            for stmt in self.body
        )
        return CallProgram(self.inputs, self.outputs, tuple(body))


@value
class KeptCall:
    """What was decided for a call; ``program`` is None where not only kernels run."""

    heuristics: tuple[Heuristic, ...]
    program: KeptProgram | None


def first_call(
    fusion: Fusion,
    policy: str,
    place: Place,
    arrays: Mapping[int, Descriptor],
    integers: Mapping[int, int],
    outputs: Mapping[int, Descriptor],
) -> tuple[str, ...] | None:
    """Return in words all that is decided by, but for settings and nfuser's own files.

    Open numbers have to be asked, so that it is known what was asked of them: of a call
    that has some, nothing is kept, and this is None.
    """
    forms = tuple(
        tuple(
            (slot, d.shape, d.strides, d.dtype.name, _alignment(d)) for slot, d in given
        )
        for given in (arrays.items(), outputs.items())
    )
    numbers = tuple(integers.items())
    if not _is_closed((forms, numbers)):
        return None
    where = place.library.value, place.backend, spelled(place.target)
    said = structure(fusion).digest, policy
    return ("call", *said, *where, repr((forms, numbers)))


def _alignment(d: Descriptor) -> int:
    return min(d.pointer & -d.pointer or _PACKET, _PACKET)


def _is_closed(given: tuple[object, ...]) -> bool:
    """Tell whether each number is one of Python's own, which notes no question."""
    stack: list[tuple[object, ...]] = [given]
    while stack:
        item = stack.pop()
        others = set(map(type, item)) - _CLOSED
        if not all(issubclass(kind, tuple) for kind in others):
            return False
        inner: list[Any] = [x for x in item if type(x) in others]
        stack += inner
    return True


def find_call(depends: tuple[str, ...] | None) -> KeptCall | None:
    """Return what some process decided for such a call."""
    return None if depends is None else find_plan(depends, _checked)


def _checked(kept: Any) -> KeptCall:
    if not isinstance(kept, KeptCall):
        raise TypeError(type(kept).__name__)
    program = kept.program
    if program is not None and len(program.forms) != len(kept.heuristics):
        message = f"{len(program.forms)} kernels, {len(kept.heuristics)} heuristics"
        raise ValueError(message)
    return kept


def keep_call(
    depends: tuple[str, ...],
    program: CallProgram,
    runtime: FusionKernelRuntime,
    heuristics: tuple[Heuristic, ...],
) -> None:
    """Keep what was decided just now.

    Later calls of other sizes decide anew: what each leaves would be a file for each.
    """
    name = runtime.segmented.fusion.name
    kept = _kept_program(program, runtime.segments, name)
    keep_plan(depends, name, KeptCall(heuristics, kept))


def _kept_program(
    program: CallProgram, kernels: Sequence[CompiledSegment], name: str
) -> KeptProgram | None:
    """Return ``program`` without what only this process has, if kernels alone run.

    What a library computes, and loops, name the user's lines, which may move.
    """
    numbers = {made.source: k for k, made in enumerate(kernels)}
    body: list[HostStmt | KeptLaunch] = []
    for stmt in program.body:
        match stmt:
            case LaunchKernel():
                rest = tuple(getattr(stmt, name) for name in _REST)
                body.append(KeptLaunch(numbers[stmt.source], rest))
            case AllocateSlot() | Clear() | FreeSlot():
                body.append(stmt)
            case _:
                return None
    forms = tuple(
        (made.segment.fusion.name.removeprefix(name), made.source.form)
        for made in kernels
    )
    has_chains = any(made.segment.scheduler is CHAINS for made in kernels)
    made = tuple(body), forms, has_chains
    return KeptProgram(program.inputs, program.outputs, *made)
