# SPDX-License-Identifier: Apache-2.0
"""Sums that wait for other sums of the same rows, written so that they need not.

The gradient of a normalisation sums ``dy / s + c * (x - mean)``, where ``c`` is known
once another sum is: two passes over the rows. With ``c`` taken out, the sums of
``dy / s`` and of ``x - mean`` are found in the same pass as that one. Factors that do
not change along a row are taken out of all sums then, so that those of equal products
become one. All is multiplied and added up in f64: products of f32 do not overflow it,
and a difference from a mean, taken apart, keeps the digits that f32 has of it.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from nfuser.domains.space import space_of
from nfuser.dtypes import DType
from nfuser.ir.base import value
from nfuser.ir.expr import Expand, Pointwise, Reduce, ReduceOp, results, sources
from nfuser.ir.fusion import Fusion, Replacement, rebuild, remembered
from nfuser.rewrite.common_subexpressions import merge_common_subexpressions
from nfuser.rewrite.dead_code import drop_dead_code
from nfuser.schedule.reduction.maker import Maker

if TYPE_CHECKING:
    from nfuser.ir.expr import Expr
    from nfuser.ir.tensor import TensorView

_MOST_TERMS = 8  # that a sum is taken apart into
_QUOTIENTS = ("divide", "divide_near")


@remembered
def take_sums_apart(fusion: Fusion) -> Fusion:
    """Return ``fusion`` with fewer passes over its rows, or itself."""
    before = _passes(fusion)
    if before < 2:
        return fusion
    made = drop_dead_code(merge_common_subexpressions(rebuild(fusion, _Rewriter())))
    return made if _passes(made) < before else fusion


def _passes(fusion: Fusion) -> int:
    return max(space_of(fusion).levels.values(), default=-1) + 1


@value
class _Term:
    """A product of what changes along rows, times and over what does not."""

    changing: tuple[TensorView, ...] = ()
    over: tuple[TensorView, ...] = ()
    times: tuple[TensorView, ...] = ()
    is_negative: bool = False


class _Rewriter:
    """Replaces sums of f32, and knows what has been defined so far."""

    def __init__(self) -> None:
        self._of: dict[TensorView, Expr] = {}
        self._place: dict[TensorView, int] = {}
        self._waiting: set[TensorView] = set()  # for what is folded

    def __call__(self, expr: Expr) -> Replacement | None:
        made = self._replaced(expr) if isinstance(expr, Reduce) else None
        for new in made.exprs if made else (expr,):
            waits = isinstance(new, Reduce) or not self._waiting.isdisjoint(
                sources(new)
            )
            for tensor in results(new):
                self._of[tensor], self._place[tensor] = new, len(self._place)
            self._waiting.update(results(new) if waits else ())
        return made

    def _replaced(self, expr: Reduce) -> Replacement | None:
        if expr.op is not ReduceOp.SUM or expr.source.dtype is not DType.F32:
            return None
        terms = self._terms(expr.source, expr)
        if not terms or not any(t.changing for t in terms):
            return None
        if not all(_fills(t, expr.source) for t in terms):
            return None
        return _summed(expr, [self._in_order(t) for t in terms])

    def _in_order(self, term: _Term) -> _Term:
        """Return the product as all others of the same factors are written."""
        factors = sorted(term.changing, key=self._place.__getitem__)
        return replace(term, changing=tuple(factors))

    def _terms(self, tensor: TensorView, of: Reduce) -> list[_Term] | None:
        """Return what ``tensor`` is the sum of; None if it waits for something."""
        if (constant := self._constant(tensor, of)) is not None:
            return [_Term(times=(constant,))]
        whole = None if tensor in self._waiting else [_Term((tensor,))]
        expr = self._of[tensor]
        if not isinstance(expr, Pointwise) or tensor.ndim != of.source.ndim:
            return whole
        name = expr.op.name
        is_sum = name in ("add", "subtract")
        if whole and is_sum:
            return whole
        if name not in ("add", "subtract", "multiply", "negative", *_QUOTIENTS):
            return whole
        parts = [self._terms(t, of) for t in expr.operands]
        if any(part is None for part in parts):
            return whole
        found = _joined(name, [part for part in parts if part is not None])
        return found if found and len(found) <= _MOST_TERMS else whole

    def _constant(self, tensor: TensorView, of: Reduce) -> TensorView | None:
        """Return what ``tensor`` has in common along the axes of ``of``, if all.

        It has the rank of the result of ``of``, or less, or extent 1 along the axes.
        """
        rank = of.source.ndim
        missing = rank - tensor.ndim
        if all(axis < missing for axis in of.axes):
            return tensor
        if missing:
            return None
        expr = self._of[tensor]
        source = expr.source if isinstance(expr, Expand) else tensor
        if source.ndim == rank and all(source.axes[k].is_broadcast for k in of.axes):
            return source
        return None


def _fills(term: _Term, source: TensorView) -> bool:
    """Tell whether a term has the shape of ``source``, or is the same everywhere."""
    return not term.changing or any(t.shape == source.shape for t in term.changing)


def _joined(name: str, parts: list[list[_Term]]) -> list[_Term] | None:
    """Return the terms of an operation on sums of terms, if there are any."""
    first = parts[0]
    if name == "negative":
        return [_negated(t) for t in first]
    second = parts[1]
    if name in _QUOTIENTS:
        if len(second) > 1 or second[0].changing:
            return None
        (divisor,) = second
        second = [replace(divisor, over=divisor.times, times=divisor.over)]
    if name in ("add", "subtract"):
        return first + [_negated(t) if name == "subtract" else t for t in second]
    if len(first) > 1 and len(second) > 1:
        return None  # powers of a small difference: its digits are not left in terms
    return [
        _Term(
            a.changing + b.changing,
            a.over + b.over,
            a.times + b.times,
            a.is_negative is not b.is_negative,
        )
        for a, b in product(first, second)
    ]


def _negated(term: _Term) -> _Term:
    return replace(term, is_negative=not term.is_negative)


def _summed(expr: Reduce, terms: list[_Term]) -> Replacement:
    """Return the sum of ``expr`` as that of its ``terms``, each summed up by itself."""
    make = Maker(expr)
    sums = {term: _sum_of(make, expr, term) for term in dict.fromkeys(terms)}
    terms = sorted(terms, key=lambda t: (not t.changing, t.is_negative))
    first, *rest = terms
    total = sums[first]
    if first.is_negative:
        total = make.point("negative", total)
    for term in rest:
        name = "subtract" if term.is_negative else "add"
        total = make.point(name, total, sums[term])
    return make.replacement(make.cast(total, DType.F32))


def _sum_of(make: Maker, expr: Reduce, term: _Term) -> TensorView:
    """Return the sum of one term in f64, but for its sign."""
    source, axes = expr.source, expr.axes
    if term.changing:
        first, *rest = (make.cast(t, DType.F64) for t in term.changing)
        for factor in rest:
            first = make.point("multiply", first, factor)
        found = make.reduce(ReduceOp.SUM, first, axes)
    else:
        found = make.count(source, axes, DType.F64)
    for name, factors in (("multiply", term.times), ("divide", term.over)):
        for factor in factors:
            wide = make.cast(factor, DType.F64)
            if factor.ndim == source.ndim:
                wide = make.squeeze(wide, axes)
            found = make.point(name, found, wide)
    return found
