# SPDX-License-Identifier: Apache-2.0
"""Run operations slice by slice on several streams, where an axis is bound to them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
import nfuser.execution.host.ir.statements as st
from nfuser.compiler.domains.slices import reshaped_axis
from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.functions import minimum
from nfuser.compiler.ir.tensor import TensorView, tensor
from nfuser.errors import ArgumentError, UnsupportedError
from nfuser.execution.host.ir.host_ir import HostProgram
from nfuser.execution.host.ir.memory import MemoryOwners
from nfuser.execution.host.ir.rules import STREAMS
from nfuser.execution.host.ir.verify import verify
from nfuser.execution.host.passes.stream_axes import StreamedAxis, source_cuts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.execution.host.ir.statements import Statement


def lower_streams(
    program: HostProgram, bindings: Mapping[TensorView, int]
) -> HostProgram:
    """Return ``program`` with a loop over each axis that ``bindings`` gives to streams.

    Iteration i runs on stream ``i % streams``, which waits for the caller's; that one
    waits for it in the end. The loop is parallel: iterations wait for each other only
    where they share a stream. Operations one after another over the same axis share
    a loop if each reads, of what the others gave, the slice of its own iteration. What
    is used in one loop only has memory for ``streams`` slices.
    """
    if not bindings:
        return program
    program = _with_copies(program, bindings)
    lowered = HostProgram(
        program.name,
        program.inputs,
        program.outputs,
        tuple(_Lowering(program, bindings).run()),
        program.aliases,
    )
    verify(lowered)
    return lowered


def _with_copies(
    program: HostProgram, bindings: Mapping[TensorView, int]
) -> HostProgram:
    """Return ``program`` with copies of the reshapes whose stream axis stays as it is.

    A reshape is a view, which has no slices of its own; what copies it has.
    """
    body: list[Statement] = []
    for stmt in program.body:
        axis = bindings.get(stmt.result) if isinstance(stmt, st.ReshapeOp) else None
        if not isinstance(stmt, st.ReshapeOp) or axis is None or not _keeps(stmt, axis):
            body.append(stmt)
            continue
        view = tensor(stmt.result.shape, stmt.result.dtype, stmt.line)
        body += [replace(stmt, result=view), st.Set(view, stmt.result, stmt.line)]
    return replace(program, body=tuple(body))


def _keeps(stmt: st.ReshapeOp, axis: int) -> bool:
    """Tell whether a slice along ``axis`` of the result is one of the source."""
    place = axis % max(stmt.result.ndim, 1)
    found = reshaped_axis(stmt.result.shape, stmt.source.shape, place)
    return found is not None


@node
class _Sliced:
    """A statement to run slice by slice: along which axes of what it reads and gives.

    ``keeps`` says that slices keep the axis, with extent 1.
    """

    stmt: st.Compute | st.Launch
    axes: Mapping[TensorView, int]  # of the results
    extent: Scalar
    cuts: tuple[StreamedAxis, ...]  # of the tensors that the statement reads
    keeps: bool


class _Group:
    """Statements that share a loop: what they give and read, and whose memory."""

    def __init__(self, memory: MemoryOwners) -> None:
        self.sliced: list[_Sliced] = []
        self.axes: dict[TensorView, int] = {}
        self.written: set[TensorView] = set()
        self.read: set[TensorView] = set()
        self._memory = memory

    def add(self, new: _Sliced) -> None:
        """Add a statement to the loop."""
        self.sliced.append(new)
        self.axes |= new.axes
        self.written.update(self._memory.root(t) for t in new.axes)
        self.read.update(self._memory.root(t) for t in st.reads(new.stmt))

    def takes(self, new: _Sliced) -> bool:
        """Tell whether ``new`` needs of each result before it its own slice only."""
        if not self.sliced or self.sliced[0].extent is not new.extent:
            return False
        root = self._memory.root
        for source, cut in zip(st.reads(new.stmt), new.cuts, strict=True):
            if root(source) in self.written and self.axes.get(source, -1) != cut.axis:
                return False
        # What another slice still reads may not be written by this one.
        made = {root(t) for t in new.axes}
        return made.isdisjoint(self.read) and made.isdisjoint(self.written)


class _Lowering:
    def __init__(
        self, program: HostProgram, bindings: Mapping[TensorView, int]
    ) -> None:
        self.program = program
        self.memory = MemoryOwners(program)
        self.owner = self.memory.owner
        self.loops = sum(isinstance(s, st.ForLoop) for s in st.walk(program.body))
        self.given = {
            x.value for x in program.inputs if isinstance(x.value, TensorView)
        }
        self._check(bindings)
        self.bindings = {t: axis % t.ndim for t, axis in bindings.items()}

    def _check(self, bindings: Mapping[TensorView, int]) -> None:
        for tensor_, axis in bindings.items():
            if tensor_ in self.given:
                message = (
                    "an input cannot be parallel over streams: its memory is there "
                    "already; bind the axis of what is computed from it"
                )
                raise ArgumentError(message)
            if not -tensor_.ndim <= axis < tensor_.ndim:
                message = f"axis {axis} of a tensor of {tensor_.ndim} axes"
                raise ArgumentError(message)
        made = {t for s in self.program.body for t in st.writes(s)}
        if any(t not in made for t in bindings):
            message = (
                "only tensors that the program gives outside of loops have stream axes"
            )
            raise ArgumentError(message)

    def run(self) -> list[Statement]:
        """Return the new body."""
        body: list[Statement] = []
        group = _Group(self.memory)
        held = set(self.given)  # what has memory before the group
        held |= {s.result for s in self.program.body if isinstance(s, st.Allocate)}
        for stmt in self.program.body:
            if isinstance(stmt, st.Allocate):  # it may as well happen before the loop
                body.append(stmt)
                continue
            sliced = self._sliced(stmt)
            if sliced is not None and group.takes(sliced):
                group.add(sliced)
                continue
            body += self._loop(group.sliced, held)
            held.update(group.axes)
            group = _Group(self.memory)
            if sliced is None:
                body.append(stmt)
                held.update(st.writes(stmt))
            else:
                group.add(sliced)
        return body + self._loop(group.sliced, held)

    def _sliced(self, stmt: Statement) -> _Sliced | None:
        bound = [t for t in st.writes(stmt) if t in self.bindings]
        if not bound:
            return None
        if not isinstance(stmt, _SLICED):
            how = (
                "a split or merge of a stream axis has no slices"
                if isinstance(stmt, st.ReshapeOp)
                else "its result has no axis that could be bound to streams"
            )
            raise _refusal(stmt, how)
        if len(bound) < len(st.writes(stmt)):
            raise _refusal(stmt, "all of its results have a stream axis, or none has")
        axes = {t: self.bindings[t] for t in bound}
        extent, *others = (t.shape[axis] for t, axis in axes.items())
        if any(x is not extent for x in others):
            raise _refusal(stmt, "the stream axes of its results differ in size")
        cuts = tuple(source_cuts(stmt, axes))
        for source, cut in zip(st.reads(stmt), cuts, strict=True):
            if any(self._clash(source, cut, *pair) for pair in axes.items()):
                how = "a slice over streams may not write what other slices read"
                raise _refusal(stmt, how)
        keeps = isinstance(stmt, st.Launch)
        keeps |= isinstance(stmt, st.MatmulOp) and bound[0].ndim > 1
        return _Sliced(stmt, axes, extent, cuts, keeps)

    def _clash(
        self, source: TensorView, cut: StreamedAxis, result: TensorView, axis: int
    ) -> bool:
        """Tell whether a slice of ``result`` lies where another of ``source`` is."""
        if self.memory.root(source) is not self.memory.root(result):
            return False
        owner = self.owner.get(result, result)
        return self.owner.get(source, source) is not owner or cut.axis != axis

    # -- loops ---------------------------------------------------------------

    def _loop(
        self, group: Sequence[_Sliced], held: AbstractSet[TensorView]
    ) -> list[Statement]:
        if not group:
            return []
        line = group[0].stmt.line
        index = scalar_symbols.loop_index(self.loops, group[0].extent)
        self.loops += 1
        body: list[Statement] = []
        prologue: list[Statement] = []
        whole: dict[TensorView, TensorView] = {}  # what stands for an inner tensor
        slices: dict[tuple[TensorView, int, bool], TensorView] = {}
        inner = self._inner(group)
        results = [(s, *pair) for s in group for pair in s.axes.items()]
        for sliced, result, axis in results:
            if result in held or self.memory.root(result) in held:
                continue
            stored = _few(result, axis) if result in inner else result
            whole[result] = stored
            prologue.append(st.Allocate(stored, sliced.stmt.line))
        for sliced in group:
            body += self._slice(sliced, index, whole, slices, inner)
        caller, side = st.HostStream(), st.HostStream(index % STREAMS)
        framed: list[Statement] = [
            st.GetStream(caller, line),
            st.SetStream(side, line),
            st.Synchronize(caller, line),
            *body,
            st.SetStream(caller, line),
            st.Synchronize(side, line),
        ]
        first, last = sc.const(0), group[0].extent
        loop = st.ForLoop(index, first, last, 1, tuple(framed), line, parallel=True)
        return [*prologue, loop]

    def _inner(self, group: Sequence[_Sliced]) -> set[TensorView]:
        """Return the results that nothing outside of the loop reads."""
        own = {s.stmt for s in group}
        read = {
            t
            for s in st.walk(self.program.body)
            if s not in own
            for t in (*st.reads(s), *st.writes(s))
        }
        shared = {*self.program.aliases, *self.program.aliases.values()}
        kept = {*self.program.outputs, *read, *shared}
        return {t for s in group for t in s.axes if t not in kept}

    def _slice(
        self,
        sliced: _Sliced,
        index: Scalar,
        whole: Mapping[TensorView, TensorView],
        slices: dict[tuple[TensorView, int, bool], TensorView],
        inner: set[TensorView],
    ) -> list[Statement]:
        """Return the statements of one iteration."""
        stmt, made = sliced.stmt, list[Any]()

        def part(source: TensorView, axis: int, at: Scalar) -> TensorView:
            key = source, axis, sliced.keeps
            if key not in slices:
                cut = _cut(whole.get(source, source), axis, at, sliced.keeps, stmt)
                made.append(cut)
                slices[key] = cut.result
            return slices[key]

        def at(source: TensorView) -> Scalar:
            return index % STREAMS if source in inner else index

        new: list[TensorView] = []
        for source, cut in zip(st.reads(stmt), sliced.cuts, strict=True):
            if cut.axis is None:
                new.append(source)
            else:
                place = sc.const(0) if cut.is_broadcast else at(source)
                new.append(part(source, cut.axis, place))
        targets = [part(t, axis, at(t)) for t, axis in sliced.axes.items()]
        return [*made, _on_slices(sliced, new, targets)]


_SLICED = st.Set | st.UnaryOp | st.BinaryOp | st.ReductionOp | st.MatmulOp | st.Launch


def _refusal(stmt: Statement, how: str) -> UnsupportedError:
    return UnsupportedError(f"{type(stmt).__name__}: {how}{st.line_of(stmt)}")


def _few(result: TensorView, axis: int) -> TensorView:
    """Return a tensor of one slice for each stream."""
    shape = list(result.shape)
    shape[axis] = minimum(STREAMS, shape[axis])
    return tensor(shape, result.dtype, result.source)


def _cut(
    source: TensorView, axis: int, at: Scalar, keeps: bool, stmt: Statement
) -> st.AliasSelect | st.SliceOp:
    if not keeps:
        shape = [x for k, x in enumerate(source.shape) if k != axis]
        result = tensor(shape, source.dtype, stmt.line)
        return st.AliasSelect(source, axis, at, result, stmt.line)
    zero = sc.const(0)
    starts = tuple(at if k == axis else zero for k in range(source.ndim))
    stops = tuple(at + 1 if k == axis else x for k, x in enumerate(source.shape))
    extents = [sc.const(1) if k == axis else x for k, x in enumerate(source.shape)]
    result = tensor(extents, source.dtype, stmt.line)
    return st.SliceOp(source, starts, stops, (1,) * source.ndim, result, stmt.line)


def _on_slices(
    sliced: _Sliced, new: Sequence[TensorView], targets: Sequence[TensorView]
) -> st.Compute | st.Launch:
    """Return the statement reading ``new`` in place of the whole."""
    stmt, target = sliced.stmt, targets[0]
    match stmt:
        case st.Launch(_, operands):
            rest = iter(new)
            own = (next(rest) if isinstance(x, TensorView) else x for x in operands)
            return replace(stmt, operands=tuple(own), results=tuple(targets))
        case st.BinaryOp(_, lhs, rhs):
            rest = iter(new)
            left = next(rest) if isinstance(lhs, TensorView) else lhs
            right = next(rest) if isinstance(rhs, TensorView) else rhs
            return replace(stmt, lhs=left, rhs=right, result=target)
        case st.MatmulOp():
            return replace(stmt, lhs=new[0], rhs=new[1], result=target)
        case st.ReductionOp(_, _, axes):
            gone = sliced.cuts[0].axis
            assert gone is not None
            kept = tuple(a - (a > gone) for a in axes)
            return replace(stmt, source=new[0], axes=kept, result=target)
        case _:
            return replace(stmt, source=new[0], result=target)
