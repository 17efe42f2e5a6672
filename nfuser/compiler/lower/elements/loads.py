# SPDX-License-Identifier: Apache-2.0
"""Where elements lie, and how they are read: one by one, in packets, or as kept."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import nfuser.compiler.ir.scalars.operators as scalar_op
import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.domains.maps import Point, data_of, datum_point
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.tensor import TensorView
from nfuser.compiler.lower.elements.value_scopes import Key, Scopes
from nfuser.compiler.lower.kernel.kernel_ir import (
    Array,
    AwaitCopies,
    Call,
    CopyPacket,
    Element,
    For,
    IndexValue,
    Let,
    Load,
    LoadPacket,
    Number,
    SetElement,
    Stmt,
    Value,
    Var,
    guarded,
)
from nfuser.compiler.schedule.facts.layout import packets
from nfuser.compiler.schedule.nest import Binding
from nfuser.compiler.schedule.placement.placement import Where

if TYPE_CHECKING:
    from nfuser.compiler.ir.scalars.scalar import Datum, Scalar


class Loads(Scopes):
    """The elements of a kernel under construction: their addresses, and their reads."""

    def index(self, x: Scalar, point: Point | None = None) -> Scalar:
        """Return ``x``, written in loops of the space, in those of the nest.

        ``point`` is the point that ``x`` belongs to: its guard says when the elements
        that ``x`` names are read.
        """
        known: dict[Scalar, Scalar] = dict(self.nest.index_of)
        if point is not None:
            for chosen in data_of(point):
                known[chosen] = self._chosen(chosen, datum_point(chosen, point))
        return scalar_walk.substitute([x], known)[0]

    def address(self, tensor: TensorView, point: Point) -> Scalar:
        """Return the offset, in elements, of ``tensor`` at ``point``."""
        total: Scalar = sc.const(0)
        turns = self.scheduled.turns
        if turns is not None and tensor in turns.steps:
            total = turns.starts[tensor] + turns.index * turns.steps[tensor]
        shared = self.scheduled.shared.get(tensor)
        if shared is not None:
            total = total + shared.begin
        if shared is not None and shared.room is not None:
            total = total + self.lane_index
        rows = frozenset[int]() if shared is None else shared.rows
        strides = self.scheduled.strides[tensor]
        for axis, (p, stride) in enumerate(zip(point, strides, strict=True)):
            if axis not in rows:
                total = total + self.index(p, point) * stride
        return total

    def _chosen(self, chosen: Datum, point: Point) -> Scalar:
        """Return the index that an element of an index tensor names, as a scalar."""
        assert isinstance(chosen.tensor, TensorView)
        key = (chosen.tensor, point)
        value = self.find(key)
        assert value is not None
        scope = self.scope_of(self.place(key))
        if (key, chosen.extent) not in scope.indices:
            var = Var(self.index_dtype)
            steps: list[Stmt] = []
            if not chosen.inside:
                extent = IndexValue(self.index(chosen.extent), DType.I64)
                steps, value = wrap_index(value, extent)
            narrow = Call(f"to_{var.dtype}", (value,), var.dtype)
            scope.stmts += [*steps, Let(var, narrow)]
            scope.indices[key, chosen.extent] = scalar_symbols.datum(
                var, (), chosen.extent
            )
        return scope.indices[key, chosen.extent]

    @property
    def index_dtype(self) -> DType:
        """The type in which the kernel computes addresses."""
        return DType.I64 if self.scheduled.is_wide else DType.I32

    def find(self, key: Key) -> Value | None:
        """Return the value of ``key`` if an open scope has it."""
        always = (key[0], Point(key[1].index))
        for scope in (self.lane, self.tile, self.row):
            if scope is None:
                continue
            for wanted in (key, always) if key[1].guard else (key,):
                if wanted in scope.values:
                    return scope.values[wanted]
        return None

    def keep(self, key: Key, made: Value) -> None:
        """Put a value that a later pass reads into the array that waits for it."""
        if key in self.kept and self.tile is not None:
            scope = self.scope_of(self.place(key))
            target = SetElement(self.kept[key], self.kept_index(key), made)
            scope.stmts.append(target)

    def kept_index(self, key: Key) -> Scalar:
        """Return the place of the current step and lane in a kept row."""
        lane = self.lane_index if self.place(key).in_lane else sc.const(0)
        if key in self.landed:
            return lane
        placement = self.scheduled.placements.get(key)
        if placement is None or placement.where is not Where.STACK:
            return self.step_index() * self._lane_extent() + lane
        place = self._row_position()
        if self.nest.lane is None:
            return place
        if not self.nest.lane_reduces:
            return place * self._lane_extent() + lane
        return scalar_walk.substitute([place], {self.nest.lane.index: lane})[0]

    def _row_position(self) -> Scalar:
        """Return the number of the current element along its row."""
        rows = self.scheduled.rows
        assert rows is not None
        total: Scalar = sc.const(0)
        for loop in rows.order:
            total = total * loop.extent + self.index(loop)
        return total

    def step_index(self) -> Scalar:
        """Return the number of the current step of the unrolled loops of a row."""
        total: Scalar = sc.const(0)
        for leaf in self.nest.reduced:
            # What is kept is read again before the next turn of a serial loop.
            if leaf.binding is Binding.UNROLLED and leaf.extent is not sc.const(1):
                total = total * leaf.extent + leaf.index
        return total

    def _lane_extent(self) -> Scalar:
        return self.nest.lane.extent if self.nest.lane else sc.const(1)

    def _load(self, key: Key) -> None:
        """Read one element, or a packet; two reads that exclude each other in one."""
        tensor, point = key
        address = self.address(tensor, point)
        is_packet = self._goes_in_packets(key, address)
        other = self._made_elsewhere(key, is_packet)
        if other is not None:
            point, address = self._joined(key, other, address, is_packet)
        var = (self._load_packet if is_packet else self._load_one)(key, point, address)
        scope = self.scope_of(self.place(key))
        for made in (key,) if other is None else (key, other):
            scope.values[made] = var

    def _load_one(self, key: Key, point: Point, address: Scalar) -> Var:
        tensor = key[0]
        scope = self.scope_of(self.place(key))
        var = Var(tensor.dtype.compute, tensor)
        if key in self.staged:
            scope.stmts.append(Let(var, self.staged[key]))
            return var
        column = self.columns.get(tensor)
        own = None if column is None else Element(column, address)
        load = Let(var, own or Load(self.buffers[tensor], address))
        if self.nest.lane is None and self._is_early(key):
            assert self.early is not None
            array, at = self._rows_of(key)
            self.early += [load, SetElement(array, at, var)]
            self.everywhere.add(key)
            var = Var(array.dtype, tensor)
            scope.stmts.append(Let(var, Element(array, at)))
            return var
        if point.guard:
            scope.stmts.append(Let(var, Number(0, var.dtype)))
        scope.stmts.extend(self._guarded(point, (load,)))
        self.keep(key, var)
        return var

    def _goes_in_packets(self, key: Key, address: Scalar) -> bool:
        return self.place(key).in_lane and self.is_packet(*key, address)

    def _made_elsewhere(self, key: Key, is_packet: bool) -> Key | None:
        """Return the read that is made exactly where that of ``key`` is not.

        A CPU's vectors would have to be gathered from an address that is chosen, and a
        quotient that has a meaning for one of the two only cannot be a part of both.
        """
        other = self.exclusive.get(key)
        if other is None or self.scheduled.target.has_vectors:
            return None
        if (
            key in self.kept
            or other in self.kept
            or self.place(other) != self.place(key)
        ):
            return None
        elsewhere = self.address(*other)
        if risky([self.address(*key)]) != risky([elsewhere]):
            return None
        return other if self._goes_in_packets(other, elsewhere) == is_packet else None

    def _joined(
        self, key: Key, other: Key, address: Scalar, is_packet: bool
    ) -> tuple[Point, Scalar]:
        """Return where one of two reads is made, whichever it is."""
        point, elsewhere = key[1], other[1]
        (own,) = (c for c in point.guard if c not in elsewhere.guard)
        holds = self._condition(own, point, is_packet)
        either = self.address(*other)
        common = tuple(c for c in point.guard if c is not own)
        return Point(point.index, common), either + holds * (address - either)

    def _guarded(self, point: Point, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        for condition in reversed(point.guard):
            body = guarded(self.index(condition, point), body)
        return body

    def is_packet(self, tensor: TensorView, point: Point, address: Scalar) -> bool:
        """Tell whether ``address`` moves with the lane, in packets that are whole."""
        lane = self.nest.lane
        if lane is None or lane.binding is not Binding.PACKET:
            return False
        moved = self.scheduled.packed | self.scheduled.across
        if not self.scheduled.is_access((tensor, point), moved):
            return False
        if any(self._chosen_in_lane(chosen, point) for chosen in data_of(point)):
            return False
        steps = packet_start(address, lane.index) + lane.index
        return steps is _without_leaps(address, lane.index)

    def _chosen_in_lane(self, chosen: Datum, point: Point) -> bool:
        assert isinstance(chosen.tensor, TensorView)
        return self.place((chosen.tensor, datum_point(chosen, point))).in_lane

    def _load_packet(self, key: Key, point: Point, address: Scalar) -> Var:
        tensor = key[0]
        if key in self.landed:
            return self._land_packet(key, address)
        buffer, width = self.buffers[tensor], self.lane_size
        array, at = self._rows_of(key)
        base = packet_start(address, self.lane_index)
        across = self.scheduled.is_access(key, self.scheduled.across)
        loads: tuple[Stmt, ...] = tuple(
            LoadPacket(array, at + start, buffer, base + start, chunk, across)
            for start, chunk in packets(tensor.dtype, width)
        )
        if taken := self.taken.get(key):
            loads = (replace(taken, array=array, at=at),)
        if point.guard and self.nest.lane:
            zero = Number(0, array.dtype)
            each = SetElement(array, at + self.lane_index, zero)
            self.outside_lane.stmts.append(
                For(self.nest.lane.index, self.nest.lane.extent, (each,))
            )
            for c in point.guard:
                loads = guarded(self._condition(c, point, is_even=True), loads)
        if self.early is not None and self._is_early(key):
            self.early.extend(loads)
            self.everywhere.add(key)
        else:
            self.outside_lane.stmts.extend(loads)
        element = Element(array, at + self.lane_index)
        assert self.lane is not None
        var = Var(element.dtype, tensor)
        self.lane.stmts.append(Let(var, element))
        return var

    def _rows_of(self, key: Key) -> tuple[Array, Scalar]:
        """Return an array for what is loaded, and where this step's part begins."""
        dtype, width = key[0].dtype.compute, self.lane_size
        together = self.nest.leaf(Binding.UNROLLED)
        if key in self.kept and self.tile is not None:
            return self.kept[key], self.step_index() * width
        if not self._is_early(key) or together is None:
            return self.array(dtype, width), sc.const(0)
        if together.extent is sc.const(1):
            return self.array(dtype, width), sc.const(0)
        assert isinstance(together.extent, sc.Const)
        array = self.array(dtype, width * together.extent.value)
        return array, together.index * width

    def _land_packet(self, key: Key, address: Scalar) -> Var:
        """Copy a packet to its place in shared memory, and take it from there."""
        tensor, taken = key[0], self.landed[key]
        base = packet_start(address, self.lane_index)
        copy = CopyPacket(
            taken.source, taken.index, self.buffers[tensor], base, taken.width
        )
        if self.early is not None:
            self.early.append(copy)
        else:
            self.outside_lane.stmts += [copy, AwaitCopies()]
        self.outside_lane.stmts.append(taken)
        assert self.lane is not None
        var = Var(taken.array.dtype, tensor)
        self.lane.stmts.append(Let(var, Element(taken.array, self.lane_index)))
        return var

    def _condition(self, c: Scalar, point: Point, is_even: bool) -> Scalar:
        """Return a condition: of the first lane, if it ``is_even`` over all lanes."""
        found = self.index(c, point)
        return packet_start(found, self.lane_index) if is_even else found

    def _is_early(self, key: Key) -> bool:
        """Tell whether ``key`` is read before anything else of its tile."""
        is_free = not key[1].guard and not data_of(key[1])
        return self.early is not None and self.place(key).in_tile and is_free


def packet_start(x: Scalar, lane: Scalar) -> Scalar:
    """Return ``x`` of the first lane of a packet."""
    return scalar_walk.substitute([x], {lane: sc.const(0)})[0]


def _without_leaps(address: Scalar, lane: Scalar) -> Scalar:
    """Return ``address`` as its comparisons are at the first lane.

    Those of what goes in packets are the same over all lanes.
    """
    leaps: dict[Scalar, Scalar] = {
        x: packet_start(x, lane)
        for x in scalar_walk.every([address])
        if isinstance(x, sc.Binary) and x.op is scalar_op.Op.LT
    }
    return scalar_walk.substitute([address], leaps)[0] if leaps else address


def risky(scalars: list[Scalar]) -> set[Scalar]:
    """Return what is divided in ``scalars`` and may be negative."""
    return {
        x.lhs
        for x in scalar_walk.every(scalars)
        if isinstance(x, sc.Binary)
        and x.op in (scalar_op.Op.FLOORDIV, scalar_op.Op.MOD)
        and not sc.is_natural(x.lhs)
    }


def wrap_index(value: Value, extent: Value) -> tuple[list[Stmt], Value]:
    """Return the index that ``value`` names, counted from the end if negative.

    What names no element is moved to the nearest, so that nothing else is read.
    """
    zero, one = Number(0, DType.I64), Number(1, DType.I64)
    given, last = Var(DType.I64), Var(DType.I64)
    steps: list[Stmt] = [
        Let(given, Call("to_i64", (value,), DType.I64)),
        Let(last, Call("subtract", (extent, one), DType.I64)),
    ]
    behind = Call("less", (given, zero), DType.BOOL)
    from_end = Call("add", (given, extent), DType.I64)
    wrapped = Call("select", (behind, from_end, given), DType.I64)
    low = Call("maximum", (wrapped, zero), DType.I64)
    return steps, Call("minimum", (low, last), DType.I64)
