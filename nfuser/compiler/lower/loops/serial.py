# SPDX-License-Identifier: Apache-2.0
"""Kernels of one thread, which takes a loop element by element.

Each array that the loop carries begins as a copy in the memory of the result, and is
read and written there. Numbers are variables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.domains.loops.element_steps import (
    Compute,
    ElementLoop,
    ReadElement,
    Same,
    Write,
    is_number,
)
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import Constant, FromScalar, Pointwise
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.lower.elements.loads import wrap_index
from nfuser.compiler.lower.elements.single_numbers import applied, from_scalar
from nfuser.compiler.lower.kernel.kernel_ir import (
    Buffer,
    Call,
    For,
    If,
    IndexValue,
    Kernel,
    LaunchShape,
    Let,
    Load,
    LoopCounter,
    Number,
    Stmt,
    Store,
    Value,
    Var,
    kernel_name,
)
from nfuser.compiler.schedule.facts.memory import memory_tensors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.domains.loops.element_steps import (
        Coordinate,
        ElementPlace,
        Step,
    )
    from nfuser.compiler.ir.scalars.scalar import LoopIndex, Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.schedule.scheduled import Serial

_ENDLESS = 1 << 62  # turns of a loop that a condition ends


def build_serial(scheduled: Serial) -> Kernel:
    """Return a kernel that takes the steps of ``scheduled``."""
    return _Writer(scheduled).kernel()


class _Writer:
    def __init__(self, scheduled: Serial) -> None:
        self._scheduled = scheduled
        self._fusion = scheduled.fusion
        self._stmts: list[Stmt] = []
        self._values: dict[TensorView, Value] = {}
        self._integers: dict[tuple[Scalar, DType], Var] = {}
        self._loops = LoopCounter(0)
        self._given = {
            a.result: Var(a.result.dtype.compute, a.result)
            for a in self._fusion.arguments
            if a.by_value
        }
        inputs = {a.result for a in self._fusion.arguments}
        self._buffers = {
            tensor: Buffer(tensor.dtype, tensor, "in" if tensor in inputs else "out")
            for tensor in memory_tensors(self._fusion)
        }

    def kernel(self) -> Kernel:
        """Copy, take all steps, and store the numbers that are left."""
        scheduled, one = self._scheduled, sc.const(1)
        self._values |= self._given
        for argument in self._fusion.arguments:
            if not argument.by_value and is_number(argument.result):
                self._load(argument.result, argument.result, sc.const(0))
        pairs = zip(scheduled.steps.copied, scheduled.copies, strict=True)
        for (source, target), copies in pairs:
            self._copy(source, target, copies)
        self._take(scheduled.steps.steps)
        for output in dict.fromkeys(self._fusion.outputs):
            if output in self._values:
                value = self._values[output]
                self._stmts.append(Store(self._buffers[output], sc.const(0), value))
        return Kernel(
            kernel_name(self._fusion.name),
            scheduled,
            tuple(self._buffers[t] for t in memory_tensors(self._fusion)),
            (),
            tuple(self._given.values()),
            tuple((var, scalar) for (scalar, _), var in self._integers.items()),
            (),
            (),
            tuple(self._stmts),
            (),
            LaunchShape((one, one), (one, one), 1),
            wide_index=True,
            loops=self._loops.first,
        )

    # -- memory --------------------------------------------------------------

    def _load(self, result: TensorView, array: TensorView, index: Scalar) -> None:
        buffer = self._buffers[array]
        is_written = buffer.role == "out" and self._scheduled.target.has_blocks
        load = Load(buffer, index, volatile=is_written)
        value: Value = self._named(load, result)
        self._values[result] = _as(value, result.dtype)

    def _copy(self, source: TensorView, target: TensorView, copies: Scalar) -> None:
        """Copy an array, if it is not in its place already."""
        loops = [self._loops.make(extent) for extent in target.shape]
        load = Load(self._buffers[source], self._address(source, loops))
        index = self._address(target, loops)
        body: tuple[Stmt, ...] = (Store(self._buffers[target], index, load),)
        for loop in reversed(loops):
            stop = loop.extent * copies if loop is loops[0] else loop.extent
            body = (For(loop, stop, body),)
        self._stmts.extend(body)

    def _address(self, array: TensorView, index: Sequence[Scalar]) -> Scalar:
        total: Scalar = sc.const(0)
        for at, stride in zip(index, self._scheduled.strides[array], strict=True):
            total = total + at * stride
        return total

    def _place(self, place: ElementPlace) -> Scalar:
        """Return where in memory an element is."""
        return self._address(place.array, [self._along(at) for at in place.index])

    def _along(self, at: Coordinate) -> Scalar:
        if at.number is None or at.extent is None:
            return at.start
        value, extent = self._values[at.number], IndexValue(at.extent, DType.I64)
        if not at.inside:
            stmts, value = wrap_index(value, extent)
            self._stmts += stmts
        return at.start + self._index(value, at.extent) * at.step

    def _index(self, value: Value, extent: Scalar) -> Scalar:
        """Return a number that is below ``extent`` as an index."""
        var = Var(DType.I64)
        self._stmts.append(Let(var, Call("to_i64", (value,), DType.I64)))
        return scalar_symbols.datum(var, (), extent)

    # -- steps ---------------------------------------------------------------

    def _take(self, steps: Sequence[Step]) -> None:
        for step in steps:
            match step:
                case Compute(expr):
                    self._values[expr.result] = self._computed(expr)
                case Same(result, source):
                    self._values[result] = self._values[source]
                case ReadElement(result, place):
                    self._load(result, place.array, self._place(place))
                case Write(place, value):
                    buffer, index = self._buffers[place.array], self._place(place)
                    new = _as(self._values[value], buffer.dtype)
                    self._stmts.append(Store(buffer, index, new))
                case ElementLoop():
                    self._turns(step)

    def _computed(self, expr: Pointwise | Constant | FromScalar) -> Value:
        match expr:
            case Constant(number):
                assert not isinstance(number, complex)
                return Number(number, expr.result.dtype.compute)
            case FromScalar(scalar):
                return from_scalar(scalar, expr.result.dtype, self._integers)
            case Pointwise():
                made = applied(expr, [self._values[t] for t in expr.operands])
                return self._named(made, expr.result)

    def _named(self, value: Value, tensor: TensorView) -> Var:
        """Return a variable of its own that has this value."""
        var = Var(value.dtype, tensor)
        self._stmts.append(Let(var, value))
        return var

    def _turns(self, turns: ElementLoop) -> None:
        held = [
            self._named(self._values[before], inside)
            for before, inside, _, _ in turns.carried
        ]
        inside = [inside for _, inside, _, _ in turns.carried]
        self._values |= zip(inside, held, strict=True)
        loop = turns.loop
        once = self._values[turns.flag] if turns.flag and turns.loop.is_choice else None
        going = Var(DType.I64) if turns.flag and not once else None
        if going is not None and turns.flag is not None:
            self._ask(going, self._values[turns.flag])
        trips = sc.const(_ENDLESS) if loop.trips is None else loop.trips
        index = self._loops.make(trips)
        around, self._stmts = self._stmts, []
        if loop.turn is not None:
            self._values[loop.turn] = IndexValue(index, loop.turn.dtype)
        self._take(turns.steps)
        for row, whole in turns.added:
            self._add(row, whole, loop.trips if loop.backwards else None, index)
        new = [
            self._named(self._values[after], left)
            for _, _, after, left in turns.carried
        ]
        self._stmts += [Let(var, value) for var, value in zip(held, new, strict=True)]
        if going is not None and turns.flag is not None:
            self._ask(going, self._values[turns.flag])
        body, self._stmts = tuple(self._stmts), around
        if once is not None:
            self._stmts.append(If(once, body))
        elif body:
            self._stmts.append(For(index, trips, body, going=going))
        for var, (_, _, _, left) in zip(held, turns.carried, strict=True):
            self._values[left] = var

    def _ask(self, going: Var, flag: Value) -> None:
        """Let ``going`` say whether there is another turn."""
        ends = Number(1, DType.I64), Number(0, DType.I64)
        self._stmts.append(Let(going, Call("select", (flag, *ends), DType.I64)))

    def _add(
        self, row: TensorView, whole: TensorView, ends: Scalar | None, turn: LoopIndex
    ) -> None:
        """Store what a turn adds to a result; backwards from where that ``ends``."""
        at: Scalar = turn if ends is None else ends - 1 - turn
        index = self._address(whole, [at, *(sc.const(0) for _ in row.shape)])
        self._stmts.append(Store(self._buffers[whole], index, self._values[row]))


def _as(value: Value, dtype: DType) -> Value:
    """Return ``value`` as it is held: truth values may be written as integers."""
    if value.dtype is dtype.compute:
        return value
    return Call(f"to_{dtype}", (value,), dtype.compute)
