# SPDX-License-Identifier: Apache-2.0
"""A fusion cut into pieces that one kernel each can run, with the reasons."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeAlias

from nfuser.compiler.ir.base import node, value
from nfuser.compiler.ir.expr import (
    Argument,
    Constant,
    FromScalar,
    Iota,
    results,
    sources,
)
from nfuser.compiler.ir.fusion import Fusion
from nfuser.compiler.ir.text import Names, fusion_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.segment.sharding_propagation import PropagatedShardings


LOOP = "loop"  # the scheduler of what the host program runs again and again
IN_PLACE = "in place"  # the scheduler of what is an assignment, and nothing else


@value
class Rejection:
    """Why a scheduler will not take a fusion, and the result that it is about.

    Where the fusion ``is_other`` than all that the scheduler is for, what another
    scheduler says of it explains more.
    """

    scheduler: str
    reason: str
    tensor: TensorView | None = None
    is_other: bool = False

    def __str__(self) -> str:
        return f"{self.scheduler}: {self.reason}"


class KnownScheduler(Protocol):
    """What segmentation knows of a scheduler; the schedule room knows more."""

    name: str

    def can_schedule(self, fusion: Fusion) -> Rejection | None:
        """Return why one kernel cannot run ``fusion``, or None if it can."""
        ...


FindScheduler: TypeAlias = "Callable[[Fusion], KnownScheduler | tuple[Rejection, ...]]"
ShouldMerge: TypeAlias = "Callable[[Sequence[Expr], Sequence[Expr]], bool]"


@node
class Segment:
    """One piece: a fusion over the parent's tensors, and who schedules it.

    ``inputs`` are the parent's tensors in the order of the fusion's arguments. That of
    a loop has the pieces of its ``body``.
    """

    fusion: Fusion
    inputs: tuple[TensorView, ...]
    scheduler: KnownScheduler
    body: Segmented | None = None

    @property
    def is_library_call(self) -> bool:
        """Whether the array library runs it, and no kernel."""
        return bool(self.fusion.library_calls)

    @property
    def is_kernel(self) -> bool:
        """Whether a kernel runs it: not the library, and not nothing at all."""
        return not self.is_library_call and self.scheduler.name != IN_PLACE


@node
class Cut:
    """Why pieces stayed apart that have ``tensor`` in common.

    One leaves it for the others, or each of them reads it, or computes it anew.
    """

    tensor: TensorView
    reasons: tuple[Rejection, ...]


@node
class Segmented:
    """Pieces in an order in which they can run; ``spread`` if over ranks."""

    fusion: Fusion
    segments: tuple[Segment, ...]
    cuts: tuple[Cut, ...]
    spread: PropagatedShardings | None = None

    @property
    def pieces(self) -> tuple[Segment, ...]:
        """The pieces, those of a loop's body in the loop's place."""
        found: list[Segment] = []
        for segment in self.segments:
            found += (segment,) if segment.body is None else segment.body.pieces
        return tuple(found)

    @property
    def kernels(self) -> tuple[Segment, ...]:
        """The pieces that kernels run."""
        return tuple(s for s in self.pieces if s.is_kernel)


def text(segmented: Segmented) -> str:
    """Render the pieces and the reasons for the cuts between them."""
    names = Names()
    fusion_lines(segmented.fusion, names)
    return "\n".join(_lines(segmented, names)) + "\n"


def _lines(segmented: Segmented, names: Names) -> list[str]:
    lines: list[str] = []
    for number, segment in enumerate(segmented.segments):
        lines.append(f"segment {number} by {segment.scheduler.name}:")
        lines += [f"  {line}" for line in fusion_lines(segment.fusion, names)]
        if segment.body is not None:
            lines += [f"    {line}" for line in _lines(segment.body, names)]
    for cut in segmented.cuts:
        reasons = "; ".join(dict.fromkeys(str(r) for r in cut.reasons))
        lines.append(f"cut at {names.tensor(cut.tensor)}: {reasons}")
    return lines


def piece_of(
    program: Fusion, exprs: Sequence[Expr], outputs: Sequence[TensorView]
) -> Fusion:
    """Return ``exprs`` of ``program``, in order; what they read of others is given."""
    defined = {t for e in exprs for t in results(e)}
    whole = wholes(program)
    body: dict[Expr, None] = {}
    slots: dict[TensorView, int] = {}
    for expr in exprs:
        for tensor in sources(expr):
            if tensor in defined:
                continue
            defined.add(tensor)
            definition = program.definition[tensor]
            if isinstance(definition, (Constant, FromScalar, Iota)):
                body[definition] = None
                continue
            slot = slots.setdefault(whole.get(tensor, tensor), len(slots))
            if isinstance(definition, Argument):
                body[replace(definition, slot=slot)] = None
            else:
                body[Argument(slot, tensor)] = None
        body[expr] = None
    return Fusion(program.name, tuple(body), outputs)


def wholes(program: Fusion) -> dict[TensorView, TensorView]:
    """Return the real part for each imaginary one: they are one to those who read."""
    return {imaginary: real for real, imaginary in program.complex_arguments}
