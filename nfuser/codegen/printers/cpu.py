# SPDX-License-Identifier: Apache-2.0
"""Print a kernel as Python source for Numba's CPU compiler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.codegen.printers.printer import Printer
from nfuser.codegen.printers.source import Source
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.operators import Op
from nfuser.compiler.lower.cpu.vectors.lanes import dear_strides, has_many_functions
from nfuser.compiler.lower.kernel.kernel_ir import (
    Array,
    DrawPacket,
    Element,
    Fetch,
    FindFirst,
    FindLine,
    For,
    Kernel,
    Load,
    OwnStmt,
    StoreLine,
    TakeTicket,
)
from nfuser.compiler.lower.loops.draws import block_of
from nfuser.errors import VerifyError

if TYPE_CHECKING:
    from nfuser.compiler.dtypes import DType
    from nfuser.compiler.ir.scalars.scalar import Binary, Scalar


def print_cpu(kernel: Kernel) -> Source:
    """Return ``kernel`` as a module with one function over a range of rows."""
    return _CpuPrinter(kernel).source()


class _CpuPrinter(Printer):
    # LLVM 22 vectorizes a uniform division under a condition as if the condition were
    # that of the first lane: the others get what was there. Before the loop it is safe.
    # LLVM would hoist sums itself, but what is named once is typed and inlined once.
    hoists = True

    def source(self) -> Source:
        kernel = self.kernel
        parameters = [self.buffer(b) for b in kernel.buffers]
        types = [f"CPointer({_storage(b.dtype)})" for b in kernel.buffers]
        kinds = ["pointer"] * len(kernel.buffers)
        for var in (*kernel.values, *(var for var, _ in kernel.integers)):
            parameters.append(self.var(var))
            types.append(_numba_name(var.dtype))
            kinds.append(str(var.dtype))
        lines = [f"    {self.primitive('wide_vectors')}()"]
        strides = dear_strides(kernel.body)
        for scalar in kernel.scalars:
            name = self.symbol(scalar) or ""
            if scalar in strides:
                verb, given = self.primitive("stride"), f"given_{name}"
                lines.append(f"    {name} = {verb}({given})")
                name = given
            parameters.append(name)
            types.append("int64")
            kinds.append("i64")
        if has_many_functions(kernel.body):
            lines.append(f"    {self.primitive('functions_apart')}()")
        lines += [f"    {self._declared(array)}" for array in kernel.arrays]
        # Nothing is left where an axis is known to be empty.
        inside = self.block(kernel.body, 2) or ["        pass"]
        lines += [*self._pieces(), *inside]
        if "store_line" in self.used:
            lines.append(f"    {self.primitive('settle')}()")
        code = [
            "from nfuser.codegen.primitives.cpu import (",
            *(f"    {name}," for name in sorted(self.used)),
            ")",
            "",
            "",
            f"def {kernel.name}(start, stop, {', '.join(parameters)}):",
            *lines,
        ]
        signature = f"void({', '.join(['int64', 'int64', *types])})"
        text = "\n".join(code) + "\n"
        header = f"{self.comment('the CPU')}# launched as {signature}\n"
        return Source(kernel, header, text, signature, kinds)

    def _pieces(self) -> list[str]:
        """Return the loop over the caller's range: rows, or parts of each row."""
        names = [name for _, name in self.kernel.bound]
        if len(names) < 2:
            return [f"    for {names[0] if names else '_'} in range(start, stop):"]
        row, part = names
        parts = self.plain(self.kernel.bound[1][0].extent)
        return [
            "    for piece in range(start, stop):",
            f"        {row} = {self.primitive('udiv')}(piece, {parts})",
            f"        {part} = {self.primitive('urem')}(piece, {parts})",
        ]

    def type_name(self, dtype: DType) -> str:
        return self.primitive("boolean" if dtype.is_bool else str(dtype))

    def scalar(self, x: Scalar) -> str:
        return self.plain(x)

    def plain(self, x: Scalar) -> str:
        """Render an index, from the longest sum in it that has a name."""
        terms = sc.terms_of(x).items()
        sums = [s for s in self._named if isinstance(s, sc.Poly)]
        within = [s for s in sums if dict(s.terms).items() <= terms]
        if x in self._named or not within:
            return super().plain(x)
        base = max(within, key=lambda s: len(s.terms))
        rest = super().plain(x - base)
        sign, rest = ("-", rest[1:]) if rest.startswith("-") else ("+", rest)
        return f"{self._named[base]} {sign} {rest}"

    def division(self, x: Binary, lhs: str, rhs: str) -> str:
        match x.op:
            case Op.FLOORDIV | Op.MOD:
                verb = self.primitive("udiv" if x.op is Op.FLOORDIV else "urem")
                return f"{verb}({lhs}, {rhs})"
            case Op.MIN | Op.MAX:
                return f"{self.primitive(f'{x.op.value}imum')}({lhs}, {rhs})"
            case _:
                return f"({lhs} {x.op.value} {rhs})"

    def element(self, array: Array, index: Scalar) -> str:
        verb = self.primitive("load_bool" if array.dtype.is_bool else "load")
        return f"{verb}({self.array(array)}, {self.plain(index)})"

    def set_element(self, array: Array, index: Scalar, value: str) -> str:
        verb = self.primitive("store_bool" if array.dtype.is_bool else "store")
        return f"{verb}({self.array(array)}, {self.plain(index)}, {value})"

    def loop(self, stmt: For, depth: int) -> list[str]:
        pad = self.indent * depth
        name = self.symbol(stmt.index)
        head = f"{pad}for {name} in range({self.plain(stmt.stop)}):"
        body = self.block(stmt.body, depth + 1)
        inner = pad + self.indent
        if stmt.interleave:
            body.insert(0, f"{inner}{self.primitive('interleave')}({stmt.interleave})")
        if stmt.going is not None:
            body.insert(0, f"{inner}if {self.var(stmt.going)} == 0: break")
        if stmt.narrow:
            body.insert(0, f"{inner}{self.primitive('lanes_of_32')}()")
        if stmt.rolled:
            body.insert(0, f"{inner}{self.primitive('rolled')}()")
        return [head, *body]

    def _declared(self, array: Array) -> str:
        kind = "u8" if array.dtype.is_bool else str(array.dtype)
        stack = self.primitive(f"stack_{kind}")
        return f"{self.array(array)} = {stack}({array.size})"

    def own_statement(self, stmt: OwnStmt) -> list[str]:
        match stmt:
            case DrawPacket(array, at, _, key, call):
                verb = self.primitive(f"draw_block_{array.dtype.bits}")
                given = ", ".join(map(self.value, (block_of(stmt), key, call)))
                return [f"{verb}({self.array(array)}, {self.plain(at)}, {given})"]
            case FindLine(var, buffer, index, most):
                place = f"{self.buffer(buffer)}, {self.plain(index)}"
                place += f", {self.plain(most)}"
                return [f"{self.var(var)} = {self.primitive('up_to_line')}({place})"]
            case FindFirst(var, source, count, wanted):
                given = f"{self.plain(count)}, {self.value(wanted)}"
                return [f"{self.var(var)} = {self._first_like(source)}, {given})"]
            case StoreLine(buffer, index, array):
                place = f"{self.buffer(buffer)}, {self.plain(index)}"
                line = f"{self.array(array)}, {array.size}"
                return [f"{self.primitive('store_line')}({place}, {line})"]
            case Fetch(buffer, index, level):
                place = f"{self.buffer(buffer)}, {self.plain(index)}"
                return [f"{self.primitive('fetch')}({place}, {level})"]
            case TakeTicket(var, buffer, index):
                place = f"{self.buffer(buffer)}, {self.plain(index)}"
                return [f"{self.var(var)} = {self.primitive('take_ticket')}({place})"]
            case _:
                message = f"a CPU kernel has no {type(stmt).__name__}"
                raise VerifyError(message)

    def _first_like(self, source: Load | Element) -> str:
        """Return the call of what searches from ``source`` on, as far as its place."""
        match source:
            case Load(buffer, index):
                name, dtype = self.buffer(buffer), buffer.dtype
            case Element(array, index):
                name, dtype = self.array(array), array.dtype
        verb = self.primitive(self.access("first_like", dtype))
        return f"{verb}({name}, {self.plain(index)}"


def _storage(dtype: DType) -> str:
    if dtype.is_bool:
        return "uint8"
    return "uint16" if dtype.is_half else _numba_name(dtype)


def _numba_name(dtype: DType) -> str:
    if dtype.is_bool:
        return "boolean"
    stem = {"i": "int", "u": "uint", "f": "float"}[dtype.kind]
    return f"{stem}{dtype.bits}"
