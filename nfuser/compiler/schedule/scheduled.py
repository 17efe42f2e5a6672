# SPDX-License-Identifier: Apache-2.0
"""A segment with its loops chosen; what a scheduler gives and lowering takes."""

from __future__ import annotations

from dataclasses import field, replace
from enum import Enum
from typing import TYPE_CHECKING, Protocol, TypeAlias

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.ir.base import node, value
from nfuser.compiler.ir.expr import Argument
from nfuser.compiler.schedule.facts.memory import interleaved, memory_numbers
from nfuser.compiler.schedule.placement.placement import Placement, Where
from nfuser.compiler.schedule.placement.varying import Varying

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.compiler.domains.loops.at_rest import Change
    from nfuser.compiler.domains.loops.element_steps import OneByOne
    from nfuser.compiler.domains.loops.first_turn import HeldState
    from nfuser.compiler.domains.maps import Read
    from nfuser.compiler.domains.space import Space
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.scalars.scalar import LoopIndex, Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.schedule.facts.facts import Facts
    from nfuser.compiler.schedule.facts.layout import Packed
    from nfuser.compiler.schedule.facts.target import Target
    from nfuser.compiler.schedule.heuristics.heuristics import (
        ChainHeuristic,
        Heuristic,
        HorizontalHeuristic,
        PartHeuristic,
        SerialHeuristic,
    )
    from nfuser.compiler.schedule.nest import Leaf, Nest
    from nfuser.compiler.schedule.placement.placement import LeftOut, Placements
    from nfuser.compiler.segment import Rejection


@node
class Tile:
    """The way across a tile: a nest with the same blocks and threads as the other one.

    ``size`` is the room that an array of the tile has; ``place`` the element of it
    where the other nest stands, ``other_place`` where this one does.
    """

    nest: Nest
    size: int
    place: Scalar
    other_place: Scalar


class Meeting(Enum):
    """How those that share a row bring together what they have folded."""

    ALONE = "alone"  # nobody shares: one block, or one thread, has the row
    LAST = "last"  # the last to finish joins what all have left
    EXCHANGE = "exchange"  # all learn what the others have, and go on
    PHASES = "phases"  # each pass is a launch, and begins with what the last has left


def phase_knob() -> Scalar:
    """Return the number of a launch among those of one kernel in a call.

    No module makes it: an import waits for no fork, as the table of scalars does.
    """
    return scalar_symbols.knob("phase")


def copies_knob(number: int) -> Scalar:
    """Return 1, or 0 if an array of a loop of single elements needs no copy."""
    return scalar_symbols.knob(f"copies{number}")


@value
class RowFolding:
    """How the rows of a kernel are folded.

    ``order`` lists the reduced loops as memory runs. Where a row ``keeps`` what its
    passes leave for each other, that is up to ``room`` elements of a value. At most
    ``chunk`` elements are added up before their sum is added to the row's (0: all).
    States that are ``compensated`` keep what rounding takes away. An ``eager`` thread
    loads what all rows share before it meets others, not after; ``in_step``, all
    blocks meet at the same time, and let memory work meanwhile. Blocks that share a row
    are a ``cluster`` of so many, if not 0. A pass that folds
    nothing goes ``back`` from the end of the row, of which caches still hold what the
    pass before read last.

    The first so many turns of one loop, ``unguarded``, lie within every row. Reads
    ``across`` two packets take both.
    """

    order: tuple[LoopIndex, ...]
    keeps: bool
    room: int
    meeting: Meeting
    compensated: bool
    chunk: int = 0
    eager: bool = False
    in_step: bool = False
    cluster: int = 0
    back: bool = False
    unguarded: tuple[Leaf, Scalar] | None = None
    across: Packed = frozenset()


@value
class Walk:
    """How a CPU's loops meet memory: at so many places at once, past the cache.

    Those along ``short`` rows take a few whole vectors, one after the other.
    """

    streams: int = 1
    bypass: bool = False
    short: bool = False


@node
class Turns:
    """The loop that each thread runs through for its elements.

    ``states`` are what it carries, ``counter`` is the number of a turn as a tensor;
    ``wholes`` are what outputs of a turn are rows of, ``steps`` says how far apart in
    memory a turn stores an output and the next one does, and ``starts`` where the first
    does. ``changes`` are truth values of which one
    holds in each turn that is not the last to change anything, if that can be told.
    """

    index: LoopIndex
    states: tuple[HeldState, ...]
    counter: TensorView | None
    wholes: Mapping[TensorView, TensorView]
    steps: Mapping[TensorView, Scalar]
    starts: Mapping[TensorView, Scalar]
    changes: tuple[Change, ...] | None

    @property
    def held(self) -> dict[TensorView, bool]:
        """What the loop has, and whether that differs from turn to turn."""
        found = {state.left: False for state in self.states}
        found |= {state.held: True for state in self.states}
        return found if self.counter is None else {**found, self.counter: True}


@node
class SharedPart:
    """A tensor of one link of a chain: the part of ``whole`` from ``begin`` on.

    Links pass it on, so that all of them name the one array. A thread has it for itself
    where it has ``room``, in elements: axes that tell ``rows`` apart do not count
    there, as each lane has a place. Where it has none, it lies in memory.
    """

    whole: TensorView
    begin: Scalar
    rows: frozenset[int]
    room: int | None


@node
class Scheduled:
    """A fusion, the space and nest it runs in, and where its values lie.

    Lowering does what is said here and decides nothing; the ``heuristic`` is what it
    came of, and the name of the kernel's form. ``placements`` say where values lie
    between what makes them and what reads them; all others are inline, computed where
    they are read. What would have been placed if there were room is ``left_out``.
    One that has a loop is the first of its ``turns``. A link of a chain has ``shared``
    tensors.
    """

    fusion: Fusion
    space: Space
    nest: Nest
    strides: Mapping[TensorView, tuple[Scalar, ...]]
    heuristic: PartHeuristic
    target: Target
    tile: Tile | None = None
    placements: Placements = field(default_factory=dict["Read", "Placement"])
    left_out: tuple[LeftOut, ...] = ()
    rows: RowFolding | None = None
    walk: Walk = Walk()
    turns: Turns | None = None
    shared: Mapping[TensorView, SharedPart] = field(
        default_factory=dict["TensorView", "SharedPart"]
    )

    @property
    def is_wide(self) -> bool:
        """Whether indices have 64 bits."""
        return self.heuristic.wide_index

    @property
    def threads(self) -> int:
        """How many threads a block may have."""
        return self.heuristic.most_threads

    @property
    def blocks(self) -> int:
        """How many blocks a multiprocessor holds at least; 0 where any number does."""
        return self.heuristic.blocks

    @property
    def packed(self) -> Packed:
        """The accesses that go in packets, each by the number of its tensor."""
        return self.heuristic.packed

    @property
    def across(self) -> Packed:
        """The reads of packets that lie across two of memory's."""
        return frozenset() if self.rows is None else self.rows.across

    @property
    def between(self) -> Mapping[TensorView, TensorView]:
        """What lies between another's elements, each one after its fellow."""
        return interleaved(self.fusion, self.heuristic.patterns)

    @property
    def first_loop(self) -> int:
        """A number from which on no loop of the space, the nest or the tile has one."""
        nests = [self.nest, *([self.tile.nest] if self.tile else [])]
        leaves = (leaf.index for nest in nests for leaf in nest.leaves)
        return 1 + max((x.number for x in (*leaves, *self.space.loops)), default=-1)

    @property
    def rest(self) -> Scheduled | None:
        """The elements of the same rows that no whole packet holds, if there are any.

        Each is kept by the thread that has it.
        """
        if self.nest.rest is None or self.rows is None:
            return None
        rows = replace(self.rows, room=1, back=False, unguarded=None)
        return replace(self._beside(self.nest.rest), rows=rows)

    @property
    def before(self) -> Scheduled | None:
        """The elements before all packets of a scanned row, if there are any."""
        return self.nest.before and self._beside(self.nest.before)

    @property
    def behind(self) -> Scheduled | None:
        """The elements behind all packets of a scanned row, if there are any."""
        return self.nest.behind and self._beside(self.nest.behind)

    def _beside(self, nest: Nest) -> Scheduled:
        """Return what takes elements of the same rows, one a thread, by ``nest``."""
        kept = (key for key, placement in self.placements.items() if placement.is_kept)
        placements = dict.fromkeys(kept, Placement(Where.REGISTERS))
        return replace(self, nest=nest, placements=placements)

    def varying(self) -> Varying:
        """Return what the values vary with."""
        held = None if self.turns is None else self.turns.held
        return Varying(self.fusion, self.space, self.nest, self.strides, held)

    def is_access(self, key: Read, accesses: Packed) -> bool:
        """Tell whether ``key``, a tensor in memory, is one of ``accesses``."""
        return (memory_numbers(self.fusion)[key[0]], key[1]) in accesses

    def is_input(self, key: Read, accesses: Packed | None = None) -> bool:
        """Tell whether ``key`` is loaded, and, if given, one of ``accesses``."""
        expr = self.fusion.definition[key[0]]
        if not isinstance(expr, Argument) or expr.by_value:
            return False
        return accesses is None or self.is_access(key, accesses)

    def is_packed_input(self, key: Read) -> bool:
        """Tell whether ``key`` is loaded in packets."""
        return self.is_input(key, self.packed)


@node
class Joined:
    """A fusion whose parts run beside each other, each on blocks of its own.

    Those of a chain are its links: they take turns on each row of a CPU's range.
    """

    fusion: Fusion
    parts: tuple[Scheduled, ...]
    heuristic: HorizontalHeuristic | ChainHeuristic
    target: Target

    @property
    def is_wide(self) -> bool:
        """Whether indices have 64 bits."""
        return self.heuristic.wide_index


@node
class Serial:
    """A loop whose ``steps`` one thread takes, element by element.

    At a launch ``copies`` say which arrays are copied before the loop changes them.
    """

    fusion: Fusion
    steps: OneByOne
    copies: tuple[Scalar, ...]
    strides: Mapping[TensorView, tuple[Scalar, ...]]
    heuristic: SerialHeuristic
    target: Target

    @property
    def is_wide(self) -> bool:
        """Whether indices have 64 bits."""
        return self.heuristic.wide_index


Schedule: TypeAlias = Scheduled | Joined | Serial


class Scheduler(Protocol):
    """Three functions and a name."""

    name: str

    def can_schedule(self, fusion: Fusion) -> Rejection | None:
        """Return why ``fusion`` cannot run this way, or None if it can."""
        ...

    def heuristic(self, fusion: Fusion, facts: Facts) -> Heuristic:
        """Choose, from the numbers of one call, what the schedule depends on."""
        ...

    def apply(self, fusion: Fusion, heuristic: Heuristic, target: Target) -> Schedule:
        """Build the schedule; it depends on nothing but its arguments."""
        ...
