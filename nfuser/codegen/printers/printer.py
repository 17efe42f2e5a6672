# SPDX-License-Identifier: Apache-2.0
"""What the two printers share: names, values and the shape of statements."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, assert_never

from nfuser.codegen.printers.assigned_names import renewed
from nfuser.codegen.printers.index_names import (
    base_of,
    computed,
    divides,
    divides_below_zero,
    guards_loads,
    indices_of,
    repeated_indices,
    shared_parts,
    worth_naming,
)
from nfuser.compiler.ir.point_op import POINT_OPS
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.operators import Op
from nfuser.compiler.ir.scalars.scalar import Binary, Datum, LoopIndex, Scalar
from nfuser.compiler.ir.text import Names
from nfuser.compiler.lower.kernel.kernel_ir import (
    Array,
    Buffer,
    Call,
    Element,
    For,
    If,
    IndexValue,
    Kernel,
    Let,
    Load,
    Number,
    OwnStmt,
    Receive,
    SetElement,
    Shuffle,
    Stmt,
    Store,
    Value,
    Var,
)
from nfuser.compiler.lower.kernel.parameters import is_host
from nfuser.compiler.schedule.printed import text as schedule_text
from nfuser.config import VERSION

if TYPE_CHECKING:
    from nfuser.compiler.dtypes import DType

_INFIX = {name: op.infix for name, op in POINT_OPS.items() if op.infix}
_ARITHMETIC = {"add", "subtract", "multiply"}
_BITS = {"bit_and", "bit_or", "bit_xor"}


class Printer:
    """Prints one kernel; subclasses spell what targets have of their own."""

    indent = "    "
    hoists = False  # whether loops begin with what their indices have in common

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.names = Names()
        lines = schedule_text(kernel.scheduled, self.names).splitlines()
        self.header = "".join(f"# {line}\n".replace("# \n", "#\n") for line in lines)
        self.used: set[str] = set()
        self._vars: dict[Var, str] = {}
        given = (*kernel.values, *(var for var, _ in kernel.integers))
        self._renewed = renewed(kernel.body, given)
        self._taken: Counter[str] = Counter()
        self._arrays: dict[Array, str] = {}
        self._buffers: dict[Buffer, str] = {}
        self._loops: dict[LoopIndex, str] = dict(kernel.bound)
        self._open: set[LoopIndex] = set(self._loops)  # those we are inside of
        self._prepared: dict[Scalar, str] = {}
        self._named: dict[Scalar, str] = {}  # indices with a name in the current block
        self._repeats = (
            shared_parts(kernel.body, given)
            if self.hoists
            else repeated_indices(kernel.body)
        )
        host = (x for x in kernel.scalars if is_host(x) and not _is_prepared(x))
        self._host = {x: f"e{k}" for k, x in enumerate(host)}

    # -- names ---------------------------------------------------------------

    def primitive(self, name: str) -> str:
        """Return ``name``, and remember to import it."""
        self.used.add(name)
        return name

    def _fresh(self, stem: str) -> str:
        count = self._taken[stem]
        self._taken[stem] += 1
        return f"{stem}_{count}" if count else stem

    def var(self, var: Var) -> str:
        """Return the name of a variable: that of its tensor, in lower case."""
        if var not in self._vars:
            tensor = var.tensor
            stem = "v" if tensor is None else self.names.tensor(tensor).lower()
            self._vars[var] = self._fresh(stem)
        return self._vars[var]

    def array(self, array: Array) -> str:
        """Return the name of an array."""
        stem = array.memory.value
        return self._arrays.setdefault(array, f"{stem}{len(self._arrays)}")

    def buffer(self, buffer: Buffer) -> str:
        """Return the name of a buffer: that of its tensor."""
        if buffer not in self._buffers:
            tensor = buffer.tensor
            stem = buffer.role if tensor is None else self.names.tensor(tensor)
            self._buffers[buffer] = self._fresh(stem)
        return self._buffers[buffer]

    def symbol(self, x: Scalar) -> str | None:
        """Return the name of a scalar, if it has one."""
        if x in self._named:
            return self._named[x]
        if isinstance(x, LoopIndex):
            count = len(self._loops) - len(self.kernel.bound)
            # i8 and i16 are types of a CPU's kernels.
            return self._loops.setdefault(x, f"i{count}" if count < 8 else f"i_{count}")
        if isinstance(x, Datum):
            assert isinstance(x.tensor, Var)
            return self.var(x.tensor)
        if isinstance(x, Binary) and _is_prepared(x):
            stem = "m" if x.op is Op.MULTIPLIER else "h"
            return self._prepared.setdefault(x, f"{stem}{len(self._prepared) // 2}")
        if x in self._host:
            return self._host[x]
        return self.names.symbol(x)

    # -- scalars -------------------------------------------------------------

    def scalar(self, x: Scalar) -> str:
        """Render an index in the kernel's index type."""
        raise NotImplementedError

    def plain(self, x: Scalar) -> str:
        """Render an index without a wrapper around the whole."""
        return scalar_walk.text(x, self.symbol, self.division)

    def division(self, x: Binary, lhs: str, rhs: str) -> str:
        """Render an operator that Python would not do the way indices need it."""
        raise NotImplementedError

    # -- values --------------------------------------------------------------

    def type_name(self, dtype: DType) -> str:
        """Return the constructor of ``dtype`` in emitted source."""
        raise NotImplementedError

    def value(self, value: Value, *, nested: bool = False) -> str:
        """Render a value."""
        match value:
            case Var():
                return self.var(value)
            case Number(number, dtype):
                return self._number(number, dtype)
            case IndexValue(scalar, dtype) if dtype.is_bool:
                return f"({self.condition(scalar)})"
            case IndexValue(scalar, dtype):
                return f"{self.type_name(dtype)}({self.plain(scalar)})"
            case Call():
                return self._call(value, nested)
            case Element(array, index):
                return self.element(array, index)
            case Load(buffer, index, volatile):
                place = f"({self.buffer(buffer)}, {self.scalar(index)})"
                if not volatile:
                    return self.primitive(self.access("load", buffer.dtype)) + place
                text = self.primitive("load_volatile") + place
                is_bool = buffer.dtype.is_bool
                return f"{self.primitive('to_bool')}({text})" if is_bool else text
            case Receive(boxes, index, dtype, turn):
                kind = "False" if dtype.is_bool else f"{self.type_name(dtype)}(0)"
                if isinstance(boxes, Array) and turn is not None:
                    place = f"{self.array(boxes)}, {self.plain(index)}, {kind}"
                    verb = self.primitive("cluster_receive")
                    return f"{verb}({place}, {self.plain(turn)})"
                assert isinstance(boxes, Buffer)
                place = f"{self.buffer(boxes)}, {self.scalar(index)}"
                return f"{self.primitive('receive')}({place}, {kind})"
            case Shuffle(inner, distance):
                name = self.primitive("shuffle_xor")
                return f"{name}({self.value(inner)}, {distance})"
            case _:
                assert_never(value)

    def _number(self, number: float, dtype: DType) -> str:
        if dtype.is_bool:
            return str(bool(number))
        text = repr(float(number)) if dtype.is_float else repr(int(number))
        if isinstance(number, float) and not math.isfinite(number):
            text = (
                "1e999 - 1e999"
                if math.isnan(number)
                else f"{math.copysign(1, number):.0f}e999"
            )
        return f"{self.type_name(dtype)}({text})"

    def _call(self, call: Call, nested: bool) -> str:
        infix = _INFIX.get(call.op)
        dtype = call.operands[0].dtype
        if call.op in _ARITHMETIC and not dtype.is_float:
            infix = None  # integers wrap in their own type, which Python's + does not
        if call.op in _BITS and not dtype.is_bool:
            infix = None
        operands = [self.value(x, nested=infix is not None) for x in call.operands]
        if infix is None:
            return f"{self.primitive(call.op)}({', '.join(operands)})"
        text = f" {infix} ".join(operands)
        return f"({text})" if nested else text

    def access(self, verb: str, dtype: DType) -> str:
        """Return the primitive that loads or stores elements of ``dtype``."""
        return f"{verb}_{dtype}" if dtype.is_half or dtype.is_bool else verb

    def element(self, array: Array, index: Scalar) -> str:
        """Render one element of an array."""
        raise NotImplementedError

    # -- statements ----------------------------------------------------------

    def block(self, body: tuple[Stmt, ...], depth: int) -> list[str]:
        """Render statements; names given to indices inside end with the block."""
        outer = dict(self._named)
        lines: list[str] = []
        pad = self.indent * depth
        for stmt in body:
            lines.extend(pad + line for line in self._index_names(stmt))
            lines.extend(self.statement(stmt, depth))
        self._named = outer
        return lines

    def _index_names(self, stmt: Stmt) -> list[str]:
        """Name the indices of ``stmt`` that are worth it."""
        lines: list[str] = []
        hoists = self.hoists and isinstance(stmt, For)
        guarded = hoists or (self.hoists and guards_loads(stmt))
        indices = [*computed(stmt), *indices_of(stmt, guarded=guarded)]
        for index in indices:
            for x in worth_naming(index, self._repeats, nested=self.hoists):
                if x in self._named or not self._is_known(x):
                    continue
                if isinstance(stmt, If) and self._stays(stmt, index, x):
                    continue
                lines.append(self._name(x, "j"))
        if hoists:
            bases = dict.fromkeys(base_of(index, self._is_known) for index in indices)
            lines += [self._name(x, "at") for x in bases if x and x not in self._named]
        return lines

    def _stays(self, guard: If, index: Scalar, x: Scalar) -> bool:
        """Tell whether ``x`` of ``index`` is computed only where ``guard`` holds.

        Only threads that the condition keeps out divide what is below zero; and where
        it guards loads alone, no division is worth what it takes beside them.
        """
        if self.hoists and guards_loads(guard) and index is not guard.condition:
            return divides(x, self._named)
        return divides_below_zero(x)

    def _name(self, x: Scalar, stem: str) -> str:
        """Return the line that gives ``x`` a name."""
        text = self.scalar(x)
        name = self._named[x] = self._fresh(stem)
        return f"{name} = {text}"

    def _is_known(self, x: Scalar) -> bool:
        data = (y.tensor for y in scalar_walk.every([x]) if isinstance(y, Datum))
        return self._open.issuperset(scalar_walk.loops_in(x)) and all(
            var in self._vars for var in data
        )

    def statement(self, stmt: Stmt, depth: int) -> list[str]:
        """Render one statement, with its body."""
        pad = self.indent * depth
        match stmt:
            case Let(var, value):
                text = self.value(value)
                if var in self._renewed:
                    self._vars.pop(var, None)
                return [f"{pad}{self.var(var)} = {text}"]
            case SetElement(array, index, value):
                return [pad + self.set_element(array, index, self.value(value))]
            case Store(buffer, index, value):
                verb = self.primitive(self.access("store", buffer.dtype))
                inner = (self.buffer(buffer), self.scalar(index), self.value(value))
                return [f"{pad}{verb}({', '.join(inner)})"]
            case If(condition, body):
                test = (
                    self.condition(condition)
                    if isinstance(condition, Scalar)
                    else self.value(condition)
                )
                return [f"{pad}if {test}:", *self.block(body, depth + 1)]
            case For():
                self._open.add(stmt.index)
                lines = self.loop(stmt, depth)
                self._open.discard(stmt.index)
                return lines
            case _:
                return [pad + line for line in self.own_statement(stmt)]

    def condition(self, x: Scalar) -> str:
        """Render a comparison of indices."""
        if x in self._host:
            return f"{self.scalar(x)} != 0"
        if x not in self._named and isinstance(x, Binary) and x.op in (Op.LT, Op.EQ):
            right = (
                self.plain(x.rhs) if isinstance(x.rhs, sc.Const) else self.scalar(x.rhs)
            )
            return f"{self.scalar(x.lhs)} {x.op.value} {right}"
        return self.scalar(x)

    def set_element(self, array: Array, index: Scalar, value: str) -> str:
        """Render an assignment to one element of an array."""
        raise NotImplementedError

    def loop(self, stmt: For, depth: int) -> list[str]:
        """Render a loop."""
        raise NotImplementedError

    def own_statement(self, stmt: OwnStmt) -> list[str]:
        """Render a statement that targets spell differently."""
        raise NotImplementedError

    def comment(self, target: str) -> str:
        """Return the comment that begins a module."""
        prepared = {x.lhs: None for x in self._prepared if isinstance(x, Binary)}
        notes = [
            f"# m{k}, h{k}: what the host prepares to divide by {self.plain(d)}\n"
            for k, d in enumerate(prepared)
        ]
        notes += [
            f"# {name}: {scalar_walk.text(x, self.names.symbol)}\n"
            for x, name in self._host.items()
        ]
        return f"# nfuser {VERSION} for {target}\n{self.header}{''.join(notes)}"


def _is_prepared(x: Scalar) -> bool:
    return isinstance(x, Binary) and x.op in (Op.MULTIPLIER, Op.SHIFT)
