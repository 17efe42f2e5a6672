# SPDX-License-Identifier: Apache-2.0
"""What is written of one row, and what becomes of it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import nfuser.compiler.ops as ops
from nfuser.compiler.ir.expr import Argument, Pointwise, results, sources
from nfuser.compiler.ops.customs import Custom
from nfuser.compiler.transforms.batch.stacks import Stacks
from nfuser.compiler.transforms.batch.step import of_point, step

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops import Builder


class BatchRows:
    """Rows of some tensors, and what is computed of each of them.

    ``ended`` gets what nobody may read while ``written`` is closed.

    >>> from nfuser.compiler.dtypes import DType
    >>> from nfuser.compiler.ir.text import text
    >>> b = ops.Builder()
    >>> x, y = b.argument(0, 2, DType.F64), b.argument(1, 1, DType.F64)
    >>> rows = BatchRows(b, x.shape[0])
    >>> with rows.written():
    ...     total = ops.sum(b, ops.multiply(b, rows.row(x), y))
    >>> print(text(b.fusion([rows.all(total)])), end="")
    fusion fusion(T0: f64[? n0, ? n1], T1: f64[? n2]) -> T3
      T2: f64[? n0, ? select(n1 == 1, n2, n1)] = multiply(T0, T1)
      T3: f64[? n0] = sum(T2, axes=(1,))
    """

    def __init__(
        self, b: Builder, count: Scalar, ended: set[TensorView] | None = None
    ) -> None:
        self._b = b
        self._stacks = Stacks(b, count)
        self._ended: set[TensorView] = set() if ended is None else ended

    def row(self, whole: TensorView) -> TensorView:
        """Return what stands for any row of ``whole``, which has ``count`` of them."""
        made = self._b.new(whole.shape[1:], whole.dtype)
        self._b.emit(Argument(-1, made))
        self._stacks.held[made] = whole
        return made

    def differs(self, t: TensorView) -> bool:
        """Tell whether ``t`` differs from row to row."""
        return self._stacks.differs(t)

    def all(self, t: TensorView) -> TensorView:
        """Return all rows of ``t``; one that is the same in each is stretched."""
        return self._stacks.all(t)

    @contextmanager
    def written(self) -> Generator[None]:
        """Let what is written meanwhile be of one row, and then of all."""
        b, held = self._b, self._stacks.held
        begin = len(b.exprs)
        self._ended.difference_update(held)
        b.exprs += [Argument(-1, t) for t in held]
        finished = False
        try:
            yield
            finished = True
        finally:
            own = b.exprs[begin:]
            del b.exprs[begin:]
            differing = self._differing(own)
            # What reads nothing comes first: a rule may read a constant that is known.
            for reads in (False, True):
                for expr in own:
                    if bool(sources(expr)) is not reads:
                        continue
                    if not differing.issuperset(results(expr)):
                        b.emit(expr)
                    elif reads and finished:
                        self._raise(expr)
            self._ended |= differing

    def _differing(self, own: Sequence[Expr]) -> set[TensorView]:
        """Return what differs from row to row; results of one way back do together."""
        customs = self._b.customs
        found = set(self._stacks.held)
        for expr in own:
            made = results(expr)
            custom = customs.get(made[0])
            read = sources(expr)
            if custom is not None and made[0] is custom.results[0]:
                twins = set(custom.results)
                of_all = (t for e in own if results(e)[0] in twins for t in sources(e))
                read = (*custom.inputs, *of_all)
                made = custom.results
            if any(t in found for t in read):
                found.update(made)
        return found

    def _raise(self, expr: Expr) -> None:
        """Write ``expr`` of all rows, and what it is to derivatives."""
        b, stacks = self._b, self._stacks
        made = results(expr)
        b.source = made[0].source
        if b.is_twin(made[0]):
            whole: Sequence[TensorView] = (b.twin(stacks.all(sources(expr)[0])),)
        else:
            whole = step(stacks, expr)
        stacks.held.update(zip(made, whole, strict=True))
        for own, all_ in zip(made, whole, strict=True):
            if own in b.stopped:
                b.stopped.add(all_)
            if (meant := b.meant.get(own)) is not None:
                b.meant[all_] = self._meant(meant, all_)
        custom = b.customs.get(made[0])
        if custom is not None and made[0] is custom.results[-1]:
            self._take_part(custom)

    def _meant(
        self, meant: Pointwise | Callable[[], TensorView], whole: TensorView
    ) -> Pointwise | Callable[[], TensorView]:
        if isinstance(meant, Pointwise):
            return of_point(self._stacks, meant, whole)

        def again() -> TensorView:
            with self.written():
                other = meant()
            return self.all(other)

        return again

    def _take_part(self, custom: Custom) -> None:
        """Let derivatives go back through all rows as they go through one."""
        held = self._stacks.held

        def pull(ts: Sequence[TensorView | None]) -> list[TensorView | None]:
            with self.written():
                given = [None if t is None else self.row(t) for t in ts]
                found = custom.pull(given)
            pairs = zip(custom.inputs, found, strict=True)
            return [self._cotangent(source, t) for source, t in pairs]

        inputs = tuple(held.get(t, t) for t in custom.inputs)
        made = Custom(inputs, tuple(held[t] for t in custom.results), pull)
        self._b.customs.update(dict.fromkeys(made.results, made))

    def _cotangent(self, source: TensorView, t: TensorView | None) -> TensorView | None:
        """Return the cotangent of all rows; one of what they share is their sum."""
        if t is None:
            return None
        found = self.all(t)
        return found if self.differs(source) else ops.sum(self._b, found, 0)
