# SPDX-License-Identifier: Apache-2.0
"""Check a host program statement by statement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nfuser.execution.host.ir.rules as rules
import nfuser.execution.host.ir.statements as st
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.scalar import Knob, LoopIndex
from nfuser.compiler.ir.tensor import TensorView
from nfuser.errors import NfuserError, VerifyError
from nfuser.execution.host.ir.forms import forms_of
from nfuser.execution.host.ir.host_ir import owners
from nfuser.execution.host.ir.text import HostPrinter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.execution.host.ir.host_ir import HostProgram
    from nfuser.execution.host.ir.statements import Statement


def verify(program: HostProgram) -> None:
    """Raise `VerifyError`, which shows the statement, where ``program`` is wrong."""
    _Verifier(program).run()


class _Verifier:
    def __init__(self, program: HostProgram) -> None:
        self.program = program
        self.owner = owners(program.aliases)
        values = [x.value for x in program.inputs]
        self.inputs = {x for x in values if isinstance(x, TensorView)}
        self.known: set[Any] = set(self.inputs)
        self.freed: set[TensorView] = set()
        self.shares: dict[TensorView, TensorView] = {}  # views, by what they look at
        shapes = (x for t in self.inputs for x in t.shape)
        self.symbols = set(scalar_walk.symbols(shapes))
        self.symbols |= {x for x in values if not isinstance(x, TensorView)}

    def run(self) -> None:
        """Check all statements, then the outputs."""
        self._block(self.program.body)
        for output in self.program.outputs:
            problem = self._unknown(output)
            if problem:
                message = f"{self.program!r}: an output: {problem}"
                raise VerifyError(message)

    def _block(self, body: Sequence[Statement]) -> None:
        for stmt in body:
            problem = self._problem(stmt)
            if problem:
                text = HostPrinter(self.program.inputs).statement(stmt)
                message = f"{problem}\n  {text}{st.line_of(stmt)}"
                raise VerifyError(message)
            self._define(stmt)
            for block in st.blocks(stmt):
                self._inside(stmt, block)

    def _inside(self, stmt: Statement, block: Sequence[Statement]) -> None:
        """Check a block, whose definitions end with it."""
        known, symbols, freed = set(self.known), set(self.symbols), set(self.freed)
        if isinstance(stmt, st.ForLoop):
            self.symbols.add(stmt.index)
        self._block(block)
        gone = [t for t in self.freed - freed if t in known]
        if gone:
            message = f"{self.program!r}: a block frees what was made outside of it"
            raise VerifyError(message)
        self.known, self.symbols, self.freed = known, symbols, freed

    def _define(self, stmt: Statement) -> None:
        if isinstance(stmt, st.Free):
            self.freed.add(self._owner(stmt.source))
        elif isinstance(stmt, st.GetStream | st.RecordEvent):
            self.known.add(stmt.result)
        for tensor in st.writes(stmt):
            is_view = isinstance(
                stmt,
                st.SelectOp | st.AliasSelect | st.SliceOp | st.PermuteOp | st.ReshapeOp,
            )
            if is_view and tensor not in self.known:
                self.shares[tensor] = self._owner(st.reads(stmt)[0])
            self.known.add(tensor)

    def _owner(self, tensor: TensorView) -> TensorView:
        tensor = self.owner.get(tensor, tensor)
        while tensor in self.shares:
            tensor = self.shares[tensor]
        return tensor

    # -- problems ------------------------------------------------------------

    def _problem(self, stmt: Statement) -> str:
        for tensor in st.reads(stmt):
            if problem := self._unknown(tensor):
                return problem
        for tensor in st.writes(stmt):
            if tensor in self.inputs and not isinstance(stmt, _WRITERS):
                return "it gives a tensor that the caller passes"
            if self._owner(tensor) in self.freed:
                return "it writes what was freed"
            if problem := self._unbound(tensor.shape):
                return problem
        return self._own_problem(stmt) or self._form_problem(stmt)

    def _unknown(self, tensor: TensorView) -> str:
        if self._owner(tensor) in self.freed:
            return "it reads what was freed"
        if tensor in self.known or self.owner.get(tensor) in self.known:
            return ""
        return "it reads a tensor that nothing has given yet"

    def _unbound(self, scalars: Sequence[Scalar]) -> str:
        for symbol in scalar_walk.symbols(scalars):
            if isinstance(symbol, LoopIndex) and symbol not in self.symbols:
                return "it names the index of a loop that it is not in"
            if symbol not in self.symbols and not isinstance(symbol, Knob):
                return "it names a size or an integer that is no input's"
        return ""

    def _own_problem(self, stmt: Statement) -> str:
        match stmt:
            case st.Allocate(result):
                return "it has memory already" if result in self.known else ""
            case st.Free(source):
                given = self._owner(source) in self.inputs
                return "it frees what the caller owns" if given else ""
            case st.ForLoop(index, start, stop, step):
                if not isinstance(index, LoopIndex) or not step:
                    return "a loop needs an index, and a step that is not 0"
                return self._unbound([start, stop])
            case st.IfThenElse(condition):
                return self._unbound([condition])
            case st.SelectOp() | st.AliasSelect():
                return self._unbound([stmt.index])
            case st.SliceOp(_, starts, stops):
                return self._unbound([*starts, *stops])
            case st.Launch(_, operands):
                return self._unbound(st.scalars(operands))
            case st.BinaryOp(_, lhs, rhs):
                return self._unbound(st.scalars((lhs, rhs)))
            case _:
                return self._stream_problem(stmt)

    def _stream_problem(self, stmt: Statement) -> str:
        match stmt:
            case st.SetStream(stream) | st.Synchronize(stream):
                if stream.index is not None:
                    return self._unbound([stream.index])
                return "" if stream in self.known else "no statement got this stream"
            case st.Wait(event):
                return "" if event in self.known else "nothing recorded this event"
            case _:
                return ""

    def _form_problem(self, stmt: Statement) -> str:
        try:
            forms = forms_of(stmt)
        except NfuserError as error:
            return str(error)
        for tensor, form in zip(st.writes(stmt), forms, strict=False):
            shape, dtype = form
            if tensor.dtype is not dtype:
                return f"expected a result of {dtype}, found {tensor.dtype}"
            if not rules.fits(tensor.shape, shape):
                return "the result has another shape"
        return ""


_WRITERS = (
    st.Set,
    st.UnaryOp,
    st.BinaryOp,
    st.ReductionOp,
    st.MatmulOp,
    st.Launch,
    st.SelectOp,
    st.SliceOp,
    st.PermuteOp,
    st.ReshapeOp,
)  # may update an input in place, where the program says so
