# SPDX-License-Identifier: Apache-2.0
"""Compute 16-bit floats in f32: round at outputs and at explicit casts only.

Products of matrices take 16 bits, as the array libraries have them. They give 16 bits
where nobody computes with them, and f32 to kernels. What a loop carries on has 16 bits:
iterations leave it to each other as outputs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import (
    VIEWS,
    Argument,
    Assign,
    Constant,
    Expr,
    Loop,
    Matmul,
    Pointwise,
    Reduce,
    results,
    sources,
)
from nfuser.compiler.ir.fusion import Fusion, with_sources
from nfuser.compiler.ir.point_op import CAST, NEAR, POINT_OPS, is_copy

if TYPE_CHECKING:
    from nfuser.compiler.ir.point_op import PointOp
    from nfuser.compiler.ir.tensor import TensorView


def widen_halves(fusion: Fusion) -> Fusion:
    """Return ``fusion`` with f16 and bf16 only in arguments, casts and outputs."""
    multiplied, stored = _multiplied(fusion), _stored(fusion)
    if all(_is_widened(expr, multiplied, stored) for expr in fusion.exprs) and not any(
        isinstance(fusion.definition[t], Argument) for t in fusion.outputs
    ):
        return fusion
    widener = _Widener(fusion, multiplied, stored)
    for expr in fusion.exprs:
        widener.add(expr)
    outputs = [widener.narrow(t) for t in fusion.outputs]
    return Fusion(fusion.name, widener.exprs, outputs)


def _multiplied(fusion: Fusion) -> set[TensorView]:
    """Return what products of matrices read as it is, or through views."""
    found: set[TensorView] = set()
    for expr in reversed(fusion.exprs):
        if isinstance(expr, Matmul):
            found.update(sources(expr))
        elif isinstance(expr, VIEWS) and expr.result in found:
            found.add(expr.source)
    return found


def _stored(fusion: Fusion) -> set[TensorView]:
    """Return what is returned or multiplied, or moved for that, and not computed with.

    What nobody reads is returned.
    """
    found: set[TensorView] = set()
    for expr in reversed(fusion.exprs):
        for tensor in results(expr):
            if all(_only_moves(user, found) for user in fusion.users[tensor]):
                found.add(tensor)
    return found


def _only_moves(user: Expr, stored: set[TensorView]) -> bool:
    if isinstance(user, (Matmul, Loop)):
        return True
    copies = isinstance(user, VIEWS) or (
        isinstance(user, Pointwise) and is_copy(user.op)
    )
    return copies and results(user)[0] in stored


def _is_widened(
    expr: Expr, multiplied: set[TensorView], stored: set[TensorView]
) -> bool:
    """Tell whether ``expr`` has halves only where they may be."""
    if isinstance(expr, (Argument, Loop)):
        return True
    if isinstance(expr, Matmul):
        return not expr.result.dtype.is_half or expr.result in stored
    if isinstance(expr, Assign):
        return False
    if isinstance(expr, Pointwise) and expr.op is CAST:
        return True
    if isinstance(expr, VIEWS) and expr.result in multiplied:
        return True
    return not any(t.dtype.is_half for t in (*sources(expr), *results(expr)))


class _Widener:
    def __init__(
        self,
        fusion: Fusion,
        multiplied: set[TensorView],
        stored: set[TensorView],
    ) -> None:
        self._fusion = fusion
        self.exprs: list[Expr] = []
        self._wide: dict[TensorView, TensorView] = {}
        self._narrow: dict[TensorView, TensorView] = {}  # what has 16 bits already
        self._kept: set[TensorView] = set()  # in 16 bits, whoever asks
        self._multiplied = multiplied
        self._stored = stored

    def add(self, expr: Expr) -> None:
        """Append the f32 form of ``expr``."""
        halves = [t for t in results(expr) if t.dtype.is_half]
        if isinstance(expr, Loop):
            halves = halves or [t for t in sources(expr) if t.dtype.is_half]
        if halves and self._keep_narrow(expr):
            return
        expr = with_sources(expr, [self._wide.get(t, t) for t in sources(expr)])
        if isinstance(expr, Argument):
            self.exprs.append(expr)
            if halves:
                self._give(expr.result, expr.result)
            return
        if not halves:
            self.exprs.append(expr)
            return
        if isinstance(expr, Pointwise) and expr.op is CAST:
            narrow = self._cast(expr.operands[0], expr.result.dtype, expr.result)
            self._give(expr.result, narrow)
            return
        if isinstance(expr, Pointwise) and is_copy(expr.op):
            self._wide[expr.result] = expr.operands[0]
            return
        made = {t: replace(t, dtype=DType.F32) for t in halves}
        self._wide.update(made)
        if isinstance(expr, Reduce):
            self.exprs.append(replace(expr, results=tuple(made.values())))
        else:
            if isinstance(expr, Pointwise):
                expr = replace(expr, op=self._near(expr))
            self.exprs.append(replace(expr, result=made[expr.result]))

    def _near(self, expr: Pointwise) -> PointOp:
        """Return the operation in the accuracy that what follows can tell from better.

        The near tanh is wrong by an ulp of one, so one has to be added to it; all
        others are good to a few of their own.
        """
        near = NEAR.get(expr.op.name, expr.op)
        if near is not NEAR["tanh"]:
            return near
        users = self._fusion.users[expr.result]
        is_output = expr.result in self._fusion.outputs
        return expr.op if is_output or not all(map(self._adds_one, users)) else near

    def _adds_one(self, user: Expr) -> bool:
        """Tell whether ``user`` adds a number of the size of one, at least about."""
        return (
            isinstance(user, Pointwise)
            and user.op is POINT_OPS["add"]
            and any(
                isinstance(found, Constant) and abs(found.value) >= 0.5
                for found in (self._fusion.definition[t] for t in user.operands)
            )
        )

    def _give(self, tensor: TensorView, narrow: TensorView) -> None:
        """Let ``narrow`` stand for ``tensor``, and its f32 form where one computes."""
        self._narrow[tensor] = narrow
        self._wide[tensor] = self._cast(narrow, DType.F32)

    def _keep_narrow(self, expr: Expr) -> bool:
        """Append what stays in 16 bits, if ``expr`` does; tell whether it does.

        Products, loops, views for those, and arrays that are assigned to: the copy of
        one array that becomes another stays a copy.
        """
        if isinstance(expr, Loop):
            self._keep_loop(expr)
            return True
        if isinstance(expr, Matmul):
            own = [self._as_narrow(t) for t in sources(expr)]
            if expr.result not in self._stored:
                made = replace(expr.result, dtype=DType.F32)
                self.exprs.append(Matmul(own[0], own[1], made))
                self._wide[expr.result] = made
                return True
            self._kept.add(expr.result)
        elif isinstance(expr, Assign):
            own = [self._narrow.get(t) or self.narrow(t) for t in sources(expr)]
            self._kept.add(expr.result)
        elif self._is_assigned(expr):
            own = [self._as_narrow(t) for t in sources(expr)]
            self._kept.update(results(expr))
        elif isinstance(expr, VIEWS) and expr.result in self._multiplied:
            if expr.source not in self._narrow:
                return False
            own = [self._narrow[expr.source]]
        else:
            return False
        self.exprs.append(with_sources(expr, own))
        self._give(results(expr)[0], results(expr)[0])
        return True

    def _is_assigned(self, expr: Expr) -> bool:
        """Tell whether ``expr`` is a copy, to elements of which others are assigned."""
        if not isinstance(expr, Pointwise) or not is_copy(expr.op):
            return False
        users = self._fusion.users[expr.result]
        return any(isinstance(e, Assign) and e.source is expr.result for e in users)

    def _keep_loop(self, expr: Loop) -> None:
        """Append a loop, which reads and leaves what it has in memory."""
        self.exprs.append(
            with_sources(expr, [self._as_narrow(t) for t in sources(expr)])
        )
        for tensor in expr.results:
            if tensor.dtype.is_half:
                self._give(tensor, tensor)
                self._kept.add(tensor)

    def _as_narrow(self, tensor: TensorView) -> TensorView:
        return self._narrow.get(tensor) or self.narrow(tensor)

    def _cast(
        self, tensor: TensorView, dtype: DType, like: TensorView | None = None
    ) -> TensorView:
        if tensor.dtype is dtype:
            return tensor
        made = replace(like or tensor, dtype=dtype, axes=tensor.axes)
        self.exprs.append(Pointwise(CAST, (tensor,), made))
        return made

    def narrow(self, output: TensorView) -> TensorView:
        """Return what stands for ``output``, rounded to its dtype."""
        if not output.dtype.is_half or output in self._kept:
            return output
        made = replace(output)
        self.exprs.append(Pointwise(CAST, (self._wide[output],), made))
        return made
