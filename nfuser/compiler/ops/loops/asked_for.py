# SPDX-License-Identifier: Apache-2.0
"""Where a body asks for what it computes: both sides of a branch are written down.

What ``i < n and x[i] > 0`` reads of ``x`` is asked for where ``i < n`` holds, and what
one side of a choice reads where that side is chosen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from nfuser.compiler.ir.expr import Expand, ExpandDims, Pointwise, results, sources
from nfuser.compiler.ir.point_op import POINT_OPS, SELECT, is_copy

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.builder import Builder

Condition: TypeAlias = "TensorView | None"  # None holds always
_BOTH, _EITHER = POINT_OPS["bit_and"], POINT_OPS["bit_or"]


class AskedFor:
    """Conditions under which what ``exprs`` compute is asked for by ``outputs``.

    They are written down by ``b``. Some of the expressions are ``stages``, which run
    one after another: what stands before one does not hang on what it leaves.
    """

    def __init__(
        self,
        b: Builder,
        exprs: Sequence[Expr],
        outputs: Sequence[TensorView],
        stages: Collection[Expr],
    ) -> None:
        self._b, self._exprs, self._outputs = b, exprs, outputs
        self._definition = {t: e for e in exprs for t in results(e)}
        self._joined: dict[tuple[str, TensorView, TensorView], TensorView] = {}
        self._inverted: dict[TensorView, TensorView] = {}
        self._latest: dict[TensorView, int] = {}  # the last stage that each hangs on
        count = 0
        for expr in exprs:
            count += expr in stages
            read = max((self._latest.get(t, 0) for t in sources(expr)), default=0)
            own = count if expr in stages else read
            self._latest.update(dict.fromkeys(results(expr), own))

    def where(
        self, tensors: Iterable[TensorView], stage: int
    ) -> dict[TensorView, Condition]:
        """Return where each of ``tensors`` is asked for; those that are not are left.

        All of them stand after that many stages.
        """
        wanted = tuple(tensors)
        found = set(wanted)
        for expr in self._exprs:
            if not found.isdisjoint(sources(expr)):
                found.update(results(expr))
        asked: dict[TensorView, Condition] = {
            t: None for t in self._outputs if t in found
        }
        for expr in reversed(self._exprs):
            own = [asked[t] for t in results(expr) if t in asked]
            if not own:
                continue
            of_all = self.any_of(own)
            for operand, test, side in self._read(expr):
                if operand not in found:
                    continue
                is_known = test is not None and self._latest.get(test, 0) <= stage
                here = self._both(of_all, test, side) if is_known else of_all
                others = [asked[operand]] if operand in asked else []
                asked[operand] = self.any_of([*others, here])
        return {t: asked[t] for t in wanted if t in asked}

    def _read(self, expr: Expr) -> Iterator[tuple[TensorView, Condition, bool]]:
        """Give what ``expr`` reads, and of which truth value it does so."""
        match expr:
            case Pointwise(op, (test, yes, no)) if op is SELECT:
                number = self._number(test)
                yield test, None, True
                yield yes, number, True
                yield no, number, False
            case Pointwise(op, (first, second)) if op in (_BOTH, _EITHER):
                is_truth = first.dtype.is_bool and not first.ndim
                yield first, None, True
                yield second, first if is_truth else None, op is _BOTH
            case _:
                for t in sources(expr):
                    yield t, None, True

    def _number(self, test: TensorView) -> Condition:
        """Return the one truth value that ``test`` is, however it was stretched."""
        while test.ndim:
            expr = self._definition.get(test)
            match expr:
                case Expand() | ExpandDims():
                    test = expr.source
                case Pointwise(op, (operand,)) if is_copy(op):
                    test = operand
                case _:
                    return None
        return test

    def _both(self, one: Condition, test: Condition, side: bool) -> Condition:
        if test is None:
            return one
        if not side:
            if test not in self._inverted:
                self._inverted[test] = self._b.point("invert", test)
            test = self._inverted[test]
        return test if one is None else self._join("bit_and", one, test)

    def any_of(self, conditions: Sequence[Condition]) -> Condition:
        """Return where one of ``conditions`` holds."""
        found: Condition = conditions[0]
        for other in dict.fromkeys(conditions[1:]):
            if found is None or other is None:
                return None
            if other is not found:
                found = self._join("bit_or", found, other)
        return found

    def _join(self, name: str, one: TensorView, other: TensorView) -> TensorView:
        key = name, one, other
        if key not in self._joined:
            self._joined[key] = self._b.point(name, one, other)
        return self._joined[key]
