# SPDX-License-Identifier: Apache-2.0
"""Statements as text; names depend on the program alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, assert_never

import nfuser.execution.host.ir.statements as st
from nfuser.compiler.ir.tensor import TensorView
from nfuser.compiler.ir.text import Names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.execution.host.ir.statements import (
        Event,
        HostStream,
        Input,
        Operand,
        Statement,
    )


class HostPrinter:
    """Gives names to what one program names."""

    def __init__(self, inputs: Sequence[Input]) -> None:
        self.names = Names()
        self.tensor = self.names.tensor
        self._streams: dict[HostStream, str] = {}
        self._events: dict[Event, str] = {}
        self._typed: set[TensorView] = set()
        for given in inputs:
            self.input(given)

    def input(self, given: Input) -> str:
        """Render an input with its type, and its name where that is the user's."""
        if isinstance(given.value, TensorView):
            typed = self._typed_once(given.value)
            same = given.name == self.tensor(given.value)
            return typed if same else f"{given.name} = {typed}"
        return f"{given.name} = {self.names.scalar(given.value)}"

    def block(self, body: Sequence[Statement], indent: str) -> list[str]:
        """Render statements, one a line."""
        lines: list[str] = []
        for stmt in body:
            where = (
                f"  # {Path(stmt.line.file).name}:{stmt.line.line}" if stmt.line else ""
            )
            lines.append(f"{indent}{self.statement(stmt)}{where}")
            inner = st.blocks(stmt)
            lines += self.block(inner[0], f"{indent}  ") if inner else []
            if len(inner) > 1 and inner[1]:
                lines += [f"{indent}else:", *self.block(inner[1], f"{indent}  ")]
        return lines

    def statement(self, stmt: Statement) -> str:
        """Render the first line of ``stmt``."""
        right = self._right(stmt)
        left = ", ".join(self._result(t) for t in st.writes(stmt))
        return f"{left} = {right}" if left else right

    def _result(self, tensor: TensorView) -> str:
        if tensor in self._typed:
            return self.tensor(tensor)
        return self._typed_once(tensor)

    def _typed_once(self, tensor: TensorView) -> str:
        self._typed.add(tensor)
        extents = ", ".join(self.names.scalar(x) for x in tensor.shape)
        return f"{self.tensor(tensor)}: {tensor.dtype}[{extents}]"

    def _right(self, stmt: Statement) -> str:
        match stmt:
            case st.Allocate():
                return "allocate"
            case st.Free(source):
                return f"free {self.tensor(source)}"
            case st.ForLoop(index, start, stop, step):
                word = "parallel for" if stmt.parallel else "for"
                ends = [start, stop] if self._is_ranged(stmt) else [stop]
                listed = ", ".join(self.names.scalar(x) for x in ends)
                jump = f", {step}" if step != 1 else ""
                return f"{word} {self.names.scalar(index)} in range({listed}{jump}):"
            case st.IfThenElse(condition):
                return f"if {self.names.scalar(condition)}:"
            case st.GetStream() | st.SetStream() | st.Synchronize():
                return self._on_stream(stmt)
            case st.RecordEvent(event):
                return f"{self._event(event)} = record"
            case st.Wait(event):
                return f"wait {self._event(event)}"
            case _:
                return self._computed(stmt)

    def _is_ranged(self, loop: st.ForLoop) -> bool:
        return loop.step != 1 or self.names.scalar(loop.start) != "0"

    def _on_stream(self, stmt: st.GetStream | st.SetStream | st.Synchronize) -> str:
        match stmt:
            case st.GetStream(stream):
                return f"{self._stream(stream)} = get_stream"
            case st.SetStream(stream):
                return f"set_stream {self._stream(stream)}"
            case st.Synchronize(stream):
                return f"synchronize {self._stream(stream)}"
            case _:
                assert_never(stmt)

    def _computed(self, stmt: st.Compute | st.View | st.Launch) -> str:
        match stmt:
            case st.Launch(function, operands):
                given = ", ".join(self.operand(x) for x in operands)
                return f"launch {function_name(function)}({given})"
            case st.Set(source):
                return f"set({self.tensor(source)})"
            case st.UnaryOp(name, source):
                return f"{name}({self.tensor(source)})"
            case st.BinaryOp(name, lhs, rhs):
                return f"{name}({self.operand(lhs)}, {self.operand(rhs)})"
            case st.ReductionOp(name, source, axes):
                return f"{name}({self.tensor(source)}, axes={axes})"
            case st.MatmulOp(lhs, rhs):
                return f"matmul({self.tensor(lhs)}, {self.tensor(rhs)})"
            case st.Communicate():
                return self._exchange(stmt)
            case _:
                return self._view(stmt)

    def _exchange(self, stmt: st.Communicate) -> str:
        words = [self.tensor(stmt.source)]
        words += [f"axes={stmt.axes}"] if stmt.axes or not stmt.ends else []
        if len(stmt.ends) > 1:
            words.append(f"ranks={stmt.ends}")
        elif stmt.ends:
            words.append(f"rank={stmt.ends[0]}")
        if len(stmt.along) < len(stmt.mesh):
            words.append(f"along={stmt.along} of {'x'.join(map(str, stmt.mesh))}")
        return f"{stmt.kind}({', '.join(words)})"

    def _view(self, stmt: st.View) -> str:
        source = self.tensor(stmt.source)
        match stmt:
            case st.SelectOp(_, axis, index) | st.AliasSelect(_, axis, index):
                verb = "alias_select" if isinstance(stmt, st.AliasSelect) else "select"
                return (
                    f"{verb}({source}, axis={axis}, index={self.names.scalar(index)})"
                )
            case st.SliceOp(_, starts, stops, steps):
                scalar = self.names.scalar
                spans = (
                    f"{scalar(a)}:{scalar(b)}" + (f":{c}" if c != 1 else "")
                    for a, b, c in zip(starts, stops, steps, strict=True)
                )
                return f"slice({source}[{', '.join(spans)}])"
            case st.PermuteOp(_, order):
                return f"permute({source}, {order})"
            case st.ReshapeOp():
                return f"reshape({source})" + (" in place" if stmt.shares else "")
            case _:
                assert_never(stmt)

    def operand(self, x: Operand) -> str:
        """Render a tensor, an integer expression or a number."""
        if isinstance(x, TensorView):
            return self.tensor(x)
        if isinstance(x, bool | int | float | complex):
            return repr(x)
        return self.names.scalar(x)

    def _stream(self, stream: HostStream) -> str:
        if stream.index is not None:
            return f"stream[{self.names.scalar(stream.index)}]"
        return self._streams.setdefault(stream, f"stream{len(self._streams)}")

    def _event(self, event: Event) -> str:
        return self._events.setdefault(event, f"event{len(self._events)}")


def function_name(function: object) -> str:
    """Return what a program calls ``function``."""
    for name in ("name", "__name__"):
        if isinstance(found := getattr(function, name, None), str):
            return found
    inner = getattr(function, "fusion", None)
    return getattr(inner, "name", type(function).__name__)
