# SPDX-License-Identifier: Apache-2.0
"""Loops inside a kernel: a thread takes its elements through all turns.

What turns carry is held in variables, or on the stack of a CPU's thread for lanes that
lie side by side. What is the same in each turn is computed once, before them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from nfuser.compiler.domains.maps import Point
from nfuser.compiler.dtypes import DType
from nfuser.compiler.lower.kernel.kernel_ir import (
    Call,
    Element,
    For,
    IndexValue,
    Let,
    Number,
    SetElement,
    Stmt,
    Value,
    Var,
)

if TYPE_CHECKING:
    from nfuser.compiler.domains.loops.first_turn import HeldState
    from nfuser.compiler.lower.elements.value_scopes import Key
    from nfuser.compiler.lower.elements.values import Values
    from nfuser.compiler.lower.folds.scan_steps import StoreOutput
    from nfuser.compiler.schedule.scheduled import Turns

Held: TypeAlias = Var | Element


def lower_turns(values: Values, turns: Turns, store: StoreOutput) -> None:
    """Add the loop of a fusion to the row; ``store`` stores an output."""
    _Sweep(values, turns, store).add()


class _Sweep:
    def __init__(self, values: Values, turns: Turns, store: StoreOutput) -> None:
        self._values, self._turns, self._store = values, turns, store
        self._outputs = list(dict.fromkeys(values.fusion.outputs))
        self._held: dict[HeldState, Held] = {}

    def add(self) -> None:
        """Begin, take all turns, and store what is left."""
        self._begin()
        self._take_turns()
        self._finish()

    def _is_in_lane(self, state: HeldState) -> bool:
        return self._values.place((state.held, state.point)).in_lane

    def _begin(self) -> None:
        values = self._values
        for state in self._turns.states:
            dtype = state.held.dtype.compute
            if self._is_in_lane(state):
                array = values.array(dtype, values.lane_size)
                self._held[state] = Element(array, values.lane_index)
            else:
                self._held[state] = Var(dtype, state.held)
        with values.lanes():
            for state, held in self._held.items():
                first = values.value(state.before, state.point)
                if isinstance(held, Element):
                    self._assign(held, first)
                else:
                    values.row.stmts.append(Let(held, first))

    def _assign(self, held: Held, new: Value) -> None:
        if isinstance(held, Var):
            self._values.emit(Let(held, new))
        else:
            self._values.emit(SetElement(held.array, held.index, new))

    def _take_turns(self) -> None:
        """Add the loop: all that a turn reads is read before it stores anything."""
        values, turns = self._values, self._turns
        rows = [t for t in self._outputs if t in turns.steps]
        after: list[Stmt] = []
        going = None if turns.changes is None else Var(DType.I64)
        if going is not None:
            values.row.stmts.append(Let(going, Number(1, DType.I64)))
        with values.one_pass() as step:
            self._know(in_turn=True)
            new = [values.value(s.after, s.point) for s in turns.states]
            for row in rows:
                values.value(row, values.scheduled.space.points[row])
            for row in rows:
                self._store(row, after)
            if going is not None:
                self._look_for_changes(going)
            for state, value in zip(turns.states, new, strict=True):
                held = self._held[state]
                if isinstance(held, Element):
                    self._assign(held, value)
                else:  # once all lanes have read what it was
                    after.append(Let(held, value))
        body = step.then(after)
        if body:
            loop = For(turns.index, turns.index.extent, body, going=going)
            values.row.stmts.append(loop)

    def _look_for_changes(self, going: Var) -> None:
        """Let ``going`` say whether this turn changes anything in any lane."""
        values = self._values
        values.outside_lane.stmts.append(Let(going, Number(0, DType.I64)))
        for change in self._turns.changes or ():
            ends = (
                Number(int(change.when), DType.I64),
                Number(int(not change.when), DType.I64),
            )
            moved = Call("select", (values.value(*change.read), *ends), DType.I64)
            values.emit(Let(going, Call("bit_or", (going, moved), DType.I64)))

    def _know(self, *, in_turn: bool) -> None:
        """Let the scopes that are open know what is held, in a turn or after all."""
        values = self._values
        for state, held in self._held.items():
            tensor = state.held if in_turn else state.left
            key: Key = (tensor, state.point)
            scope = values.scope_of(values.place(key))
            now = Var(held.dtype, tensor)
            scope.stmts.append(Let(now, held))
            scope.values[key] = now
        counter = self._turns.counter
        if in_turn and counter is not None:
            assert values.tile is not None
            number = IndexValue(self._turns.index, counter.dtype)
            values.tile.values[counter, Point(())] = number

    def _finish(self) -> None:
        """Store what is computed of what the last turn has left."""
        values = self._values
        outputs = [t for t in self._outputs if t not in self._turns.steps]
        if not outputs:
            return
        after: list[Stmt] = []
        with values.lanes():
            self._know(in_turn=False)
            for output in outputs:
                values.value(output, values.scheduled.space.points[output])
            for output in outputs:
                self._store(output, after)
        for stmt in after:
            values.emit(stmt)
