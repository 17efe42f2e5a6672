# SPDX-License-Identifier: Apache-2.0
"""Where a value is computed: once for a row, once for each step, or in the lane loop.

What a value depends on decides. A scope collects statements, and the values they make.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self, TypeAlias

from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.lower.elements.guards import even_conditions, exclusive_reads
from nfuser.compiler.lower.kernel.kernel_ir import (
    Array,
    Buffer,
    Element,
    For,
    Let,
    LoopCounter,
    Memory,
    Stmt,
    TakePacket,
    Value,
    Var,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from nfuser.compiler.domains.maps import Point
    from nfuser.compiler.dtypes import DType
    from nfuser.compiler.ir.scalars.scalar import Datum, Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.schedule.placement.varying import Within
    from nfuser.compiler.schedule.scheduled import Scheduled

Key: TypeAlias = "tuple[TensorView, Point]"


@dataclass(slots=True)
class Scope:
    """Statements being collected, and the values they make."""

    stmts: list[Stmt] = field(default_factory=list[Stmt])
    values: dict[Key, Value] = field(default_factory=dict[Key, Value])
    indices: dict[tuple[Key, Scalar], Datum] = field(default_factory=dict)  # pyright: ignore[reportUnknownVariableType]


@dataclass(slots=True)
class RowPass:
    """A pass over the row, once it is closed: what it does at a step, and leaves.

    ``kept`` is what later passes can read and earlier ones did not leave.
    """

    begin: list[Stmt] = field(default_factory=list[Stmt])
    loop: tuple[Stmt, ...] = ()  # over lanes
    kept: frozenset[Key] = frozenset()

    def then(self, after: list[Stmt]) -> tuple[Stmt, ...]:
        """Return the whole step, with ``after`` behind its lanes."""
        return (*self.begin, *self.loop, *after)


class Scopes:
    """The scopes of a kernel under construction."""

    def __init__(self, scheduled: Scheduled, loops: LoopCounter) -> None:
        self.scheduled = scheduled
        self.fusion = scheduled.fusion
        self.definition = scheduled.fusion.definition
        self.nest = scheduled.nest
        self.loops = loops
        self.row = Scope()
        self.tile: Scope | None = None
        self.lane: Scope | None = None
        self.early: list[Stmt] | None = None  # loads of a tile, before all else in it
        self.arrays: list[Array] = []
        self.kept: dict[Key, Array] = {}  # what one pass leaves for the next
        self._inverses: dict[tuple[Key, object], tuple[Value, ...]] = {}  # of divisors
        self.landed: dict[Key, TakePacket] = {}  # of these, what lies there as stored
        self.taken: dict[Key, TakePacket] = {}  # what comes from there to registers
        self.filled: set[Key] = set()  # of these, what an earlier pass has left
        self.everywhere: set[Key] = set()  # of these, what steps past the end have too
        self.staged: dict[Key, Element] = {}  # what lies in a tile, and where
        self.buffers: dict[TensorView, Buffer] = {}
        self.columns: dict[TensorView, Array] = {}  # what links of a chain pass on
        self.parameters: dict[TensorView, Var] = {}
        self.integers: dict[tuple[Scalar, DType], Var] = {}
        self.exclusive = exclusive_reads(scheduled)
        self.even = even_conditions(scheduled)
        self.varying = scheduled.varying()
        self.place = self.varying.place  # where a value belongs
        self.needs = self.varying.needs  # what it is computed from, or found with

    def beside(self, scheduled: Scheduled) -> Self:
        """Return the values of other elements of the same rows, in the same kernel."""
        made = type(self)(scheduled, self.loops)
        made.row, made.arrays = self.row, self.arrays
        made.buffers, made.parameters = self.buffers, self.parameters
        made.integers, made._inverses = self.integers, self._inverses
        return made

    def keep_placed(self, room: int) -> None:
        """Declare arrays for what passes leave for each other."""
        for key, placement in self.scheduled.placements.items():
            if placement.is_kept:
                self.kept[key] = self.array(key[0].dtype.compute, room)

    # -- scopes --------------------------------------------------------------

    def array(self, dtype: DType, size: int, memory: Memory = Memory.LOCAL) -> Array:
        """Declare an array for the whole kernel."""
        made = Array(dtype, size, memory)
        self.arrays.append(made)
        return made

    @property
    def lane_size(self) -> int:
        """The number of lanes of a full packet or tile; 1 without a lane."""
        lane = self.nest.lane
        if lane is None:
            return 1
        assert isinstance(lane.extent, sc.Const)
        return lane.extent.value

    @property
    def lane_index(self) -> Scalar:
        """The index of the lane; 0 without one."""
        return self.nest.lane.index if self.nest.lane else sc.const(0)

    @property
    def outside_lane(self) -> Scope:
        """The scope around the lane loop that is open, or would be."""
        return self.tile or self.row

    @property
    def innermost(self) -> Scope:
        """The scope that statements go to."""
        return self.lane or self.tile or self.row

    def emit(self, stmt: Stmt) -> None:
        """Append ``stmt`` to the innermost scope."""
        self.innermost.stmts.append(stmt)

    def emit_all(self, stmts: tuple[Stmt, ...]) -> None:
        """Append several statements."""
        for stmt in stmts:
            self.emit(stmt)

    @contextmanager
    def block(self) -> Generator[list[Stmt]]:
        """Collect statements of the innermost scope apart, for a loop or a branch."""
        scope = self.innermost
        outer, scope.stmts = scope.stmts, []
        try:
            yield scope.stmts
        finally:
            scope.stmts = outer

    @contextmanager
    def lanes(self) -> Generator[None]:
        """Put a lane loop around the body, where lanes belong to rows of their own."""
        if self.nest.lane is None or self.nest.lane_reduces:
            yield
            return
        self.lane = Scope()
        try:
            yield
        finally:
            loop = self.in_lanes(self.lane)
            self.lane = None
            if loop is not None:
                self.emit(loop)

    def let(self, value: Value, tensor: TensorView | None = None) -> Var:
        """Give ``value`` a name in the innermost scope."""
        var = Var(value.dtype, tensor)
        self.emit(Let(var, value))
        return var

    def scope_of(self, place: Within) -> Scope:
        """Return the scope that is open at ``place``."""
        if place.in_lane:
            assert self.lane is not None
            return self.lane
        if place.in_tile:
            assert self.tile is not None
            return self.tile
        return self.row

    def in_lanes(self, body: Scope) -> Stmt | None:
        """Return the loop over lanes with ``body``, or None where it is empty."""
        lane = self.nest.lane
        if lane is None or not body.stmts:
            return None
        return For(lane.index, lane.stop, tuple(body.stmts))

    @contextmanager
    def one_pass(self) -> Generator[RowPass]:
        """Collect a pass over the row; what it has kept can be read from then on."""
        made, tile = RowPass(), Scope()
        lane = Scope() if self.nest.lane else None
        self.tile, self.lane = tile, lane
        yield made
        self.tile = self.lane = None
        values = tile.values.keys() | (lane.values.keys() if lane else ())
        made.kept = frozenset(values & self.kept.keys() - self.filled)
        self.filled |= made.kept
        loop = self.in_lanes(lane) if lane else None
        made.begin, made.loop = tile.stmts, (loop,) if loop else ()
