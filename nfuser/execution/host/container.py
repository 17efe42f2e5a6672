# SPDX-License-Identifier: Apache-2.0
"""``nfuser.HostIrContainer``: a host program built statement by statement."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
import nfuser.execution.host.ir.rules as rules
import nfuser.execution.host.ir.statements as st
from nfuser.base.debug import dump
from nfuser.compiler.dtypes import DType, as_dtype
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.tensor import TensorView, tensor
from nfuser.compiler.trace.source_line import current_line
from nfuser.errors import ArgumentError, DTypeError, ShapeError
from nfuser.execution.host.ir.host_ir import HostProgram, owners
from nfuser.execution.host.ir.statements import Input
from nfuser.execution.host.ir.verify import verify
from nfuser.execution.host.run.callee import result_forms
from nfuser.execution.host.run.launched_views import take_view

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from contextlib import AbstractContextManager

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.execution.host.ir.rules import Form
    from nfuser.execution.host.ir.statements import (
        Event,
        HostStream,
        Operand,
        Statement,
    )


class HostIrContainer:
    """Writes a `HostProgram`: each method adds a statement and gives its result.

    ``out`` is a tensor that has memory already; the statement then writes there.

    >>> import numpy as np
    >>> import nfuser
    >>> hc = HostIrContainer("total")
    >>> x = hc.define_tensor([-1, 3])
    >>> total = hc.binary("multiply", hc.row(x, 0), 0.0)
    >>> with hc.loop(x.shape[0]) as i:
    ...     _ = hc.binary("add", total, hc.row(x, i), out=total)
    >>> hc.add_output(total)
    >>> evaluator = nfuser.HostIrEvaluator(hc.program())
    >>> evaluator.run([np.ones((5, 3), np.float32)])
    [array([5., 5., 5.], dtype=float32)]
    """

    def __init__(self, name: str = "host") -> None:
        self.name = name
        self._inputs: list[Input] = []
        self._names: set[str] = set()  # of these
        self._outputs: list[TensorView] = []
        self._aliases: dict[TensorView, TensorView] = {}
        self._blocks: list[list[Statement]] = [[]]
        self._loops = 0

    # -- inputs and outputs --------------------------------------------------

    def define_tensor(
        self, shape: Sequence[int], dtype: Any = DType.F32, name: str | None = None
    ) -> TensorView:
        """Add an array to the inputs; -1 is any size."""
        slot = len(self._inputs)
        extents = [
            scalar_symbols.size(slot, k) if n == -1 else n for k, n in enumerate(shape)
        ]
        found = dtype.value if isinstance(getattr(dtype, "value", 0), DType) else dtype
        given = tensor(extents, as_dtype(found), current_line())
        arrays = sum(isinstance(x.value, TensorView) for x in self._inputs)
        self._add_input(name, "T", arrays, given)
        return given

    def define_integer(self, name: str | None = None) -> Scalar:
        """Add an integer, 0 or larger, to the inputs."""
        slot = len(self._inputs)
        given = scalar_symbols.scalar_input(slot)
        self._add_input(name, "n", slot, given)
        return given

    def _add_input(
        self, name: str | None, stem: str, number: int, value: TensorView | Scalar
    ) -> None:
        """Add an input, by default called ``stem`` with the first free number."""
        if name in self._names:
            message = f"an input is called {name} already"
            raise ArgumentError(message)
        free = (f"{stem}{k}" for k in count(number))
        name = name or next(x for x in free if x not in self._names)
        self._names.add(name)
        self._inputs.append(Input(name, value))

    def add_output(
        self, output: TensorView, alias_input: TensorView | None = None
    ) -> None:
        """Return ``output`` next; with ``alias_input``, in the memory of that input.

        What a launch only looks at otherwise, in another shape, is a view then.
        """
        self._outputs.append(output)
        if alias_input is not None:
            self.alias(output, alias_input)

    def alias(self, alias: TensorView, owner: TensorView) -> None:
        """Let ``alias`` use the memory of ``owner``, and have none of its own."""
        for given in (alias, owner):
            _check_tensor(given)
        if any(x.value is alias for x in self._inputs):
            message = "Inputs cannot be aliased: the caller gives their memory"
            raise ArgumentError(message)
        if alias in self._aliases:
            message = "the tensor is an alias already"
            raise ArgumentError(message)
        if alias.dtype is not owner.dtype:
            message = f"{alias.dtype} cannot use the memory of {owner.dtype}"
            raise DTypeError(message)
        if self._became_view(alias, owner):
            return
        if not rules.fits(alias.shape, owner.shape):
            message = "an alias has the shape of the tensor whose memory it uses"
            raise ShapeError(message)
        owners(self._aliases | {alias: owner})
        self._aliases[alias] = owner

    def _became_view(self, alias: TensorView, owner: TensorView) -> bool:
        """Let a launched view of ``owner`` be one; tell whether that says it all.

        One of the same shape is written in place, unless it is the same elements.
        """
        body = self._blocks[-1]
        makers = [stmt for stmt in body if alias in st.writes(stmt)]
        if len(makers) != 1 or not isinstance(makers[0], st.Launch):
            return False
        taken = take_view(makers[0], alias, owner)
        is_view = taken is not None and any(alias in st.writes(s) for s in taken)
        if taken is None or (is_view and rules.fits(alias.shape, owner.shape)):
            return False
        at = body.index(makers[0])
        body[at : at + 1] = taken
        return is_view

    def program(self) -> HostProgram:
        """Return what was written, verified."""
        if len(self._blocks) > 1:
            message = "the program is asked for inside a loop or a condition"
            raise ArgumentError(message)
        made = HostProgram(
            self.name,
            tuple(self._inputs),
            tuple(self._outputs),
            tuple(self._blocks[0]),
            dict(self._aliases),
        )
        verify(made)
        if dump.wants("host"):
            dump.dump("host", str(made))
        return made

    # -- memory --------------------------------------------------------------

    def allocate(self, shape: Sequence[Scalar | int], dtype: Any) -> TensorView:
        """Make an array."""
        made = tensor(shape, as_dtype(dtype), current_line())
        self._add(st.Allocate(made, current_line()))
        return made

    def free(self, source: TensorView) -> None:
        """Let go of an array."""
        self._add(st.Free(source, current_line()))

    # -- operations ----------------------------------------------------------

    def launch(
        self,
        function: Any,
        *operands: Operand,
        out: TensorView | Sequence[TensorView] | None = None,
        like: Sequence[tuple[Sequence[Scalar | int], Any]] | None = None,
    ) -> Any:
        """Run a fusion, a definition, a fused function or another program.

        ``like`` gives the shape and dtype of each result of a function whose fusion is
        not known yet.
        """
        line = current_line()
        given = tuple(operands)
        if like is not None:
            forms: list[Form] = [
                (tuple(sc.as_scalar(n) for n in shape), as_dtype(dtype))
                for shape, dtype in like
            ]
        else:
            forms = result_forms(function, given)
        outs = [out] if isinstance(out, TensorView) else list(out or [])
        if outs and len(outs) != len(forms):
            message = f"launch: expected {len(forms)} outputs, found {len(outs)}"
            raise ArgumentError(message)
        pairs = zip(forms, outs or [None] * len(forms), strict=True)
        made = tuple(rules.result("launch", form, o, line) for form, o in pairs)
        self._add(st.Launch(function, given, made, line))
        return made[0] if len(made) == 1 else made

    def set(self, source: TensorView, out: TensorView | None = None) -> TensorView:
        """Copy."""
        line = current_line()
        made = rules.result("set", (source.shape, source.dtype), out, line)
        return self._add(st.Set(source, made, line))

    def unary(
        self, name: str, source: TensorView, out: TensorView | None = None
    ) -> TensorView:
        """Apply NumPy's function ``name`` to a tensor."""
        line = current_line()
        made = rules.result(name, rules.pointwise(name, [source]), out, line)
        return self._add(st.UnaryOp(name, source, made, line))

    def binary(
        self, name: str, lhs: Operand, rhs: Operand, out: TensorView | None = None
    ) -> TensorView:
        """Apply NumPy's function ``name`` to two operands; one may be a number."""
        line = current_line()
        for x in (lhs, rhs):
            if isinstance(x, np.generic):  # its dtype would count in NumPy
                message = f"{name}: expected a tensor or Python's number, found {x!r}"
                raise ArgumentError(message)
        made = rules.result(name, rules.pointwise(name, [lhs, rhs]), out, line)
        return self._add(st.BinaryOp(name, lhs, rhs, made, line))

    def reduce(
        self,
        name: str,
        source: TensorView,
        axes: int | Sequence[int],
        out: TensorView | None = None,
    ) -> TensorView:
        """Fold ``axes`` with sum, prod, max, min, any or all."""
        line = current_line()
        listed = (axes,) if isinstance(axes, int) else tuple(axes)
        made = rules.result(name, rules.reduce(name, source, listed), out, line)
        gone = tuple(rules.axis_of(a, source.ndim, name) for a in listed)
        return self._add(st.ReductionOp(name, source, gone, made, line))

    def matmul(
        self, lhs: TensorView, rhs: TensorView, out: TensorView | None = None
    ) -> TensorView:
        """Multiply matrices as NumPy does."""
        line = current_line()
        made = rules.result("matmul", rules.matmul(lhs, rhs), out, line)
        return self._add(st.MatmulOp(lhs, rhs, made, line))

    # -- views ---------------------------------------------------------------

    def select(
        self,
        source: TensorView,
        axis: int,
        index: Scalar | int,
        out: TensorView | None = None,
    ) -> TensorView:
        """Take the elements at ``index`` along ``axis``."""
        line = current_line()
        made = rules.result("select", rules.select(source, axis), out, line)
        axis = rules.axis_of(axis, source.ndim, "select")
        return self._add(st.SelectOp(source, axis, sc.as_scalar(index), made, line))

    def alias_select(
        self, source: TensorView, axis: int, index: Scalar | int
    ) -> TensorView:
        """Return the memory at ``index`` along ``axis``, to be read or written."""
        line = current_line()
        made = rules.result("alias_select", rules.select(source, axis), None, line)
        axis = rules.axis_of(axis, source.ndim, "alias_select")
        return self._add(st.AliasSelect(source, axis, sc.as_scalar(index), made, line))

    def row(self, source: TensorView, index: Scalar | int) -> TensorView:
        """Take the elements at ``index`` along the first axis."""
        return self.select(source, 0, index)

    def slice(
        self,
        source: TensorView,
        starts: Sequence[Scalar | int],
        stops: Sequence[Scalar | int],
        steps: Sequence[int] | None = None,
        out: TensorView | None = None,
    ) -> TensorView:
        """Take a span of each axis: ``0 <= start <= stop <= extent``."""
        line = current_line()
        first = tuple(sc.as_scalar(x) for x in starts)
        last = tuple(sc.as_scalar(x) for x in stops)
        jumps = tuple(steps or [1] * source.ndim)
        made = rules.result(
            "slice", rules.slices(source, first, last, jumps), out, line
        )
        return self._add(st.SliceOp(source, first, last, jumps, made, line))

    def permute(
        self, source: TensorView, order: Sequence[int], out: TensorView | None = None
    ) -> TensorView:
        """Reorder the axes."""
        line = current_line()
        made = rules.result("permute", rules.permute(source, order), out, line)
        return self._add(st.PermuteOp(source, tuple(order), made, line))

    def reshape(
        self,
        source: TensorView,
        shape: Sequence[Scalar | int],
        out: TensorView | None = None,
    ) -> TensorView:
        """Lay the same elements over other axes."""
        line = current_line()
        extents = tuple(sc.as_scalar(n) for n in shape)
        if any(isinstance(n, sc.Const) and n.value < 0 for n in extents):
            message = "reshape: sizes are 0 or more; a -1 has to be spelled out"
            raise ShapeError(message)
        made = rules.result("reshape", (extents, source.dtype), out, line)
        return self._add(st.ReshapeOp(source, made, line))

    # -- control -------------------------------------------------------------

    def loop(
        self, start: Scalar | int, stop: Scalar | int | None = None, step: int = 1
    ) -> AbstractContextManager[Scalar]:
        """Repeat what is added inside for each index; none may be negative."""
        first, last = (0, start) if stop is None else (start, stop)
        first, last = sc.as_scalar(first), sc.as_scalar(last)
        bound = last if step > 0 else first + 1
        index = scalar_symbols.loop_index(self._loops, bound)
        self._loops += 1
        return self._in_loop(st.ForLoop(index, first, last, step, (), current_line()))

    @contextmanager
    def _in_loop(self, loop: st.ForLoop) -> Generator[Scalar]:
        with self._block() as body:
            yield loop.index
        self._add(replace(loop, body=tuple(body)))

    def when(self, condition: Scalar | int) -> AbstractContextManager[None]:
        """Do what is added inside where ``condition`` is not 0."""
        made = st.IfThenElse(sc.as_scalar(condition), (), (), current_line())
        return self._in_branch(made)

    @contextmanager
    def _in_branch(self, branch: st.IfThenElse) -> Generator[None]:
        with self._block() as body:
            yield
        self._add(replace(branch, body=tuple(body)))

    @contextmanager
    def otherwise(self) -> Generator[None]:
        """Do what is added inside where the condition just before is 0."""
        last = self._blocks[-1][-1] if self._blocks[-1] else None
        if not isinstance(last, st.IfThenElse) or last.orelse:
            message = "otherwise follows when"
            raise ArgumentError(message)
        with self._block() as orelse:
            yield
        self._blocks[-1][-1] = replace(last, orelse=tuple(orelse))

    @contextmanager
    def _block(self) -> Generator[list[Statement]]:
        self._blocks.append([])
        try:
            yield self._blocks[-1]
        finally:
            self._blocks.pop()

    # -- streams -------------------------------------------------------------

    def stream(self, index: Scalar | int) -> HostStream:
        """Return stream ``index`` of the evaluator's own, counted round."""
        return st.HostStream(sc.as_scalar(index) % rules.STREAMS)

    def get_stream(self) -> HostStream:
        """Return the stream that is current when the program gets here."""
        made = st.HostStream()
        self._add(st.GetStream(made, current_line()))
        return made

    def set_stream(self, stream: HostStream) -> None:
        """Run what follows on ``stream``."""
        self._add(st.SetStream(stream, current_line()))

    def synchronize(self, stream: HostStream) -> None:
        """Let the current stream wait for ``stream``."""
        self._add(st.Synchronize(stream, current_line()))

    def record(self) -> Event:
        """Mark this point of the current stream."""
        made = st.Event()
        self._add(st.RecordEvent(made, current_line()))
        return made

    def wait(self, event: Event) -> None:
        """Let the current stream wait for ``event``."""
        self._add(st.Wait(event, current_line()))

    # -- ranks ---------------------------------------------------------------

    def communicate(
        self,
        kind: str,
        source: TensorView,
        axes: Sequence[int],
        shape: Sequence[Scalar | int],
        ends: Sequence[int] = (),
    ) -> TensorView:
        """Exchange ``source`` with the other ranks; each gets ``shape``.

        ``ends`` are the ranks that have all, or get it: of a broadcast, the first.
        """
        line = current_line()
        rules.exchange(kind, source, axes, ends, None)
        made = tensor(shape, source.dtype, line)
        return self._add(
            st.Communicate(kind, source, tuple(axes), made, line, tuple(ends))
        )

    def _add(self, stmt: Statement) -> Any:
        self._blocks[-1].append(stmt)
        results = st.writes(stmt)
        return results[0] if len(results) == 1 else None


def _check_tensor(given: object) -> None:
    if not isinstance(given, TensorView):
        message = f"pass tensors of this program: found {type(given).__name__}"
        raise ArgumentError(message)
