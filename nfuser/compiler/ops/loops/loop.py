# SPDX-License-Identifier: Apache-2.0
"""The verb of loops: a body is written down once, and is an expression's own."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.expr import (
    Argument,
    Constant,
    Expr,
    FromScalar,
    Iota,
    Loop,
    Pointwise,
    results,
    sources,
)
from nfuser.compiler.ir.fusion import Fusion, with_sources
from nfuser.compiler.ir.point_op import POINT_OPS
from nfuser.compiler.ops.loops.read_places import require_places
from nfuser.compiler.ops.loops.stacked import emit_loop
from nfuser.compiler.ops.unread import live_or_checked

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from nfuser.compiler.ir.expr import Home
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.builder import Builder, TurnIndex


class Body:
    """What is written while it is open: expressions of a loop's body.

    ``parameters`` stand for the carried values, ``turn`` counts the iterations.
    """

    def __init__(
        self,
        b: Builder,
        outer: dict[TensorView, Expr],
        parameters: list[TensorView],
        turn: TensorView,
        homes: Sequence[Home | None],
    ) -> None:
        self._b = b
        self._outer = outer
        self.parameters = parameters
        self.homes = homes
        self.turn = turn
        self.exprs: list[Expr] = []
        self.places: list[TurnIndex] | None = None

    def tensors(self) -> list[TensorView]:
        """Return what is not to be read outside of the body."""
        return [t for e in self.exprs for t in results(e)]

    def close(self, outputs: Sequence[TensorView]) -> Closed:
        """Return the body as a fusion of its own, and what it reads from outside."""
        return _Closing(self._b, self._outer, self).closed(outputs)


@contextmanager
def recorded(
    b: Builder,
    carried: Sequence[TensorView],
    homes: Sequence[Home | None] = (),
    *,
    always: bool = False,
) -> Generator[Body]:
    """Let what is written meanwhile be the body of a loop with such carried values.

    ``homes`` says which of them belong in arrays of the caller's. Inputs that are met
    meanwhile are those of the whole fusion. All of the body runs ``always``, if it is
    known before how often, where the loop itself does.
    """
    outer = {t: e for e in b.exprs for t in results(e)}
    begin = len(b.exprs)
    constants = dict(b.constants)
    parameters = [_parameter(b, replace(t)) for t in carried]
    turn = _parameter(b, b.new((), DType.I64), by_value=True)
    body = Body(b, outer, parameters, turn, homes or [None] * len(parameters))
    around = b.places
    b.places = body.places = None if around is None or not always else []
    b.open_bodies += 1
    try:
        yield body
    finally:
        b.places = around
        b.open_bodies -= 1
        body.exprs = taken_back(b, begin, constants)
        outer.update((t, e) for e in b.exprs[begin:] for t in results(e))


def taken_back(b: Builder, begin: int, constants: Mapping[Any, Any]) -> list[Expr]:
    """Return what was written since there were ``begin`` expressions, and unwrite it.

    Inputs stay: they are those of the whole fusion.
    """
    own = b.exprs[begin:]
    b.exprs[begin:] = [e for e in own if _is_input(e)]
    b.constants.clear()
    b.constants.update(constants)
    return [e for e in own if not _is_input(e)]


def _is_input(expr: Expr) -> bool:
    """Tell an input of the whole fusion from a parameter of a body."""
    return isinstance(expr, Argument) and expr.slot >= 0


def _parameter(b: Builder, held: TensorView, *, by_value: bool = False) -> TensorView:
    """Add an argument of a body: its place is known once the body is closed."""
    b.emit(Argument(-1, held, by_value))
    return held


@node
class Closed:
    """A body, what it reads beside the carried values, and by which numbers.

    ``turn`` is its counter; ``definition`` says what those numbers are.
    """

    fusion: Fusion
    reads: tuple[TensorView, ...]
    turn: TensorView
    places: tuple[TurnIndex, ...]
    definition: dict[TensorView, Expr]


class _Closing:
    def __init__(self, b: Builder, outer: dict[TensorView, Expr], body: Body) -> None:
        self._b = b
        self._outer = outer
        self._body = body
        self._own: list[Expr] = []
        self._reads: dict[TensorView, Argument] = {}
        self._inside: dict[TensorView, TensorView] = {}

    def closed(self, outputs: Sequence[TensorView]) -> Closed:
        body = self._body
        definition = self._outer | {t: e for e in body.exprs for t in results(e)}
        live = set(live_or_checked(outputs, body.exprs, definition))
        for expr in body.exprs:
            if expr not in live or isinstance(expr, Argument):
                continue
            new = [self._read(t, definition) for t in sources(expr)]
            self._own.append(with_sources(expr, new))
        found = [self._read(t, definition) for t in outputs]
        count = len(body.parameters) + len(self._reads)
        carried = zip(body.parameters, body.homes, strict=True)
        arguments = [Argument(k, t, home=h) for k, (t, h) in enumerate(carried)]
        arguments += self._reads.values()
        if definition[body.turn] in live:
            arguments.append(Argument(count, body.turn, by_value=True))
        name = f"{self._b.name}_body"
        fusion = Fusion(name, [*arguments, *self._own], found)
        places = tuple(body.places or ())
        return Closed(fusion, tuple(self._reads), body.turn, places, definition)

    def _read(self, t: TensorView, definition: dict[TensorView, Expr]) -> TensorView:
        """Return what stands for ``t`` in the body; from outside, it is an operand."""
        if t not in self._outer:
            return t
        if t in self._inside:
            return self._inside[t]
        expr = definition[t]
        made = replace(t)
        if isinstance(expr, (Constant, FromScalar, Iota)):
            self._own.append(replace(expr, result=made))
        elif t.dtype.is_complex:
            # Kernels have real numbers only, and so have the operands of a loop.
            parts = [
                self._operand(self._b.point(p, t, dtype=t.dtype.real)) for p in _PARTS
            ]
            self._own.append(Pointwise(POINT_OPS["complex"], tuple(parts), made))
        else:
            made = self._operand(t)
        self._inside[t] = made
        return made

    def _operand(self, t: TensorView) -> TensorView:
        made = replace(t)
        found = self._outer.get(t)
        by_value = isinstance(found, Argument) and found.by_value
        slot = len(self._body.parameters) + len(self._reads)
        self._reads[t] = Argument(slot, made, by_value)
        return made


_PARTS = ("real", "imag")


def loop(
    b: Builder,
    carried: Sequence[TensorView],
    closed: Closed,
    trips: Scalar | None,
    *,
    flag: int | None = None,
    backwards: bool = False,
    looks: bool = True,
) -> tuple[TensorView, ...]:
    """Return the carried values after the last iteration, then what all added.

    Where it ``looks`` not whether something went wrong, the builder is to be told when.
    """
    if trips is not None and flag is None:
        require_places(b, closed.places, closed.definition, (closed.turn, trips))
    outputs = closed.fusion.outputs
    made = [replace(t, source=b.source) for t in carried]
    for added in outputs[len(carried) :]:
        assert trips is not None
        made.append(b.new((trips, *added.shape), added.dtype))
    if not made:
        return ()
    operands = (*carried, *closed.reads)
    count = len(carried)
    written = Loop(operands, closed.fusion, tuple(made), count, trips, flag, backwards)
    found = emit_loop(b, written)
    if looks:
        b.look()
    return found
