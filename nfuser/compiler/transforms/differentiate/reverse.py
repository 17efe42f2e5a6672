# SPDX-License-Identifier: Apache-2.0
"""Reverse mode: from the cotangents of what a program gives to those of its inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import nfuser.compiler.ops as ops
import nfuser.compiler.transforms.differentiate.centred as centred
import nfuser.compiler.transforms.differentiate.loops as loops
from nfuser.compiler.ir.expr import Expr, Loop, Pointwise, results, sources
from nfuser.compiler.transforms.differentiate.flow import Flow, both, settled
from nfuser.compiler.transforms.differentiate.pull import pull, pull_point, pull_taken
from nfuser.compiler.transforms.differentiate.reach import extend
from nfuser.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops import Builder
    from nfuser.compiler.ops.customs import Custom


def pullback(
    b: Builder,
    outputs: Sequence[tuple[TensorView, TensorView]],
    inputs: Sequence[TensorView],
) -> list[TensorView | None]:
    """Return the cotangent of each input, of pairs of outputs and their cotangents.

    None stands for an input that no output depends on.

    >>> from nfuser.compiler.dtypes import DType
    >>> from nfuser.compiler.ir.text import text
    >>> b = ops.Builder()
    >>> x = b.argument(0, 1, DType.F64)
    >>> total = ops.sum(b, ops.exp(b, x))
    >>> (found,) = pullback(b, [(total, b.constant(1.0, DType.F64))], [x])
    >>> print(text(b.fusion([found])), end="")
    fusion fusion(T0: f64[? n0]) -> T5
      T1: f64[? n0] = exp(T0)
      T2: f64[] = 1.0
      T3: f64[b 1] = expand_dims(T2, axes=(0,))
      T4: f64[? n0] = expand(T3)
      T5: f64[? n0] = multiply(T4, T1)
    """
    reverse = _Reverse(b, inputs)
    for tensor, t in outputs:
        reverse.add(tensor, Flow(t))
    reverse.run(reverse.program)
    return [reverse.cotangent(t) for t in inputs]


class _Reverse:
    def __init__(self, b: Builder, inputs: Sequence[TensorView]) -> None:
        self._b = b
        self._inputs = set(inputs)
        self.program = list(b.exprs)
        self._flows: dict[TensorView, Flow] = {}
        self._reached = dict.fromkeys(inputs, False)
        extend(self._reached, self.program, b.stopped, b.customs)
        self._definition = {t: e for e in self.program for t in results(e)}
        self._count = len(self.program)

    def add(self, tensor: TensorView, flow: Flow) -> None:
        """Add to the cotangent of ``tensor``, if an input has to do with it."""
        if tensor not in self._reached:
            return
        if flow.taken is not None and not self._reached[tensor]:
            flow = Flow(settled(self._b, flow))
        held = self._flows.get(tensor)
        self._flows[tensor] = flow if held is None else both(self._b, held, flow)

    def cotangent(self, tensor: TensorView) -> TensorView | None:
        """Return what has come to ``tensor``."""
        flow = self._flows.get(tensor)
        return None if flow is None else settled(self._b, flow)

    def run(self, program: Sequence[Expr]) -> None:
        """Go through ``program`` from its end."""
        for expr in reversed(program):
            made = results(expr)
            custom = self._b.customs.get(made[0])
            if custom is not None:
                self._through_custom(custom, made[0])
            elif any(t in self._flows and t not in self._inputs for t in made):
                self._b.source = made[0].source
                try:
                    self._step(expr)
                except UnsupportedError as error:
                    _add_line(error, made[0])
                    raise

    def _step(self, expr: Expr) -> None:
        meant = self._b.meant.get(results(expr)[0])
        if isinstance(meant, Pointwise):
            self._through_point(meant)
        elif meant is not None:
            begin = len(self._b.exprs)
            other = meant()
            more = self._b.exprs[begin:]
            extend(self._reached, more, self._b.stopped, self._b.customs)
            self._definition.update((t, e) for e in more for t in results(e))
            self.add(other, self._flows.pop(results(expr)[0]))
            self.run(more)
        elif isinstance(expr, Pointwise):
            self._through_point(expr)
        elif isinstance(expr, Loop):
            self._through_loop(expr)
        else:
            self._through(expr)

    def _through_custom(self, custom: Custom, made: TensorView) -> None:
        """Pull the cotangents of all results back, at the first of them."""
        b = self._b
        if made is not custom.results[0]:
            return
        flows = [self._flows.get(t) for t in custom.results]
        if all(flow is None for flow in flows):
            return
        b.source = made.source
        ts = [
            None if flow is None else ops.broadcast_to(b, settled(b, flow), t.shape)
            for flow, t in zip(flows, custom.results, strict=True)
        ]
        for source, t in zip(custom.inputs, custom.pull(ts), strict=True):
            if t is not None:
                self.add(source, Flow(t))

    def _through_loop(self, expr: Loop) -> None:
        """Pull the cotangents of all results back at once."""
        b = self._b
        flows = [self._flows.pop(t, None) for t in expr.results]
        if expr.is_choice:
            begin = len(b.exprs)
            found = loops.chosen(b, expr)
            more = b.exprs[begin:]
            extend(self._reached, more, b.stopped, b.customs)
            self._definition.update((t, e) for e in more for t in results(e))
            for tensor, flow in zip(found, flows, strict=True):
                if flow is not None:
                    self.add(tensor, flow)
            self.run(more)
            return
        ts = [None if flow is None else settled(b, flow) for flow in flows]
        found = loops.pulled(b, expr, ts, pullback)
        for operand, t in zip(expr.operands, found, strict=True):
            if t is not None:
                self.add(operand, Flow(t))

    def _through_point(self, expr: Pointwise) -> None:
        flow = self._flows[expr.result]
        for place, operand in enumerate(expr.operands):
            if operand not in self._reached:
                continue
            found = pull_point(self._b, expr, flow, place)
            if found is not None:
                self.add(operand, self._stretched(expr, found, operand))

    def _stretched(self, expr: Pointwise, flow: Flow, operand: TensorView) -> Flow:
        """Return ``flow``, which has the shape of the result, in that of an operand."""
        b = self._b
        if operand.shape == expr.result.shape:
            return flow
        t = settled(b, flow)
        held = centred.summed(b, self._known(), t, expr, operand)
        if held is None:
            t = ops.broadcast_to(b, t, expr.result.shape)
            held = ops.sum_to(b, t, operand.shape)
        if flow.taken is None or not self._reached[operand]:
            return Flow(held)
        zero, one = (b.convert(n, held.dtype) for n in (0, 1))
        where = b.point("select", flow.taken, one, zero)
        where = ops.broadcast_to(b, where, expr.result.shape)
        counted = ops.sum_to(b, where, operand.shape)
        return Flow(held, b.point("not_equal", counted, zero))

    def _known(self) -> dict[TensorView, Expr]:
        """Return how all is computed that there is by now."""
        for expr in self._b.exprs[self._count :]:
            self._definition.update((t, expr) for t in results(expr))
        self._count = len(self._b.exprs)
        return self._definition

    def _through(self, expr: Expr) -> None:
        b = self._b
        flows = [self._flows.get(t) for t in results(expr)]
        ts = [None if flow is None else settled(b, flow) for flow in flows]
        taken = flows[0].taken if flows[0] is not None else None
        if taken is not None:
            taken = ops.broadcast_to(b, taken, results(expr)[0].shape)
        for place, source in enumerate(sources(expr)):
            if source not in self._reached:
                continue
            found = pull(b, expr, ts, place, self._definition)
            if taken is not None and self._reached[source] and len(ts) == 1:
                where = pull_taken(b, expr, taken, place)
                if where is not None and found.taken is not None:
                    where = b.point("bit_and", where, found.taken)
                found = Flow(found.held, where or found.taken)
            self.add(source, found)


def _add_line(error: UnsupportedError, made: TensorView) -> None:
    """Name the user's line that has no derivative."""
    if made.source is not None and "\n  at " not in str(error.args[0]):
        error.args = (f"{error.args[0]}{made.source.note}",)
