# SPDX-License-Identifier: Apache-2.0
"""Sums across the rows that a thread, or a block, goes through after each other.

They begin before the first row, take part in the pass over each row that has what they
add, and lie in memory after the last: a row of their result for each part of the rows.
A GPU thread that keeps rows is at the same columns in all of them, and has their sums
in registers, or in shared memory. Else they lie in the result from the beginning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.functions import less
from nfuser.compiler.lower.kernel.kernel_ir import (
    Barrier,
    Call,
    Element,
    For,
    Load,
    Memory,
    Number,
    SetElement,
    Store,
    guarded,
)
from nfuser.compiler.schedule.facts.target import WARP
from nfuser.compiler.schedule.nest import Binding
from nfuser.compiler.schedule.placement.placement import Where

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeAlias

    from nfuser.compiler.ir.expr import PartialSum
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.lower.elements.value_scopes import Key
    from nfuser.compiler.lower.elements.values import Values
    from nfuser.compiler.lower.kernel.kernel_ir import Array, Buffer, Stmt, Value

    Write: TypeAlias = Callable[[Buffer, TensorView, Scalar, Value, list[Stmt]], None]


class Across:
    """The partial sums of a kernel, from their beginning to the rows of their parts."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self.sums = values.fusion.partial_sums
        self._points = values.scheduled.space.crossed
        self._arrays: dict[PartialSum, Array] = {}
        self._has_blocks = values.scheduled.target.has_blocks
        placed, rows = values.scheduled.placements, values.scheduled.rows
        self.shared_bytes = 0
        self._first: dict[PartialSum, int] = {}  # place of those in shared memory
        for total in self.sums:
            key = (total.result, values.scheduled.space.points[total.result])
            dtype, where = total.result.dtype.compute, placed[key].where
            if rows and where is Where.REGISTERS:
                self._arrays[total] = values.array(dtype, rows.room)
            elif rows and where is Where.SHARED:
                self._arrays[total] = values.array(dtype, 0, Memory.LANDING)
                self._first[total] = self.shared_bytes // dtype.itemsize
                size = rows.room * values.scheduled.threads * dtype.itemsize
                self.shared_bytes += size

    def read(self, total: PartialSum) -> Key:
        """Return what is added up, and where."""
        return total.source, self._points[total]

    @property
    def is_in_memory(self) -> bool:
        """Whether each addition goes to memory."""
        return bool(self.sums) and not self._arrays

    def address(self, total: PartialSum) -> Scalar:
        """Return where the sum of the current column lies, in the row of this part."""
        values, tensor = self.values, total.result
        place = values.address(tensor, values.scheduled.space.points[tensor])
        part = self._number(Binding.PARALLEL, Binding.BLOCK_X, Binding.THREAD_Y)
        return place + part * values.scheduled.strides[tensor][0]

    def _number(self, *bindings: Binding) -> Scalar:
        """Return the number of what runs this among ``bindings``, the last fastest."""
        number: Scalar = sc.const(0)
        for binding in bindings:
            leaf = self.values.nest.leaf(binding)
            if leaf is not None and leaf.extent is not sc.const(1):
                number = number * leaf.extent + leaf.index
        return number

    def cleared(self) -> tuple[Stmt, ...]:
        """Return what sets sums that are not in the result to nothing."""
        found: list[Stmt] = []
        for total, array in self._arrays.items():
            rows = self.values.scheduled.rows
            assert rows is not None
            each = self.values.loops.make(rows.room)
            place = self._where(total, each)
            clear = SetElement(array, place, Number(0.0, array.dtype))
            found.append(For(each, each.extent, (clear,)))
        return tuple(found)

    def add(
        self,
        total: PartialSum,
        buffer: Buffer,
        real: Callable[[tuple[Stmt, ...]], Sequence[Stmt]],
    ) -> None:
        """Add the current element; in memory, ``real`` rows alone are added."""
        values = self.values
        element = values.value(*self.read(total))
        dtype = element.dtype
        if array := self._arrays.get(total):
            place = self._place(total)
            joined = Call("add", (Element(array, place), element), dtype)
            values.emit(SetElement(array, place, joined))
            return
        address = self.address(total)
        known = Load(buffer, address, volatile=self._has_blocks)
        joined = Call("add", (known, element), dtype)
        for stmt in real((Store(buffer, address, joined),)):
            values.emit(stmt)

    def stored(
        self, slots: Iterable[tuple[TensorView, Buffer]], write: Write
    ) -> tuple[Stmt, ...]:
        """Return the step that stores the sums of a column: zeros before they begin."""
        after: list[Stmt] = []
        buffers = dict(slots)
        with self.values.one_pass() as step:
            for total in self.sums:
                output, address = total.result, self.address(total)
                write(buffers[output], output, address, self._value(total), after)
        return step.then(after)

    def ended(self, levels: int) -> tuple[Stmt, ...]:
        """Return what threads wait for at the end of a row, if they are several warps.

        If they meet but once, the states of the next row pass through the same shared
        memory.
        """
        threads = self.values.nest.leaf(Binding.THREAD_X)
        if levels != 1 or threads is None:
            return ()
        return guarded(less(WARP, threads.extent), (Barrier(),))

    def _value(self, total: PartialSum) -> Value:
        """Return what is stored of a column: its sum, or nothing before it begins."""
        if array := self._arrays.get(total):
            return Element(array, self._place(total))
        return Number(0.0, total.result.dtype.compute)

    def _place(self, total: PartialSum) -> Scalar:
        values = self.values
        lane = values.step_index() * values.lane_size + values.lane_index
        return self._where(total, lane)

    def _where(self, total: PartialSum, lane: Scalar) -> Scalar:
        """Return where a thread's sum number ``lane`` lies.

        In shared memory threads are neighbours: each meets another bank.
        """
        if total not in self._first:
            return lane
        thread = self._number(Binding.THREAD_Y, Binding.THREAD_X)
        return self._first[total] + lane * self.values.scheduled.threads + thread
