# SPDX-License-Identifier: Apache-2.0
"""Where outputs go: element by element, in packets, through tiles, or once a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.domains.maps import source_points
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import Pointwise
from nfuser.compiler.ir.point_op import CAST
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.functions import less
from nfuser.compiler.lower.folds.launch_phases import in_phase
from nfuser.compiler.lower.kernel.kernel_ir import (
    Buffer,
    For,
    SetElement,
    Stmt,
    Store,
    StorePacket,
    Value,
    guarded,
)
from nfuser.compiler.schedule.facts.layout import packets
from nfuser.compiler.schedule.nest import Binding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.domains.maps import Point
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.lower.cuda.combine import Combiner
    from nfuser.compiler.lower.cuda.stage import Stager
    from nfuser.compiler.lower.elements.value_scopes import Key
    from nfuser.compiler.lower.elements.values import Values
    from nfuser.compiler.schedule.nest import LoopBound
    from nfuser.compiler.schedule.placement.row_passes import RowPasses


class Stores:
    """The stores of a kernel under construction."""

    def __init__(
        self,
        values: Values,
        buffers: Sequence[Buffer],
        passes: RowPasses,
        combiner: Combiner,
        stager: Stager,
    ) -> None:
        self.values, self.buffers, self.passes = values, buffers, passes
        self.combiner, self.stager = combiner, stager
        self.fusion, self.space = values.fusion, values.scheduled.space
        self.nest = values.nest
        self.levels = passes.folds
        self.has_rows = bool(passes.folds or values.fusion.partial_sums)
        self.ends: tuple[LoopBound, ...] = ()  # bounds of rows that only stores check

    def beside(self, values: Values) -> Stores:
        """Return the same stores for other elements of the same rows."""
        combiner = type(self.combiner)(values)
        return Stores(values, self.buffers, self.passes, combiner, self.stager)

    def store_rows(self) -> None:
        """Store the outputs that have one element a row (all, without reductions)."""
        outputs = [
            t
            for t in self.passes.elements()
            if not (self.has_rows and self.passes.is_full(t))
        ]
        if not outputs:
            return
        values = self.values
        after: list[Stmt] = []
        with values.block() as body:
            with values.lanes():
                for output in outputs:
                    self.store(output, after)
            for stmt in after:
                values.emit(stmt)
        if not self.has_rows:
            values.row.stmts.extend(body)
            return
        # What the stores read is computed by all threads: it may contain barriers.
        stores = [s for s in body if _only_stores(s)]
        values.row.stmts.extend(s for s in body if not _only_stores(s))
        stores = self.combiner.for_one_thread(tuple(stores))
        values.row.stmts.extend(in_phase(self.combiner, self.levels, stores))

    def store(self, output: TensorView, after: list[Stmt]) -> None:
        """Store ``output`` at its point; a packet goes out after the lane loop."""
        values = self.values
        point = self.space.points[output]
        value = values.value(*self._unrounded(output, point))
        if place := self.stager.outputs.get(output):
            values.emit(SetElement(place.array, place.index, value))
            return
        address = values.address(output, point)
        if column := values.columns.get(output):
            values.emit(SetElement(column, address, value))
            return
        for tensor, buffer in self.slots():
            if tensor is output:
                there = values.buffers.get(output, buffer)
                self.write(there, output, address, value, after)

    def _unrounded(self, output: TensorView, point: Point) -> Key:
        """Return what is stored: a store rounds to 16 bits itself."""
        expr = self.fusion.definition[output]
        if isinstance(expr, Pointwise) and expr.op is CAST and output.dtype.is_half:
            ((source, where),) = source_points(expr, point)
            if source.dtype is DType.F32:
                return source, where
        return output, point

    def slots(self) -> list[tuple[TensorView, Buffer]]:
        """Return the outputs, each with where it goes."""
        buffers = [b for b in self.buffers if b.role == "out"]
        return list(zip(self.fusion.outputs, buffers, strict=True))

    def write(
        self,
        buffer: Buffer,
        output: TensorView,
        address: Scalar,
        value: Value,
        after: list[Stmt],
    ) -> None:
        """Write ``value``; a packet goes out ``after`` the lane loop."""
        values = self.values
        point = self.space.points[output]
        lane = self.nest.lane
        is_packet = (
            lane is not None
            and values.lane is not None
            and lane.binding is Binding.PACKET
            and values.is_packet(output, point, address)
        )
        is_unrolled = self.nest.leaf(Binding.UNROLLED) is not None
        in_rows = self.has_rows or bool(self.fusion.scans)
        full = values.tile is not None if in_rows else is_unrolled
        if not is_packet:
            store: tuple[Stmt, ...] = (Store(buffer, address, value),)
            for end in self.ends:
                store = guarded(less(end.index, end.extent), store)
            for stmt in self.combiner.for_real_rows(store) if full else store:
                values.emit(stmt)
            return
        width = values.lane_size
        array = values.array(buffer.dtype.compute, width)
        values.emit(SetElement(array, values.lane_index, value))
        base = address - values.lane_index
        for start, chunk in packets(buffer.dtype, width):
            at = sc.const(start)
            packet: tuple[Stmt, ...] = (
                StorePacket(buffer, base + start, array, at, chunk),
            )
            after.extend(self.combiner.for_real_rows(packet) if full else packet)


def _only_stores(stmt: Stmt) -> bool:
    """Tell whether ``stmt`` writes outputs and does nothing else."""
    match stmt:
        case Store() | StorePacket():
            return True
        case For(_, _, body):
            return any(isinstance(s, Store) for s in body)
        case _:
            return False
