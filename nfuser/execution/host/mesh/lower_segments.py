# SPDX-License-Identifier: Apache-2.0
"""Turn a fusion that was cut where shardings change into what each rank runs."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
import nfuser.execution.host.ir.statements as st
from nfuser.compiler.ir import expr as ex
from nfuser.compiler.ir.fusion import Fusion, with_sources
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.tensor import TensorView, tensor
from nfuser.compiler.ir.walk import toposort
from nfuser.errors import ArgumentError, UnsupportedError
from nfuser.execution.host.ir.host_ir import HostProgram
from nfuser.execution.host.ir.statements import Input
from nfuser.execution.host.mesh.lower_shardings import LaunchPlan, lower_shardings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.segment import Segment, Segmented
    from nfuser.compiler.segment.sharding import Layout
    from nfuser.compiler.segment.sharding_propagation import PropagatedShardings
    from nfuser.execution.host.ir.statements import Operand


def lower_segments(segmented: Segmented) -> HostProgram:
    """Return the program of one rank: a launch for each piece, exchanges between them.

    Pieces of all ranks are the same fusions, of symbolic sizes: those of parts.
    """
    found = segmented.spread
    if found is None:
        message = "expected a fusion cut with shardings: segment(..., shardings=...)"
        raise ArgumentError(message)
    mesh, layouts = found.shardings.mesh, found.shardings.layouts
    program = _Program(segmented.fusion)
    plans = {program.add(s, found): _plans(s, found) for s in segmented.segments}
    shardings = {program.new[t]: x for t, x in layouts.items() if t in program.new}
    return lower_shardings(program.done(), shardings, mesh, plans)


def _plans(segment: Segment, spread: PropagatedShardings) -> list[LaunchPlan]:
    reads = spread.read_by(segment.fusion.exprs) or {}
    arrays = [a.result for a in segment.fusion.arguments if not a.by_value]
    gives = [spread.gives[t] for t in segment.fusion.outputs]
    return [
        LaunchPlan(tuple(reads[t][dim] for t in arrays), tuple(g[dim] for g in gives))
        for dim in range(len(spread.shardings.mesh))
    ]


class _Program:
    """Writes the program of whole tensors."""

    def __init__(self, fusion: Fusion) -> None:
        self.fusion = fusion
        self.new: dict[TensorView, TensorView] = {}
        self.known: dict[Scalar, Scalar] = {}  # by what the fusion names
        self.inputs: list[Input] = []
        self.body: list[st.Statement] = []
        for slot, argument in enumerate(fusion.arguments):
            self._input(slot, argument)

    def done(self) -> HostProgram:
        """Return the program."""
        outputs = tuple(self.new[t] for t in self.fusion.outputs)
        name, body = self.fusion.name, tuple(self.body)
        return HostProgram(name, tuple(self.inputs), outputs, body, {})

    def add(self, segment: Segment, spread: PropagatedShardings) -> TensorView:
        """Launch a piece; return its first result."""
        piece = _Piece(segment.fusion, spread)
        operands: list[Operand] = []
        for argument in segment.fusion.arguments:
            is_number = argument.by_value
            operands.append(self.new[argument.result] if not is_number else 0)
            if is_number:
                operands[-1] = self._number(argument.result)
        operands += [self.known[symbol] for symbol in piece.numbers]
        for output in segment.fusion.outputs:
            shape = scalar_walk.substitute(output.shape, self.known)
            self.new[output] = tensor(shape, output.dtype, output.source)
        made = tuple(self.new[t] for t in segment.fusion.outputs)
        line = segment.fusion.outputs[0].source
        self.body.append(st.Launch(piece.fusion, tuple(operands), made, line))
        return made[0]

    def _number(self, tensor: TensorView) -> Scalar:
        slot = next(a.slot for a in self.fusion.arguments if a.result is tensor)
        return self.known[scalar_symbols.scalar_input(slot)]

    def _input(self, slot: int, argument: ex.Argument) -> None:
        """Add an input with sizes of its own: ranks have parts of some inputs only."""
        given, name = argument.result, f"T{slot}"
        if argument.by_value:
            if not given.dtype.is_integer:
                line = given.source.note if given.source else ""
                message = f"{given.dtype} by value: not spread; pass an array{line}"
                raise UnsupportedError(message)
            self.known[scalar_symbols.scalar_input(argument.slot)] = (
                scalar_symbols.scalar_input(slot)
            )
            self.inputs.append(Input(f"n{slot}", scalar_symbols.scalar_input(slot)))
            return
        shape: list[Scalar] = []
        for axis, extent in enumerate(given.shape):
            own = (
                extent
                if isinstance(extent, sc.Const)
                else scalar_symbols.size(slot, axis)
            )
            self.known.setdefault(extent, own)
            shape.append(own)
        self.new[given] = tensor(shape, given.dtype, given.source)
        self.inputs.append(Input(name, self.new[given]))


class _Piece:
    """A piece as a fusion by itself: its sizes are those of its own arguments.

    Extents of axes that ranks have parts of are those of parts; all other extents, and
    sizes used as numbers, those of the whole. What no argument tells comes as integers
    after the arrays: ``numbers``.
    """

    def __init__(self, old: Fusion, spread: PropagatedShardings) -> None:
        self.mesh = spread.shardings.mesh
        reads = spread.read_by(old.exprs) or {}
        self.layouts = {**spread.gives, **reads}
        self.sizes: dict[tuple[Scalar, tuple[int, ...]], Scalar] = {}
        self.whole: dict[Scalar, Scalar] = {}
        self.numbers: list[Scalar] = []
        self.count = len(old.arguments)
        self.new: dict[TensorView, TensorView] = {}
        for argument in old.arguments:
            self._argument(argument)
        exprs = [self._expr(e) for e in old.exprs]
        self.fusion = Fusion(old.name, exprs, [self.new[t] for t in old.outputs])

    def _argument(self, argument: ex.Argument) -> None:
        given = argument.result
        shape: list[Scalar] = []
        for axis, extent in enumerate(given.shape):
            dims = _dims(self.layouts.get(given, ()), axis)
            fixed = isinstance(extent, sc.Const) and not dims
            own = extent if fixed else scalar_symbols.size(argument.slot, axis)
            self.sizes.setdefault((extent, dims), own)
            if not dims:
                self.whole.setdefault(extent, own)
            shape.append(own)
        self.new[given] = tensor(shape, given.dtype, given.source)

    def _expr(self, old: ex.Expr) -> ex.Expr:
        for t in ex.results(old):
            if t not in self.new:
                self.new[t] = tensor(self._shape(t), t.dtype, t.source)
        made = tuple(self.new[t] for t in ex.results(old))
        expr = with_sources(old, [self.new[t] for t in ex.sources(old)])
        match expr:
            case ex.Reduce():
                return replace(expr, results=made)
            case ex.FromScalar(scalar):
                return replace(expr, scalar=self._whole([scalar])[0], result=made[0])
            case ex.Slice(_, _, starts):
                return replace(expr, starts=tuple(self._whole(starts)), result=made[0])
            case ex.Pad(_, _, _, lefts):
                return replace(expr, lefts=tuple(self._whole(lefts)), result=made[0])
            case ex.Remap(_, _, index):
                return replace(expr, index=tuple(self._whole(index)), result=made[0])
            case ex.Reshape():
                return replace(expr, groups=None, result=made[0])
            case _:
                return replace(expr, result=made[0])

    def _shape(self, old: TensorView) -> list[Scalar]:
        found: list[Scalar] = []
        for axis, extent in enumerate(old.shape):
            dims = _dims(self.layouts[old], axis)
            if (extent, dims) not in self.sizes:
                parts = prod(self.mesh[dim] for dim in dims)
                self.sizes[extent, dims] = self._whole([extent])[0] // parts
            found.append(self.sizes[extent, dims])
        return found

    def _whole(self, scalars: Iterable[Scalar]) -> list[Scalar]:
        scalars = list(scalars)
        own = self.whole
        named = toposort(scalars, lambda s: () if s in own else scalar_walk.children(s))
        for x in named:
            if isinstance(x, sc.Size | sc.ScalarInput) and x not in own:
                own[x] = scalar_symbols.scalar_input(self.count + len(self.numbers))
                self.numbers.append(x)
        return scalar_walk.substitute(scalars, own)


def _dims(layout: Layout, axis: int) -> tuple[int, ...]:
    """Return the dimensions of the mesh over which ``axis`` is spread."""
    return tuple(dim for dim, lies in enumerate(layout) if lies.axis == axis)
