# SPDX-License-Identifier: Apache-2.0
"""The printed form of kernel IR."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.scalar import Datum, LoopIndex, Scalar
from nfuser.compiler.ir.text import Names
from nfuser.compiler.lower.kernel.kernel_ir import (
    Array,
    AwaitCopies,
    Barrier,
    Buffer,
    Call,
    CopyPacket,
    DrawPacket,
    Element,
    Fetch,
    FindFirst,
    FindLine,
    For,
    If,
    IndexValue,
    Kernel,
    Let,
    Load,
    LoadPacket,
    Number,
    Post,
    Publish,
    Receive,
    SetElement,
    Shuffle,
    Stmt,
    Store,
    StoreLine,
    StorePacket,
    TakePacket,
    TakeTicket,
    Value,
    Var,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


_PLAIN = {Barrier: "barrier", Publish: "publish", AwaitCopies: "await copies"}


def text(kernel: Kernel) -> str:
    """Render ``kernel``; names depend on the kernel alone."""
    printer = _Printer(kernel)
    named = [printer.buffer(b) for b in kernel.buffers]
    named += [printer.var(v) for v in kernel.values]
    named += [printer.var(v) for v, _ in kernel.integers]
    grid = ", ".join(printer.scalar(x) for x in kernel.launch.grid)
    block = ", ".join(printer.scalar(x) for x in kernel.launch.block)
    lines = [
        f"kernel {kernel.name}({', '.join(named)}):",
        f"  grid ({grid}), block ({block})",
        *(f"  {printer.declared(array)}" for array in kernel.arrays),
        *printer.lines(kernel.body, "  "),
    ]
    return "\n".join(lines) + "\n"


class _Printer:
    def __init__(self, kernel: Kernel) -> None:
        self.names = Names()
        self._bound = dict(kernel.bound)
        self._named: dict[Var | Array | Buffer, str] = {}

    def scalar(self, x: Scalar) -> str:
        return scalar_walk.text(x, self._symbol)

    def _symbol(self, x: Scalar) -> str | None:
        if isinstance(x, LoopIndex) and x in self._bound:
            return self._bound[x]
        if isinstance(x, Datum) and isinstance(x.tensor, Var):
            return self.var(x.tensor)
        return self.names.symbol(x)

    def _name(self, item: Var | Array | Buffer, stem: str) -> str:
        if item not in self._named:
            self._named[item] = f"{stem}{len(self._named)}"
        return self._named[item]

    def var(self, var: Var) -> str:
        return self._name(var, "v")

    def buffer(self, buffer: Buffer) -> str:
        if buffer.tensor is not None:
            return self.names.tensor(buffer.tensor)
        return self._name(buffer, buffer.role)

    def declared(self, array: Array) -> str:
        memory = array.memory.value
        return f"{self._name(array, memory)} = {memory} {array.dtype}[{array.size}]"

    def place(self, item: Array | Buffer, index: Scalar) -> str:
        is_buffer = isinstance(item, Buffer)
        name = self.buffer(item) if is_buffer else self._name(item, item.memory.value)
        return f"{name}[{self.scalar(index)}]"

    def value(self, value: Value) -> str:
        match value:
            case Var():
                return self.var(value)
            case Number(number, dtype):
                return f"{number}:{dtype}"
            case IndexValue(scalar, dtype):
                return f"({self.scalar(scalar)}):{dtype}"
            case Call(op, operands):
                return f"{op}({', '.join(self.value(x) for x in operands)})"
            case Element(array, index):
                return self.place(array, index)
            case Load(buffer, index):
                return self.place(buffer, index)
            case Shuffle(inner, distance):
                return f"shuffle({self.value(inner)}, {distance})"
            case Receive(boxes, index, _, turn):
                of = f", {self.scalar(turn)}" if turn is not None else ""
                return f"receive({self.place(boxes, index)}{of})"
            case _:
                assert_never(value)

    def lines(self, body: tuple[Stmt, ...], pad: str) -> Iterator[str]:
        for stmt in body:
            if isinstance(stmt, For):
                index = self.names.symbol(stmt.index)
                going = f" while {self.value(stmt.going)}" if stmt.going else ""
                stop = self.scalar(stmt.stop)
                turns = f"{stop}, backwards" if stmt.backwards else stop
                yield f"{pad}for {index} in {turns}{going}:"
                yield from self.lines(stmt.body, pad + "  ")
            elif isinstance(stmt, If):
                yield f"{pad}if {self._condition(stmt.condition)}:"
                yield from self.lines(stmt.body, pad + "  ")
            else:
                yield pad + self._simple(stmt)

    def _condition(self, x: Value | Scalar) -> str:
        values = (Var, Number, IndexValue, Call, Element, Load, Shuffle, Receive)
        return self.value(x) if isinstance(x, values) else self.scalar(x)

    def _found(self, stmt: FindLine | FindFirst) -> str:
        match stmt:
            case FindLine(var, buffer, index, most):
                way = f"{self.place(buffer, index)}, {self.scalar(most)}"
                return f"{self.var(var)} = up to a line({way})"
            case FindFirst(var, source, count, wanted):
                way = f"{self.value(source)}, {self.scalar(count)}"
                return f"{self.var(var)} = first({way}, {self.value(wanted)})"

    def _posted(self, stmt: Post) -> str:
        place, value = self.place(stmt.boxes, stmt.index), self.value(stmt.value)
        if stmt.block is None or stmt.turn is None:
            return f"post({place}, {value})"
        block, turn = self.scalar(stmt.block), self.scalar(stmt.turn)
        return f"post({place} of block {block}, {value}, {turn})"

    def _simple(self, stmt: Stmt) -> str:
        match stmt:
            case Let(var, value):
                return f"{self.var(var)} = {self.value(value)}"
            case Post():
                return self._posted(stmt)
            case SetElement(item, index, value) | Store(item, index, value):
                return f"{self.place(item, index)} = {self.value(value)}"
            case (
                LoadPacket(to, at, of, index, width)
                | TakePacket(to, at, of, index, width)
                | StorePacket(to, at, of, index, width)
            ):
                source = f"{self.place(of, index)}, {width}{_lies(stmt)}"
                return f"{self.place(to, at)} = packet({source})"
            case DrawPacket(array, at, place, key, call, width):
                given = ", ".join(map(self.value, (place, key, call)))
                return f"{self.place(array, at)} = words({given}, {width})"
            case FindLine() | FindFirst():
                return self._found(stmt)
            case StoreLine(to, index, array):
                line = self._name(array, array.memory.value)
                return f"{self.place(to, index)} = line({line})"
            case Fetch(buffer, index, level):
                return f"fetch({self.place(buffer, index)}, {level})"
            case CopyPacket(to, at, of, index, width):
                source = self.place(of, index)
                return f"{self.place(to, at)} <- packet({source}, {width})"
            case Barrier() | Publish() | AwaitCopies():
                return _PLAIN[type(stmt)] + _whose(stmt)
            case TakeTicket(var, buffer, index):
                return f"{self.var(var)} = ticket({self.place(buffer, index)})"
            case _:
                return repr(stmt)


def _whose(stmt: Barrier | Publish | AwaitCopies) -> str:
    is_wide = isinstance(stmt, Barrier) and stmt.of_cluster
    return " of the cluster" if is_wide else ""


def _lies(packet: LoadPacket | TakePacket | StorePacket) -> str:
    return ", across" if isinstance(packet, LoadPacket) and packet.across else ""
