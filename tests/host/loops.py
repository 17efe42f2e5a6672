# SPDX-License-Identifier: Apache-2.0
"""Random programs of loops and conditions whose statements depend on the indices."""

from __future__ import annotations

import random
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

import nfuser
import nfuser.compiler.ir.scalars.functions as scalar_functions
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView

    Values: TypeAlias = dict[Any, Any]  # arrays by tensor, integers by scalar
    Step: TypeAlias = Callable[[Values], None]

SIZE = 5
WAYS: tuple[tuple[Literal["static", "dynamic"], bool], ...] = (
    ("dynamic", True),
    ("static", True),
    ("dynamic", False),
    ("static", False),
)


def _head(ops: Any, t: Any, n: Any) -> Any:
    return ops.sum(ops.slice(t, [0], [n]), 0)


def _tail(ops: Any, t: Any, n: Any) -> Any:
    return ops.sum(ops.slice(t, [n], [ops.size(t, 0)]), 0)


def _two(ops: Any, t: Any, n: Any) -> Any:  # or what is left at the end
    return ops.sum(ops.slice(t, [n], [ops.add(n, 2)]), 0)


def _padded(ops: Any, t: Any, n: Any) -> Any:
    return ops.slice(ops.cumsum(ops.pad(t, [n, 1]), 0), [0], [SIZE])


def _turned(ops: Any, t: Any, n: Any) -> Any:
    parts = ops.slice(t, [n], [ops.size(t, 0)]), ops.slice(t, [0], [n])
    return ops.sin(ops.cat([*parts], 0))


def _laid(ops: Any, t: Any, n: Any) -> Any:
    rows, columns = ops.size(t, 0), ops.add(n, 1)
    wide = ops.pad(t, [0, ops.mul(rows, n)])
    return ops.sum(ops.cos(ops.reshape(wide, [columns, rows])), 0)


# Of a row and an index; what they give has SIZE elements, or one.
FUNCTIONS: tuple[tuple[Callable[..., Any], Callable[[Any, int], Any]], ...] = (
    (_head, lambda t, n: t[:n].sum()),
    (_tail, lambda t, n: t[n:].sum()),
    (_two, lambda t, n: t[n : n + 2].sum()),
    (_padded, lambda t, n: np.pad(t, (n, 1)).cumsum()[:SIZE]),
    (_turned, lambda t, n: np.sin(np.concatenate([t[n:], t[:n]]))),
    (_laid, lambda t, n: np.cos(t) + n),
)


@cache
def _fusion(number: int) -> Fusion:
    with nfuser.FusionDefinition() as fd:
        t = fd.define_tensor(shape=[-1], dtype=nfuser.DataType.Double)
        n = fd.define_scalar(dtype=nfuser.DataType.Int)
        fd.add_output(FUNCTIONS[number][0](fd.ops, t, n))
    return fd.fusion


class Loops:
    """A program that adds to one row, and what NumPy makes of it."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self._hc = nfuser.HostIrContainer(f"loops{seed}")
        self._given = self._hc.define_tensor([-1, SIZE], np.float64)
        self._count = self._hc.define_integer()
        self._known: list[Scalar] = [self._count]
        self._total = self._hc.reduce("sum", self._given, 0)
        self._rows: list[TensorView] = [self._total]
        self._steps = self._block(2, self._dice.randint(2, 3))
        self._hc.add_output(self._total)
        self.program = self._hc.program()

    def meaning(self, given: Any, count: int) -> Any:
        """Return the row."""
        values: Values = {self._count: count, self._given: given}
        values[self._total] = given.sum(axis=0)
        for step in self._steps:
            step(values)
        return values[self._total]

    def _block(self, depth: int, length: int) -> list[Step]:
        """Add statements; return what they mean. What they make ends with them."""
        known, rows = list(self._known), list(self._rows)
        kinds = [self._launch, self._launch, self._update, self._row]
        kinds += [self._loop, self._loop, self._when] if depth else []
        made = [self._dice.choice(kinds)(depth - 1) for _ in range(length)]
        self._known, self._rows = known, rows
        return made

    def _launch(self, _: int) -> Step:
        row, index = self._dice.choice(self._rows), self._dice.choice(self._known)
        number, total = self._dice.randrange(len(FUNCTIONS)), self._total
        meaning = FUNCTIONS[number][1]
        found = self._hc.launch(_fusion(number), row, index)
        halved = self._hc.binary("multiply", found, 0.5)
        self._hc.binary("add", total, halved, out=total)

        def step(values: Values) -> None:
            values[total] += 0.5 * meaning(values[row], values[index])

        return step

    def _update(self, _: int) -> Step:
        """Add a row to what lies at one index."""
        index, total, hc = self._dice.choice(self._known), self._total, self._hc
        row = self._dice.choice(self._rows)
        place = hc.slice(total, (index,), (index + 1,))
        hc.binary("add", place, hc.reduce("max", row, 0), out=place)

        def step(values: Values) -> None:
            at = values[index]
            values[total][at] += values[row].max()

        return step

    def _row(self, _: int) -> Step:
        index, hc = self._dice.choice(self._known), self._hc
        row = hc.unary("sin", hc.row(self._given, index))
        self._rows.append(row)
        given = self._given

        def step(values: Values) -> None:
            values[row] = np.sin(values[given][values[index]])

        return step

    def _loop(self, depth: int) -> Step:
        first, last = self._dice.choice(self._known), self._dice.choice(self._known)
        start, stop, jump = self._dice.choice(
            [
                (sc.const(0), sc.const(SIZE), 2),
                (sc.const(0), first, 1),
                (first, sc.const(SIZE), 1),
                (first, last, 1),
                (last, sc.const(-1), -2),
            ]
        )
        known = self._known
        with self._hc.loop(start, stop, jump) as index:
            self._known = [*known, index]
            body = self._block(depth, self._dice.randint(1, 3))
        self._known = known

        def step(values: Values) -> None:
            begin, end = scalar_walk.evaluate_all([start, stop], values)
            for values[index] in range(begin, end, jump):
                for inner in body:
                    inner(values)

        return step

    def _when(self, depth: int) -> Step:
        first, last = self._dice.choice(self._known), self._dice.choice(self._known)
        other: list[Step] = []
        with self._hc.when(scalar_functions.less(first, last)):
            body = self._block(depth, self._dice.randint(1, 2))
        if self._dice.random() < 0.5:
            with self._hc.otherwise():
                other = self._block(depth, 1)

        def step(values: Values) -> None:
            for inner in body if values[first] < values[last] else other:
                inner(values)

        return step


def check_loops(seed: int, backend: str) -> None:
    """Raise unless a program does what NumPy does, whichever way it is run."""
    made = Loops(seed)
    given = np.random.default_rng(seed).normal(size=(SIZE, SIZE))
    resize, cached = WAYS[seed % len(WAYS)]
    evaluator = nfuser.HostIrEvaluator(
        made.program,
        backend=None if backend == "cpu" else backend,
        resize=resize,
        cache=cached,
    )
    for count in (seed % SIZE, 0, SIZE - 1):
        want = made.meaning(given, count)
        for _ in range(3):  # in pieces, linked, and natively
            (got,) = evaluator.run([given, count])
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)
