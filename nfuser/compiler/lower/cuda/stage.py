# SPDX-License-Identifier: Apache-2.0
"""What goes through shared memory: filled before the fusion runs, drained after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.functions import less
from nfuser.compiler.lower.elements.loads import packet_start
from nfuser.compiler.lower.kernel.kernel_ir import (
    Array,
    Barrier,
    Buffer,
    Element,
    For,
    Let,
    Load,
    LoadPacket,
    Memory,
    SetElement,
    Stmt,
    Store,
    StorePacket,
    Var,
    guarded,
)
from nfuser.compiler.schedule.facts.facts import address
from nfuser.compiler.schedule.facts.layout import packets
from nfuser.compiler.schedule.nest import Binding
from nfuser.compiler.schedule.placement.placement import Route

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.lower.elements.value_scopes import Key
    from nfuser.compiler.lower.elements.values import Values

BANK = 4  # bytes; narrower elements have one each, or neighbours would share it


class Stager:
    """The staged accesses of a kernel, and the loops that run along them."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self.outputs: dict[TensorView, Element] = {}
        self._inputs: dict[Key, Element] = values.staged
        scheduled = values.scheduled
        if scheduled.tile is None:
            return
        self.tile = scheduled.tile
        self.nest = scheduled.tile.nest
        for key, placement in scheduled.placements.items():
            if placement.route is not Route.LAID:
                continue
            if key[0] in values.buffers:
                self._inputs[key] = self._place(key[0])
            else:
                self.outputs[key[0]] = self._place(key[0])

    def _place(self, tensor: TensorView) -> Element:
        """Return the element of a new tile where the fusion's own nest stands."""
        dtype = tensor.dtype.compute
        spread = max(BANK // dtype.itemsize, 1)
        array = self.values.array(dtype, self.tile.size * spread, Memory.SHARED)
        return Element(array, self.tile.place * spread)

    def _other_place(self, place: Element) -> Scalar:
        spread = max(BANK // place.dtype.itemsize, 1)
        return self.tile.other_place * spread

    # -- the way across ------------------------------------------------------

    @property
    def _width(self) -> int:
        return 1 if self.nest.lane is None else _constant(self.nest.lane.extent)

    @property
    def _lane(self) -> Scalar:
        return sc.const(0) if self.nest.lane is None else self.nest.lane.index

    def _items(self) -> tuple[Scalar, int]:
        leaf = self.nest.leaf(Binding.UNROLLED)
        assert leaf is not None
        count = _constant(leaf.extent)
        return (sc.const(0) if count == 1 else leaf.index), count

    def _in_lanes(self, *body: Stmt) -> tuple[Stmt, ...]:
        lane = self.nest.lane
        return body if lane is None else (For(lane.index, lane.stop, body),)

    def _in_items(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        leaf = self.nest.leaf(Binding.UNROLLED)
        assert leaf is not None
        once = leaf.extent is sc.const(1)
        return body if once else (For(leaf.index, leaf.extent, body),)

    def _address(self, key: Key) -> Scalar:
        tensor, point = key
        where = address(point, self.values.scheduled.strides[tensor])
        return scalar_walk.substitute([where], self.nest.index_of)[0]

    def _is_packed(self, key: Key) -> bool:
        scheduled = self.values.scheduled
        return self._width > 1 and scheduled.is_access(key, scheduled.packed)

    # -- before and after ----------------------------------------------------

    def fill(self) -> tuple[Stmt, ...]:
        """Read all that is staged, then lay it down: many reads are under way."""
        if not self._inputs:
            return ()
        item, count = self._items()
        loads: list[Stmt] = []
        stores: list[Stmt] = []
        for key, place in self._inputs.items():
            local = self.values.array(place.dtype, count * self._width)
            start = item * self._width
            loads += self._loads(key, local, start)
            found = Var(place.dtype, key[0])
            stores += self._in_lanes(
                Let(found, Element(local, start + self._lane)),
                SetElement(place.array, self._other_place(place), found),
            )
        return (
            *self._in_items(tuple(loads)),
            *self._in_items(tuple(stores)),
            Barrier(),
        )

    def _loads(self, key: Key, local: Array, start: Scalar) -> tuple[Stmt, ...]:
        buffer, where = self.values.buffers[key[0]], self._address(key)
        if not self._is_packed(key):
            found = Var(local.dtype, key[0])
            put = SetElement(local, start + self._lane, found)
            return self._in_lanes(Let(found, Load(buffer, where)), put)
        base = packet_start(where, self._lane)
        return tuple(
            LoadPacket(local, start + at, buffer, base + at, size)
            for at, size in packets(buffer.dtype, self._width)
        )

    def drain(self, outputs: Sequence[tuple[TensorView, Buffer]]) -> tuple[Stmt, ...]:
        """Write all that is staged; ``outputs`` are tensors with where they go."""
        staged = [(t, buffer) for t, buffer in outputs if t in self.outputs]
        if not staged:
            return ()
        body: list[Stmt] = []
        for tensor, buffer in staged:
            body += self._drained(tensor, buffer)
        return (Barrier(), *self._in_items(tuple(body)))

    def _drained(self, tensor: TensorView, buffer: Buffer) -> tuple[Stmt, ...]:
        values = self.values
        key = (tensor, values.scheduled.space.points[tensor])
        place = self.outputs[tensor]
        found = Var(place.dtype, tensor)
        read = Let(found, Element(place.array, self._other_place(place)))
        where = self._address(key)
        if not self._is_packed(key):
            store = Store(buffer, where, found)
            return self._in_bounds(self._in_lanes(read, store))
        local = values.array(place.dtype, self._width)
        base = where - self._lane
        stores = tuple(
            StorePacket(buffer, base + at, local, sc.const(at), size)
            for at, size in packets(buffer.dtype, self._width)
        )
        reading = self._in_lanes(read, SetElement(local, self._lane, found))
        return (*reading, *self._in_bounds(stores))

    def _in_bounds(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Keep threads beyond an edge, which repeat the last packet, from storing."""
        for bound in self.nest.kept_bounds:
            body = guarded(less(bound.index, bound.extent), body)
        return body


def _constant(x: Scalar) -> int:
    assert isinstance(x, sc.Const)
    return x.value
