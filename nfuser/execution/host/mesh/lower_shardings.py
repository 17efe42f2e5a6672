# SPDX-License-Identifier: Apache-2.0
"""Turn a program into what each of several ranks runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import nfuser.compiler.ir.scalars.functions as scalar_functions
import nfuser.execution.host.ir.rules as rules
import nfuser.execution.host.ir.statements as st
from nfuser.compiler.ir.base import value
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.scalar import Const
from nfuser.compiler.ir.tensor import TensorView, tensor
from nfuser.compiler.segment.sharding import check_layouts
from nfuser.errors import ArgumentError, UnsupportedError
from nfuser.execution.host.ir.host_ir import HostProgram
from nfuser.execution.host.ir.verify import verify
from nfuser.execution.host.mesh.guard_owners import guard_owners
from nfuser.execution.host.mesh.merge_exchanges import merge_exchanges
from nfuser.execution.host.mesh.mesh import coordinate
from nfuser.execution.host.mesh.sharding import REPLICATED, Sharding, exchange
from nfuser.execution.host.mesh.sharding_rules import plan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import SourceLine
    from nfuser.execution.host.ir.statements import Input, Operand, Statement
    from nfuser.execution.host.mesh.guard_owners import Guard, Guards


def lower_shardings(
    program: HostProgram,
    shardings: Mapping[TensorView, Sharding | Sequence[Sharding]],
    ranks: int | Sequence[int],
    plans: Mapping[TensorView, Sequence[LaunchPlan]] | None = None,
) -> HostProgram:
    """Return the program of one of ``ranks`` ranks, or of a mesh of them.

    ``shardings`` says how inputs lie, and how other tensors shall, for each dimension
    of the mesh; where it is silent inputs are replicated, and results lie as is
    cheapest. An exchange stands only where an operation, or an output, needs a tensor
    to lie otherwise; each tensor is exchanged once for each way in which it is needed.
    What one rank owns, that rank alone computes.

    A program for one dimension is spread over the next one: there its exchanges are
    operations like others. ``plans`` has, by their first result, launches of which is
    known how they run, for each dimension.
    """
    for stmt in program.body:
        if isinstance(stmt, st.Communicate):
            line = st.line_of(stmt)
            message = f"{stmt.kind}: an exchange is not spread over ranks{line}"
            raise UnsupportedError(message)
    mesh = (ranks,) if isinstance(ranks, int) else tuple(ranks)
    layouts = _layouts(program, shardings, mesh)
    plans = plans or {}
    guards: Guards = {}
    for dim in range(len(mesh)):
        wanted = {t: layout[dim] for t, layout in layouts.items()}
        known = {t: ways[dim] for t, ways in plans.items()}
        lowering = _Lowering(program, wanted, mesh, dim, guards, known)
        program, guards = lowering.run(), lowering.new_guards
        layouts = {lowering.local[t, wanted[t]]: s for t, s in layouts.items()}
        plans = {
            lowering.local[t, known[t].results[0]]: ways for t, ways in plans.items()
        }
    body = guard_owners(merge_exchanges(program.body, program.outputs), guards)
    lowered = replace(program, body=body)
    verify(lowered)
    return lowered


def _layouts(
    program: HostProgram,
    shardings: Mapping[TensorView, Sharding | Sequence[Sharding]],
    mesh: tuple[int, ...],
) -> dict[TensorView, tuple[Sharding, ...]]:
    layouts = {
        t: (s,) if isinstance(s, Sharding) else tuple(s) for t, s in shardings.items()
    }
    check_layouts(mesh, layouts)
    tensors = {x.value for x in program.inputs}
    tensors.update(t for s in program.body for t in st.writes(s))
    if not tensors.issuperset(layouts):
        message = f"the shardings name a tensor that is not in {program.name}"
        raise ArgumentError(message)
    return layouts


@value
class LaunchPlan:
    """How a launch needs the tensors that it reads to lie, and then gives its own."""

    sources: tuple[Sharding, ...]
    results: tuple[Sharding, ...]


class _Lowering:
    """Spreads a program over one dimension of a mesh."""

    def __init__(
        self,
        program: HostProgram,
        shardings: Mapping[TensorView, Sharding],
        mesh: tuple[int, ...],
        dim: int,
        guards: Guards,
        plans: Mapping[TensorView, LaunchPlan],
    ) -> None:
        self.program = program
        self.wanted = shardings
        self.mesh = mesh
        self.dim = dim
        self.ranks = mesh[dim]
        self.guards = guards
        self.plans = plans
        self.new_guards: Guards = {}
        self.whole: dict[Scalar, Scalar] = {}  # sizes of all ranks, by one rank's
        self.lies: dict[TensorView, Sharding] = {}
        self.local: dict[tuple[TensorView, Sharding], TensorView] = {}
        self.body: list[Statement] = []
        if program.aliases:
            message = "a program with aliases is not spread over ranks"
            raise UnsupportedError(message)

    def run(self) -> HostProgram:
        """Return the program of one rank along this dimension."""
        inputs = [x for x in self.program.inputs if isinstance(x.value, TensorView)]
        for given in inputs:
            self._measure(given)
        new = [self._input(x) for x in self.program.inputs]
        for stmt in self.program.body:
            self._lower(stmt)
        outputs: list[TensorView] = []
        for output in self.program.outputs:
            lies = self.lies[output]
            wanted = self.wanted.get(output, REPLICATED if lies.partial else lies)
            outputs.append(self._as(output, wanted, None))
        return HostProgram(
            self.program.name, tuple(new), tuple(outputs), tuple(self.body), {}
        )

    # -- inputs --------------------------------------------------------------

    def _measure(self, given: Input) -> None:
        """Note that a size of the caller's array is that of one part."""
        assert isinstance(given.value, TensorView)
        sharding = self.wanted.get(given.value, REPLICATED)
        if sharding.partial or sharding.axis is None:
            return
        extent = given.value.shape[sharding.axis]
        if not isinstance(extent, Const):
            self.whole[extent] = extent * self.ranks

    def _input(self, given: Input) -> Input:
        if not isinstance(given.value, TensorView):
            return given
        sharding = self.wanted.get(given.value, REPLICATED)
        part = tensor(
            self._shape(given.value, sharding), given.value.dtype, given.value.source
        )
        self.lies[given.value] = sharding
        self.local[given.value, sharding] = part
        return replace(given, value=part)

    # -- shapes --------------------------------------------------------------

    def _scalar(self, x: Scalar) -> Scalar:
        return scalar_walk.substitute([x], self.whole)[0]

    def _shape(self, whole: TensorView, sharding: Sharding) -> list[Scalar]:
        shape = [self._scalar(x) for x in whole.shape]
        if sharding.axis is not None:
            extent = shape[sharding.axis]
            shape[sharding.axis] = rules.parts(extent, self.ranks, "an axis")
        return shape

    # -- statements ----------------------------------------------------------

    def _lower(self, stmt: Statement) -> None:
        results = st.writes(stmt)
        known = self.plans.get(results[0]) if results else None
        if not isinstance(stmt, _KINDS) or (known is None and len(results) != 1):
            name = type(stmt).__name__
            message = f"{name}: not spread over ranks{st.line_of(stmt)}"
            raise UnsupportedError(message)
        if any(result in self.lies for result in results):
            message = f"what is written twice has no sharding{st.line_of(stmt)}"
            raise UnsupportedError(message)
        chosen = known or self._planned(stmt)
        new = [
            self._as(t, sharding, stmt)
            for t, sharding in zip(st.reads(stmt), chosen.sources, strict=True)
        ]
        pairs = list(zip(results, chosen.results, strict=True))
        made = [self._made(result, sharding) for result, sharding in pairs]
        self.body.append(self._with(stmt, new, made))
        for result, sharding in pairs:
            wanted = self.wanted.get(result)
            if wanted is not None and wanted != sharding:
                self._as(result, wanted, stmt)
                self.lies[result] = wanted

    def _planned(self, stmt: Statement) -> LaunchPlan:
        given = [self.lies[t] for t in st.reads(stmt)]
        found = plan(stmt, given, self.wanted.get(st.writes(stmt)[0]), self.ranks)
        return LaunchPlan(found.sources, (found.result,))

    def _made(self, result: TensorView, sharding: Sharding) -> TensorView:
        made = tensor(self._shape(result, sharding), result.dtype, result.source)
        self.lies[result] = sharding
        self.local[result, sharding] = made
        self._guard(made, self.guards.get(result, ()), sharding)
        return made

    def _guard(self, made: TensorView, before: Guard, sharding: Sharding) -> None:
        """Note which ranks compute ``made``, if not all."""
        if sharding.owner is not None:
            place = coordinate(self.mesh, self.dim)
            before = (*before, scalar_functions.equal(place, sharding.owner))
        if before:
            self.new_guards[made] = before

    def _with(
        self, stmt: Statement, new: list[TensorView], results: list[TensorView]
    ) -> Statement:
        rest, made = iter(new), results[0]

        def operand(x: Operand) -> Operand:
            if isinstance(x, TensorView):
                return next(rest)
            return x if isinstance(x, int | float | complex) else self._scalar(x)

        match stmt:
            case st.BinaryOp():
                lhs = operand(stmt.lhs)
                return replace(stmt, lhs=lhs, rhs=operand(stmt.rhs), result=made)
            case st.MatmulOp():
                return replace(stmt, lhs=new[0], rhs=new[1], result=made)
            case st.Launch():
                operands = tuple(operand(x) for x in stmt.operands)
                return replace(stmt, operands=operands, results=tuple(results))
            case st.SelectOp():
                index = self._scalar(stmt.index)
                return replace(stmt, source=new[0], index=index, result=made)
            case st.SliceOp():
                starts = tuple(self._scalar(x) for x in stmt.starts)
                pairs = zip(stmt.stops, stmt.source.shape, new[0].shape, strict=True)
                stops = tuple(
                    part if stop is extent else self._scalar(stop)
                    for stop, extent, part in pairs
                )
                return replace(
                    stmt, source=new[0], starts=starts, stops=stops, result=made
                )
            case _:
                return replace(stmt, source=new[0], result=made)

    # -- exchanges -----------------------------------------------------------

    def _as(
        self, whole: TensorView, wanted: Sharding, stmt: Statement | None
    ) -> TensorView:
        """Return ``whole`` lying as ``wanted``, after an exchange if need be."""
        if (whole, wanted) in self.local:
            return self.local[whole, wanted]
        lies = self.lies[whole]
        if (whole, REPLICATED) in self.local:
            lies = REPLICATED
        source = self.local[whole, lies]
        if lies == REPLICATED and wanted.owner is not None:
            return self.local.setdefault((whole, wanted), source)
        line = stmt.line if stmt is not None else whole.source
        if wanted.partial:
            note = line.note if line else ""
            message = f"what lies as {lies} is not made {wanted}{note}"
            raise UnsupportedError(message)
        made = tensor(self._shape(whole, wanted), whole.dtype, line)
        if lies == REPLICATED and wanted.axis is not None:
            self.body.append(self._own_part(source, made, wanted.axis, line))
        else:
            kind, axes, ends = exchange(lies, wanted)
            where = ends, self.mesh, (self.dim,)
            self.body.append(st.Communicate(kind, source, axes, made, line, *where))
        if whole in self.guards:
            self.new_guards[made] = self.guards[whole]
        self.local[whole, wanted] = made
        return made

    def _own_part(
        self, source: TensorView, made: TensorView, axis: int, line: SourceLine | None
    ) -> Statement:
        starts: list[Scalar] = [sc.const(0)] * source.ndim
        stops = list(source.shape)
        length = made.shape[axis]
        starts[axis] = coordinate(self.mesh, self.dim) * length
        # What is left after the others' parts: too much where these are not equal.
        left = source.shape[axis] - length * (self.ranks - 1)
        stops[axis] = starts[axis] + left
        steps = (1,) * source.ndim
        return st.SliceOp(source, tuple(starts), tuple(stops), steps, made, line)


_KINDS = (
    st.Launch,
    st.Set,
    st.UnaryOp,
    st.BinaryOp,
    st.ReductionOp,
    st.MatmulOp,
    st.SelectOp,
    st.SliceOp,
    st.PermuteOp,
    st.ReshapeOp,
    st.Communicate,
)
