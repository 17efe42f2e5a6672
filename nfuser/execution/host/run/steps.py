# SPDX-License-Identifier: Apache-2.0
"""One function a statement: what it does in a frame."""

# Arrays of several libraries have no common static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

import nfuser.execution.host.ir.rules as rules
import nfuser.execution.host.ir.statements as st
from nfuser.compiler.dtypes import as_dtype
from nfuser.compiler.ir.tensor import TensorView
from nfuser.errors import ArgumentError, DTypeError, MutationError, ShapeError
from nfuser.execution.host.ir.forms import forms_of
from nfuser.execution.host.mesh.mesh import peers
from nfuser.execution.host.run.arrays_of import share_memory
from nfuser.execution.host.run.frame import reader, shape_reader

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nfuser.execution.host.ir.memory import MemoryOwners
    from nfuser.execution.host.ir.overlap import Overlap
    from nfuser.execution.host.ir.statements import HostStream, Operand, Statement
    from nfuser.execution.host.run.frame import RunFrame

Step: TypeAlias = "Callable[[RunFrame], None]"
Call: TypeAlias = "Callable[[object, list[Any], list[Any]], list[Any]]"
Run: TypeAlias = "Callable[[Sequence[tuple[Statement, Step]], RunFrame], None]"


class Steps:
    """Makes the steps of one program.

    ``call`` runs what is launched, ``run`` the steps of a block, ``allocate`` gives
    memory, which goes back when nobody has it any more.
    """

    def __init__(
        self,
        overlap: Overlap,
        memory: MemoryOwners,
        call: Call,
        run: Run,
        allocate: Callable[[RunFrame, tuple[int, ...], TensorView], Any],
    ) -> None:
        self._overlap = overlap
        self._owner = memory.owner
        self._views = memory.views()
        self._call = call
        self._run = run
        self._allocate = allocate

    def block(self, body: Sequence[Statement]) -> list[tuple[Statement, Step]]:
        """Return the steps of ``body``."""
        return [(stmt, self._noted(stmt)) for stmt in body]

    def _noted(self, stmt: Statement) -> Step:
        """Return the step of ``stmt``, which on a device notes who used what."""
        step = self._step(stmt)
        listed = (*st.reads(stmt), *st.writes(stmt))
        if not listed or isinstance(stmt, st.Free):
            return step
        tensors = [self._key(t) for t in listed]

        def noted(frame: RunFrame) -> None:
            step(frame)
            if frame.library.device.is_cuda:
                frame.note(tensors)

        return noted

    def _key(self, tensor: TensorView) -> TensorView:
        return self._owner.get(tensor, tensor)

    def _step(self, stmt: Statement) -> Step:
        match stmt:
            case st.Allocate(result):
                return self._allocation(result)
            case st.Free(source):
                return partial(self._free, self._key(source))
            case st.Launch():
                return self._launch(stmt)
            case st.ForLoop():
                return self._loop(stmt)
            case st.IfThenElse(condition):
                ask = reader(condition)
                body, orelse = self.block(stmt.body), self.block(stmt.orelse)
                return lambda f: self._run(body if ask(f) else orelse, f)
            case st.GetStream() | st.SetStream() | st.Synchronize():
                return _on_stream(stmt)
            case st.RecordEvent(event):
                return lambda f: f.streams.__setitem__(event, f.library.record())
            case st.Wait(event):
                return lambda f: f.library.wait(f.streams[event])
            case (
                st.SelectOp()
                | st.AliasSelect()
                | st.SliceOp()
                | st.PermuteOp()
                | st.ReshapeOp()
            ):
                return self._view(stmt)
            case _:
                return self._computed(stmt)

    # -- memory --------------------------------------------------------------

    def _allocation(self, tensor: TensorView) -> Step:
        key, shape = self._key(tensor), shape_reader(tensor.shape)

        def step(frame: RunFrame) -> None:
            if key not in frame.arrays:
                frame.hold(key, self._allocate(frame, shape(frame), tensor))

        return step

    def _free(self, key: TensorView, frame: RunFrame) -> None:
        for view in self._views.get(key, ()):
            frame.drop(view)
        frame.drop(key)

    # -- what computes -------------------------------------------------------

    def _computed(self, stmt: st.Compute) -> Step:
        compute = self._compute(stmt)
        key, shape = self._key(stmt.result), shape_reader(stmt.result.shape)
        ((form, _),) = forms_of(stmt)
        given, reads_late = shape_reader(form), self._overlap.reads_late(stmt)

        def step(frame: RunFrame) -> None:
            out = frame.arrays.get(key)
            if out is not None:  # libraries would stretch the result, or the buffer
                _check_shape(out, given(frame))
                if reads_late(frame, out):
                    frame.library.copy(compute(frame, None), out)
                else:
                    compute(frame, out)
                return
            made = compute(frame, None)
            _check_shape(made, shape(frame))
            frame.hold(key, made)

        return step

    def _compute(self, stmt: st.Compute) -> Callable[[RunFrame, Any], Any]:
        result = stmt.result
        if isinstance(stmt, st.BinaryOp):
            operands = [self._operand(x) for x in (stmt.lhs, stmt.rhs)]
            types = rules.loop_types(stmt.name, (stmt.lhs, stmt.rhs))
            name = stmt.name
            return lambda f, out: f.library.compute(
                name, [x(f) for x in operands], types, out
            )
        if isinstance(stmt, st.MatmulOp):
            lhs, rhs = self._key(stmt.lhs), self._key(stmt.rhs)
            return lambda f, out: f.library.matmul(
                f.arrays[lhs], f.arrays[rhs], result.dtype, out
            )
        source = self._key(stmt.source)
        match stmt:
            case st.Set():
                return lambda f, out: f.library.copy(f.arrays[source], out)
            case st.UnaryOp(name):
                types = rules.loop_types(name, (stmt.source,))
                return lambda f, out: f.library.compute(
                    name, [f.arrays[source]], types, out
                )
            case st.ReductionOp(name, _, axes):
                return lambda f, out: f.library.reduce(
                    name, f.arrays[source], axes, result.dtype, out
                )
            case st.Communicate():
                return lambda f, out: _exchange(f, stmt, f.arrays[source], out)

    def _operand(self, x: Operand) -> Callable[[RunFrame], Any]:
        if isinstance(x, TensorView):
            key = self._key(x)
            return lambda frame: frame.arrays[key]
        if isinstance(x, bool | int | float | complex):
            return lambda frame: x
        return reader(x)

    def _launch(self, stmt: st.Launch) -> Step:
        operands = [self._operand(x) for x in stmt.operands]
        results = [(self._key(t), shape_reader(t.shape), t) for t in stmt.results]

        def step(frame: RunFrame) -> None:
            wanted = [shape(frame) for _, shape, _ in results]
            outs = [frame.arrays.get(key) for key, _, _ in results]
            for out, shape in zip(outs, wanted, strict=True):
                if out is not None:
                    _check_shape(out, shape)
            found = self._call(stmt.function, [x(frame) for x in operands], outs)
            if len(found) != len(results):
                message = f"expected {len(results)} results, found {len(found)}"
                raise ArgumentError(message)
            for k, (key, _, tensor) in enumerate(results):
                made, out = found[k], outs[k]
                if out is not None and out is made:
                    continue
                made = np.asarray(made) if isinstance(made, np.generic) else made
                _check_shape(made, wanted[k])
                _check_dtype(made, tensor)
                if out is None:
                    frame.hold(key, made)
                else:
                    frame.library.copy(made, out)

        return step

    # -- views ---------------------------------------------------------------

    def _view(self, stmt: st.View) -> Step:
        view = _viewer(stmt)
        source, key = self._key(stmt.source), self._key(stmt.result)
        shape = shape_reader(stmt.result.shape)
        reads_late = self._overlap.reads_late(stmt)

        def step(frame: RunFrame) -> None:
            made = view(frame, frame.arrays[source])
            _check_shape(made, shape(frame))
            out = frame.arrays.get(key)
            if out is None:
                frame.arrays[key] = made
                return
            if reads_late(frame, out):
                made = frame.library.copy(made, None)
            frame.library.copy(made, out)

        return step

    # -- control -------------------------------------------------------------

    def _loop(self, loop: st.ForLoop) -> Step:
        start, stop = reader(loop.start), reader(loop.stop)
        body = self.block(loop.body)
        inner = [self._key(t) for s in st.walk(loop.body) for t in st.writes(s)]
        own = list(dict.fromkeys(inner))

        def step(frame: RunFrame) -> None:
            fresh = [t for t in own if t not in frame.arrays]
            if loop.parallel:
                frame.enter()
            for index in range(start(frame), stop(frame), loop.step):
                frame.values[loop.index] = index
                self._run(body, frame)
                for tensor in fresh:
                    frame.drop(tensor)
            if loop.parallel:
                frame.finish()

        return step


def _viewer(stmt: st.View) -> Callable[[RunFrame, Any], Any]:
    match stmt:
        case st.SelectOp(_, axis, index) | st.AliasSelect(_, axis, index):
            lead, at = (slice(None),) * axis, reader(index)
            return lambda f, x: f.library.index(x, (*lead, at(f)))
        case st.SliceOp(_, starts, stops, steps):
            first, last = shape_reader(starts), shape_reader(stops)
            return lambda f, x: f.library.index(
                x, tuple(map(slice, first(f), last(f), steps))
            )
        case st.PermuteOp(_, order):
            return lambda f, x: f.library.permute(x, order)
        case st.ReshapeOp(_, result, _, shares):
            shape = shape_reader(result.shape)
            give = _reshaped_in_place if shares else _reshaped
            return lambda f, x: give(f, x, shape(f))


def _reshaped(frame: RunFrame, source: Any, shape: tuple[int, ...]) -> Any:
    return frame.library.reshape(source, shape)


def _reshaped_in_place(frame: RunFrame, source: Any, shape: tuple[int, ...]) -> Any:
    made = _reshaped(frame, source, shape)
    if prod(shape) and not share_memory(frame.library.library, made, source):
        message = (
            f"an alias was asked for, but {tuple(source.shape)} cannot be viewed as "
            f"{shape} without a copy; give a contiguous array, or ask for no alias"
        )
        raise MutationError(message)
    return made


def _on_stream(stmt: st.GetStream | st.SetStream | st.Synchronize) -> Step:
    if isinstance(stmt, st.GetStream):
        made = stmt.result
        return lambda f: f.streams.__setitem__(made, f.library.current())
    find = _stream_finder(stmt.stream)
    if isinstance(stmt, st.SetStream):
        return lambda f: None if f.is_serial else f.library.use(find(f))
    return lambda f: f.join(find(f))


def _stream_finder(stream: HostStream) -> Callable[[RunFrame], Any]:
    if stream.index is None:
        return lambda frame: frame.streams[stream]
    index = reader(stream.index)
    return lambda frame: frame.library.side(index(frame))


def _exchange(frame: RunFrame, stmt: st.Communicate, array: Any, out: Any) -> Any:
    ours = frame.communicator
    if ours is None:
        message = f"{stmt.kind}: the program exchanges data, and was run without ranks"
        raise ArgumentError(message)
    if stmt.mesh and prod(stmt.mesh) != ours.size:
        shape = "x".join(map(str, stmt.mesh))
        message = f"{stmt.kind}: a program for {shape} ranks was run by {ours.size}"
        raise ArgumentError(message)
    ranks = peers(stmt.mesh, stmt.along, ours.rank) if stmt.mesh else None
    made = ours.communicate(stmt.kind, array, stmt.axes, stmt.ends, ranks)
    return made if out is None else frame.library.copy(made, out)


def _check_shape(array: Any, wanted: tuple[int, ...]) -> None:
    if tuple(array.shape) != wanted:
        message = f"expected an array of shape {wanted}, found {tuple(array.shape)}"
        raise ShapeError(message)


def _check_dtype(array: Any, wanted: TensorView) -> None:
    if as_dtype(array.dtype) is not wanted.dtype:
        message = f"expected an array of {wanted.dtype}, found {array.dtype}"
        raise DTypeError(message)
