# SPDX-License-Identifier: Apache-2.0
"""Forward mode: from the tangents of inputs to those of what a program gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import nfuser.compiler.ops as ops
import nfuser.compiler.transforms.differentiate.loops as loops
from nfuser.compiler.ir.expr import (
    VIEWS,
    Assign,
    Concatenate,
    Expr,
    Loop,
    Matmul,
    Pad,
    Pointwise,
    Reduce,
    ReduceOp,
    Scan,
    Scatter,
    SumTo,
    Take,
    results,
    sources,
)
from nfuser.compiler.ir.fusion import with_results, with_sources
from nfuser.compiler.transforms.differentiate.flow import settled
from nfuser.compiler.transforms.differentiate.pull import pull, push_point
from nfuser.compiler.transforms.differentiate.reach import extend
from nfuser.compiler.transforms.differentiate.reverse import pullback
from nfuser.compiler.transforms.differentiate.rules.scatters import is_linear
from nfuser.compiler.transforms.differentiate.rules.views import assigned
from nfuser.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops import Builder


_ONE_WAY = (
    "write nfuser.vjp or nfuser.grad: jvp and hvp go forward, and a function of "
    "nfuser.custom_vjp says the way back alone"
)


def pushforward(
    b: Builder,
    inputs: Sequence[tuple[TensorView, TensorView]],
    outputs: Sequence[TensorView],
) -> list[TensorView | None]:
    """Return the tangent of each output, of pairs of inputs and their tangents.

    None stands for an output that depends on no input.
    """
    forward = _Forward(b, dict(inputs))
    forward.run(list(b.exprs))
    return [forward.tangents.get(t) for t in outputs]


class _Forward:
    def __init__(self, b: Builder, tangents: dict[TensorView, TensorView]) -> None:
        self._b = b
        self.tangents = tangents
        self._definition: dict[TensorView, Expr] = {}

    def run(self, program: Sequence[Expr]) -> None:
        """Go through ``program``, and give its tensors their tangents."""
        self._definition.update((t, e) for e in program for t in results(e))
        reached = dict.fromkeys(self.tangents, False)
        extend(reached, program, self._b.stopped, self._b.customs)
        for expr in program:
            made = results(expr)[0]
            if any(t in reached and t not in self.tangents for t in results(expr)):
                self._b.source = made.source
                self._step(expr)

    def _step(self, expr: Expr) -> None:
        made = results(expr)[0]
        if made in self._b.customs:
            raise UnsupportedError(_ONE_WAY)
        meant = self._b.meant.get(made)
        if meant is not None and not isinstance(meant, Pointwise):
            begin = len(self._b.exprs)
            other = meant()
            self.run(self._b.exprs[begin:])
            if other in self.tangents:
                self.tangents[made] = self.tangents[other]
            return
        expr = expr if meant is None else meant
        ts = [self.tangents.get(t) for t in sources(expr)]
        if all(t is None for t in ts):
            return
        if isinstance(expr, Loop):
            self._through_loop(expr, ts)
        elif isinstance(expr, Pointwise):
            found = push_point(self._b, expr, ts)
            if found is not None:
                self.tangents[made] = found
        elif _is_linear(expr):
            self.tangents[made] = self._again(expr, ts)
        elif isinstance(expr, Assign):
            self.tangents[made] = assigned(self._b, expr, *ts)
        elif isinstance(expr, Matmul):
            self.tangents[made] = self._of_product(expr, *ts)
        else:
            self._by_transposing(expr)

    def _through_loop(self, expr: Loop, ts: Sequence[TensorView | None]) -> None:
        b = self._b
        if expr.is_choice:
            begin = len(b.exprs)
            chosen = loops.chosen(b, expr)
            self.run(b.exprs[begin:])
            found = [self.tangents.get(t) for t in chosen]
        else:
            found = loops.pushed(b, expr, ts, pushforward)
        for tensor, t in zip(expr.results, found, strict=True):
            if t is not None:
                self.tangents[tensor] = t

    def _again(self, expr: Expr, ts: Sequence[TensorView | None]) -> TensorView:
        """Return what a linear expression makes of tangents."""
        b = self._b
        given: list[TensorView] = []
        for place, (t, source) in enumerate(zip(ts, sources(expr), strict=True)):
            if t is not None:
                given.append(t)
            elif isinstance(expr, (Take, Scatter)) and place == 1:
                given.append(source)
            else:
                given.append(ops.full(b, source.shape, 0, source.dtype))
        made = b.new(results(expr)[0].shape, results(expr)[0].dtype)
        b.emit(with_results(with_sources(expr, given), [made]))
        return made

    def _of_product(
        self, expr: Matmul, left: TensorView | None, right: TensorView | None
    ) -> TensorView:
        b = self._b
        found: list[TensorView] = []
        if left is not None:
            found.append(ops.matmul(b, left, expr.rhs))
        if right is not None:
            found.append(ops.matmul(b, expr.lhs, right))
        return found[0] if len(found) == 1 else b.point("add", *found)

    def _by_transposing(self, expr: Expr) -> None:
        """Give the results their tangents by way of the transpose of the transpose.

        A cotangent of the source is a linear function of those of the results, in
        whose place any numbers will do.
        """
        b, made = self._b, results(expr)
        probes = [b.twin(t) for t in made]
        t = self.tangents[sources(expr)[0]]
        found = settled(b, pull(b, expr, probes, 0, self._definition))
        for tensor, tangent in zip(
            made, pullback(b, [(found, t)], probes), strict=True
        ):
            if tangent is not None:
                self.tangents[tensor] = tangent


def _is_linear(expr: Expr) -> bool:
    match expr:
        case Reduce(op) | Scan(op):
            return op is ReduceOp.SUM
        case Pad() | Concatenate() | Take() | SumTo():
            return True
        case Scatter(op):
            return is_linear(op)
        case _:
            return isinstance(expr, VIEWS)
