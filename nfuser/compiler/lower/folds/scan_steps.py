# SPDX-License-Identifier: Apache-2.0
"""Scans: states that are read at every step of a row.

A CPU thread goes along a row, or along a tile of columns side by side. On a GPU the
threads of a block take a piece of the row each, step by step: they scan their pieces in
registers, learn what lies before these through shuffles and shared memory, and carry
the whole on to the next step. What lies before the packets of a row is a step before
the first, and what lies behind them one after the last; each warp takes these alone.
All orders are fixed: so are the results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import ReduceOp, Scan
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.functions import equal, less
from nfuser.compiler.ir.tensor import TensorView
from nfuser.compiler.lower.folds import fold
from nfuser.compiler.lower.kernel.kernel_ir import (
    Array,
    Barrier,
    Call,
    Element,
    For,
    IndexValue,
    Let,
    Memory,
    Number,
    SetElement,
    Shuffle,
    Stmt,
    Value,
    Var,
    guarded,
)
from nfuser.compiler.schedule.facts.target import WARP
from nfuser.compiler.schedule.nest import Binding
from nfuser.compiler.schedule.scan.scan_passes import read_early, scan_stages

if TYPE_CHECKING:
    from collections.abc import Generator

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.lower.elements.output_stores import Stores
    from nfuser.compiler.lower.elements.value_scopes import Key, RowPass
    from nfuser.compiler.lower.elements.values import Values
    from nfuser.compiler.schedule.scheduled import Scheduled

StoreOutput: TypeAlias = Callable[[TensorView, list[Stmt]], None]


def lower_scans(values: Values, out: Stores) -> None:
    """Add the loops of a fusion with scans to the row; ``out`` stores its outputs."""
    if values.scheduled.target.has_blocks:
        _Steps(values, out.store).add(out)
    else:
        _Sequence(values, out.store).add()


def _neutral(scan: Scan) -> Number:
    """Return the state of no elements; -0.0 changes no sum, and 0.0 changes -0.0."""
    (number,) = fold.initial(scan)
    if scan.op is ReduceOp.SUM and number.dtype.is_float:
        return Number(-0.0, number.dtype)
    return number


class _Scans:
    """What the loops of both targets share."""

    def __init__(self, values: Values, store: StoreOutput) -> None:
        self.values, self.nest = values, values.nest
        self.fusion = values.scheduled.fusion
        self.space = values.scheduled.space
        self._store = store

    def key(self, scan: Scan) -> Key:
        """Return where ``scan`` is read: at one point only."""
        return scan.result, self.space.points[scan.result]

    def source(self, scan: Scan) -> Key:
        """Return what ``scan`` folds."""
        return scan.source, self.space.points[scan.result]

    def joined(self, scan: Scan, a: Value, b: Value) -> Value:
        """Return what ``a`` and ``b`` are together."""
        (both,) = fold.combined(scan, [a], [b], self.values.let, reassociate=False)
        return both

    def store(self) -> list[Stmt]:
        """Store all outputs; return what comes behind the lanes."""
        after: list[Stmt] = []
        for output in dict.fromkeys(self.fusion.outputs):
            self._store(output, after)
        return after


class _Sequence(_Scans):
    """One thread goes along the row; its columns, if several, are lanes."""

    def add(self) -> None:
        """Add the loops to the row."""
        states = {scan: self._begin(scan) for scan in self.fusion.scans}
        with self.values.one_pass() as step:
            for scan, state in states.items():
                element = self.values.value(*self.source(scan))
                joined = self.joined(scan, state, element)
                now = self.values.let(joined, scan.result)
                self._assign(state, now)
                self.values.innermost.values[self.key(scan)] = now
            after = self.store()
        body = step.then(after)
        for leaf in reversed(self.nest.reduced):
            if leaf.extent is not sc.const(1):
                body = (For(leaf.index, leaf.stop, body),)
        self.values.row.stmts.extend(body)

    def _begin(self, scan: Scan) -> Var | Element:
        values, neutral = self.values, _neutral(scan)
        state: Var | Element = Var(neutral.dtype, scan.result)
        if not self.nest.lane_reduces:
            array = values.array(neutral.dtype, values.lane_size)
            state = Element(array, values.lane_index)
        with values.lanes():
            self._assign(state, neutral)
        return state

    def _assign(self, state: Var | Element, new: Value) -> None:
        if isinstance(state, Var):
            self.values.emit(Let(state, new))
        else:
            self.values.emit(SetElement(state.array, state.index, new))


class _Steps(_Scans):
    """The threads of a block share a row; what ``carries`` hold lies before a step."""

    def __init__(
        self,
        values: Values,
        store: StoreOutput,
        carries: Mapping[Scan, Array] | None = None,
    ) -> None:
        super().__init__(values, store)
        self._stages = scan_stages(self.fusion)
        together = next(x for x in self.nest.reduced if x.binding.is_bound)
        self._inner = together.binding is Binding.THREAD_X
        self._items = self._extent(Binding.UNROLLED)
        # Packets lie along the row, or are columns side by side.
        self._width = values.lane_size if self._inner else 1
        self._columns = 1 if self._inner else values.lane_size
        one = sc.const(1)
        self._index: dict[Binding, Scalar] = {
            x.binding: sc.const(0) if x.extent is one else x.index
            for x in self.nest.leaves
        }
        self._thread = self._index[
            Binding.THREAD_X if self._inner else Binding.THREAD_Y
        ]
        fold = self._extent(together.binding)
        self._warp = min(fold, WARP) if self._inner else 1
        self._groups = fold // self._warp  # that meet in shared memory
        self._across = 1 if self._inner else self._extent(Binding.THREAD_X)
        self._held: dict[Scan, Array] = {}
        self.carries = carries or {
            scan: self._carry(scan) for scan in self.fusion.scans
        }

    def _extent(self, binding: Binding) -> int:
        leaf = self.nest.leaf(binding)
        if leaf is None:
            return 1
        assert isinstance(leaf.extent, sc.Const)
        return leaf.extent.value

    def _carry(self, scan: Scan) -> Array:
        """Return what lies before a step, at first nothing."""
        carry = self._array(scan, self._columns)
        with self._each(self._columns) as lane:
            self._set(carry, lane, _neutral(scan))
        return carry

    def add(self, out: Stores) -> None:
        """Add the loops to the row, and a step at either end of rows that have them.

        What the ends load is on its way with the packets of the first step: these come
        before it is waited for.
        """
        scheduled = self.values.scheduled
        before = scheduled.before and _End(self, scheduled.before, out)
        behind = scheduled.behind and _End(self, scheduled.behind, out)
        gathered = self._gather_first()
        is_first = equal(self._index[Binding.SERIAL], 0)
        begun = guarded(is_first, before.whole()) if before else ()
        body = (*gathered, *begun, *self.go_on())
        step = self.nest.leaf(Binding.SERIAL)
        assert step is not None
        is_loop = step.extent is not sc.const(1)
        whole = (For(step.index, step.stop, body),) if is_loop else body
        self.values.row.stmts.extend(whole)
        self.values.row.stmts.extend(behind.whole() if behind else ())

    def _gather_first(self) -> tuple[Stmt, ...]:
        """Put what is scanned first into registers, and what is read for later only."""
        values = self.values
        values.keep_placed(self._items * values.lane_size)
        ahead = read_early(values.scheduled, values.varying, self._stages[0])
        return self._gather(self._stages[0], ahead)

    def go_on(self) -> tuple[Stmt, ...]:
        """Scan what is gathered, then what waits for it, and store the outputs."""
        body: list[Stmt] = []
        for number, scans in enumerate(self._stages):
            body += self._gather(scans, []) if number else ()
            with self.values.block() as combined:
                for scan in scans:
                    self._scan(scan)
            body += combined
        return (*body, *self._consume())

    # -- passes --------------------------------------------------------------

    def _in_items(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        item = self.nest.leaf(Binding.UNROLLED)
        if item is None or item.extent is sc.const(1):
            return body
        return (For(item.index, item.extent, body),)

    @contextmanager
    def _one_pass(self) -> Generator[RowPass]:
        """Collect a pass that knows all scans so far."""
        values = self.values
        with values.one_pass() as step:
            for scan, array in self._held.items():
                key = self.key(scan)
                values.innermost.values[key] = Element(array, values.kept_index(key))
            yield step

    def _gather(self, scans: list[Scan], ahead: list[Key]) -> tuple[Stmt, ...]:
        """Put the elements of a thread's piece of the row into registers."""
        values = self.values
        with self._one_pass() as step:
            for key in ahead:
                values.value(*key)
            for scan in scans:
                self._hold(scan)
        return self._in_items(step.then([]))

    def _hold(self, scan: Scan) -> None:
        """Put an element of what ``scan`` folds into a register, or a neutral one."""
        values = self.values
        element, neutral = values.value(*self.source(scan)), _neutral(scan)
        for bound in self.nest.reduced_bounds:
            inside = less(bound.index, bound.extent)
            if not isinstance(inside, sc.Const):
                chosen = (IndexValue(inside, DType.BOOL), element, neutral)
                element = values.let(Call("select", chosen, neutral.dtype))
        size = self._items * values.lane_size
        array = self._held[scan] = values.array(neutral.dtype, size)
        at = values.kept_index(self.key(scan))
        values.emit(SetElement(array, at, element))

    def _consume(self) -> tuple[Stmt, ...]:
        """Store the outputs, computed from what is scanned."""
        with self._one_pass() as step:
            after = self.store()
        body = step.then(after)
        for bound in self.nest.reduced_bounds:
            body = guarded(less(bound.index, bound.extent), body)
        return self._in_items(body)

    # -- one scan ------------------------------------------------------------

    def _scan(self, scan: Scan) -> None:
        """Scan what the threads hold, and carry the whole on to the next step."""
        total = self._array(scan, self._columns)
        base = self._array(scan, self._columns)
        inside = self._array(scan, self._items) if self._inner else None
        if inside is not None:
            self._scan_row(scan, total, inside)
        else:
            self._scan_column(scan, total)
        if self._groups == 1:
            with self._each(self._columns) as lane:
                whole = Element(total, lane)
                self._lead(scan, base, lane, None, whole)
        else:
            self._meet(scan, total, base)
        self._add_base(scan, base, inside)

    def _array(self, scan: Scan, size: int, memory: Memory = Memory.LOCAL) -> Array:
        return self.values.array(_neutral(scan).dtype, size, memory)

    def _set(self, array: Array, index: Scalar, value: Value) -> None:
        self.values.emit(SetElement(array, index, value))

    @contextmanager
    def _each(self, count: int) -> Generator[Scalar]:
        """Put the statements inside into an unrolled loop, and yield its index."""
        index = self.values.loops.make(count)
        with self.values.block() as body:
            yield sc.const(0) if count == 1 else index
        loop = (For(index, sc.const(count), tuple(body)),)
        self.values.emit_all(tuple(body) if count == 1 else loop)

    def _scan_row(self, scan: Scan, total: Array, inside: Array) -> None:
        """Scan packets in registers, then those of a warp, item after item.

        ``inside`` becomes what lies before each item of this thread in its warp.
        """
        emit, let = self.values.emit, self.values.let
        held, width = self._held[scan], self._width
        running = let(_neutral(scan), scan.result)
        with self._each(self._items) as item:
            at = item * width
            if width > 1:
                with self._each(width - 1) as k:
                    pair = Element(held, at + k), Element(held, at + k + 1)
                    self._set(held, at + k + 1, self.joined(scan, *pair))
            whole, before = let(Element(held, at + (width - 1))), let(_neutral(scan))
            distance = 1
            while distance < self._warp:
                other = let(Shuffle(whole, distance))
                is_behind = less(0, self._thread // distance % 2)
                self._join_if(scan, is_behind, before, other)
                emit(Let(whole, self.joined(scan, whole, other)))
                distance *= 2
            self._set(inside, item, self.joined(scan, running, before))
            emit(Let(running, self.joined(scan, running, whole)))
        self._set(total, sc.const(0), running)

    def _join_if(self, scan: Scan, condition: Scalar, state: Var, other: Value) -> None:
        """Join ``other``, which lies before it, to ``state`` where that is so."""
        joined = self.joined(scan, other, state)
        chosen = (IndexValue(condition, DType.BOOL), joined, state)
        self.values.emit(Let(state, Call("select", chosen, state.dtype)))

    def _scan_column(self, scan: Scan, total: Array) -> None:
        """Scan the rows that a thread holds, column by column."""
        held, columns = self._held[scan], self._columns
        if self._items > 1:
            with (
                self._each(self._items - 1) as row,
                self._each(columns) as lane,
            ):
                at = row * columns + lane
                pair = Element(held, at), Element(held, at + columns)
                self._set(held, at + columns, self.joined(scan, *pair))
        with self._each(columns) as lane:
            last = Element(held, lane + (self._items - 1) * columns)
            self._set(total, lane, last)

    def _meet(self, scan: Scan, total: Array, base: Array) -> None:
        """Learn through shared memory what other groups of threads hold.

        Each step writes where the last but one did: one barrier a step is enough.
        """
        values, groups = self.values, self._groups
        size = 2 * groups * self._columns * self._across
        shared = self._array(scan, size, Memory.SHARED)
        mine = self._thread // self._warp
        x = sc.const(0) if self._inner else self._index[Binding.THREAD_X]
        half = self._index[Binding.SERIAL] % 2

        def place(group: Scalar, lane: Scalar) -> Scalar:
            row = (half * groups + group) * self._columns + lane
            return row * self._across + x

        with values.block() as writes, self._each(self._columns) as lane:
            self._set(shared, place(mine, lane), Element(total, lane))
        is_first = equal(self._thread % self._warp, 0)
        values.emit_all(guarded(is_first, tuple(writes)))
        values.emit(Barrier())
        with self._each(self._columns) as lane:
            before, whole = values.let(_neutral(scan)), values.let(_neutral(scan))
            with self._each(groups) as group:
                other = values.let(Element(shared, place(group, lane)))
                self._join_if(scan, less(group, mine), before, other)
                values.emit(Let(whole, self.joined(scan, whole, other)))
            self._lead(scan, base, lane, before, whole)

    def _lead(
        self, scan: Scan, base: Array, lane: Scalar, before: Value | None, whole: Value
    ) -> None:
        """Set what lies before a group of threads, and what all carry on."""
        carry = Element(self.carries[scan], lane)
        lead = carry if before is None else self.joined(scan, carry, before)
        self._set(base, lane, lead)
        self._set(carry.array, lane, self.joined(scan, carry, whole))

    def _add_base(self, scan: Scan, base: Array, inside: Array | None) -> None:
        """Join what lies before to what a thread holds."""
        held, wide = self._held[scan], self._width * self._columns
        with self._each(self._items) as item:
            lead: Value | None = None
            if inside is not None:
                pair = Element(base, sc.const(0)), Element(inside, item)
                lead = self.values.let(self.joined(scan, *pair))
            with self._each(wide) as lane:
                at = item * wide + lane
                joined = self.joined(
                    scan, lead or Element(base, lane), Element(held, at)
                )
                self._set(held, at, joined)


class _End(_Steps):
    """A step at an end of a row: each few threads of all have the same elements."""

    def __init__(self, steps: _Steps, end: Scheduled, out: Stores) -> None:
        values = steps.values.beside(end)
        super().__init__(values, out.beside(values).store, steps.carries)
        self._warp, self._groups = steps.values.lane_size, 1
        values.early = []
        self._gathered = self._gather_first()
        values.emit_all(tuple(values.early))
        values.early = None

    def whole(self) -> tuple[Stmt, ...]:
        """Return the step, but for the loads that it begins with."""
        return (*self._gathered, *self.go_on())

    def _consume(self) -> tuple[Stmt, ...]:
        """Store the outputs, once."""
        return guarded(less(self._thread, self._warp), super()._consume())
