# SPDX-License-Identifier: Apache-2.0
"""Find the arrays that the turns of a loop write one row after another.

Each turn writes the row at its own place, counted by the loop, and reads this row, rows
that the last turns wrote, and rows that no turn has written yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.functions import less
from nfuser.compiler.ops.loops.induction import Counts, ends_of
from nfuser.compiler.ops.loops.row_access import history_of, reads_of

if TYPE_CHECKING:
    from nfuser.compiler.ir.expr import Expr, Loop
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.builder import Builder
    from nfuser.compiler.ops.loops.induction import Counted
    from nfuser.compiler.ops.loops.row_access import History, RowAccess, RowPart

MOST_LAGS = 4  # rows that are carried


@node
class Rows:
    """Rows of the carried ``array`` that turns write, and what they read of it.

    Turn t writes ``value`` at ``first + step * t`` along ``axis`` of a ``part``.
    ``versions`` are the tensors that the array is in a turn, ``writes`` what makes
    them. ``lags`` are reads of what a turn wrote so many turns before, ``known`` those
    of what this one has written; all other ``reads`` are of rows as they were. All are
    of rows that are there.
    """

    array: TensorView
    axis: int
    part: RowPart
    first: Scalar
    step: int
    value: TensorView
    versions: tuple[TensorView, ...]
    writes: frozenset[Expr]
    lags: dict[TensorView, int]
    known: dict[TensorView, TensorView]
    reads: frozenset[TensorView]

    @property
    def shape(self) -> tuple[Scalar, ...]:
        """The extents of a row."""
        gone = (self.axis, *self.part.dropped)
        return tuple(n for k, n in enumerate(self.part.shape) if k not in gone)

    @property
    def kept_axis(self) -> int:
        """The number of ``axis`` among those of the part that are not dropped."""
        return self.axis - sum(k < self.axis for k in self.part.dropped)

    @property
    def most_lags(self) -> int:
        """How many rows are carried."""
        return max(self.lags.values(), default=0)


def find_rows(b: Builder, loop: Loop, number: int) -> Rows | None:
    """Return the rows of carried value ``number``, or None where it has none.

    That rows are there is asked of each call where sizes alone do not say it. A turn
    that has a loop of its own writes into the array itself.
    """
    if loop.trips is None or loop.flag is not None or loop.turn is None:
        return None
    if loop.body.loops:
        return None
    given = {a.slot: a.result for a in loop.body.arguments}
    array = given[number]
    if array.dtype.is_complex:
        return None
    history = history_of(loop.body, array, loop.body.outputs[number])
    reads = history and reads_of(loop.body, history, number)
    if history is None or reads is None:
        return None
    return _Finding(b, loop, array, history, reads).rows()


class _Finding:
    def __init__(
        self,
        b: Builder,
        loop: Loop,
        array: TensorView,
        history: History,
        reads: list[RowAccess],
    ) -> None:
        self._b, self._loop, self._array = b, loop, array
        self._history, self._reads = history, reads
        self._last = history.writes[-1]
        self._counted = Counts(loop.turn, loop.body.definition)
        self._wanted: list[Scalar] = []  # conditions of what is read

    def rows(self) -> Rows | None:
        """Return the rows if all that is read and written is in step."""
        last = self._last
        place = self._counted.of(last.index)
        if place is None or not place[1] or not self._is_alike(place):
            return None
        lags: dict[TensorView, int] = {}
        known: dict[TensorView, TensorView] = {}
        for read in self._reads:
            found = self._classified(read, place)
            if found is None:
                return None
            if not isinstance(found, int):
                known[read.row] = found
            elif found:
                lags[read.row] = found
        assert self._loop.trips is not None
        runs = less(0, self._loop.trips)
        if not all(map(self._holds, (runs, *self._inside(place), *self._wanted))):
            return None
        return Rows(
            self._array,
            last.axis,
            last.part,
            *place,
            last.row,
            tuple(self._history.versions),
            self._history.exprs,
            lags,
            known,
            frozenset(read.row for read in self._reads),
        )

    def _is_alike(self, place: Counted) -> bool:
        """Tell whether all writes of a turn are of the same row."""
        last = self._last
        return all(
            w.axis == last.axis
            and w.part.is_as(last.part, last.axis)
            and self._counted.of(w.index) == place
            for w in self._history.writes
        )

    def _inside(self, place: Counted) -> list[Scalar]:
        """Return when all turns write rows that are there, counted from the front."""
        assert self._loop.trips is not None
        low, high = ends_of(self._loop.trips, place)
        extent = self._array.shape[self._last.axis]
        return [less(-1, low), less(high, extent)]

    def _holds(self, condition: Scalar) -> bool:
        """Tell whether ``condition`` holds in all calls of this trace."""
        if self._b.today(condition) is None:
            return False
        return bool(self._b.ask(condition, usual=1))

    def _classified(self, read: RowAccess, place: Counted) -> TensorView | int | None:
        """Return the row that was written, how many turns ago, 0 if it never was.

        None where that cannot be said.
        """
        at, number = self._counted.of(read.index), self._history.versions[read.version]
        if at is None or at[1] != place[1] or read.axis != self._last.axis:
            return None
        gap = at[0] - place[0]
        if not isinstance(gap, sc.Const):
            return None
        ahead, rest = divmod(gap.value, place[1])
        if rest:
            return None
        if ahead > 0 or (ahead == 0 and number == 0):
            # Counted from the end, it would be a row that was written long ago.
            assert self._loop.trips is not None
            self._wanted.append(less(-1, ends_of(self._loop.trips, at)[0]))
            return 0
        if not read.part.is_as(self._last.part, self._last.axis):
            return None
        if ahead == 0:
            return self._history.writes[number - 1].row
        if -ahead > MOST_LAGS:
            return None
        self._wanted += self._is_there(place, -ahead, number)
        return -ahead

    def _is_there(self, place: Counted, lag: int, number: int) -> list[Scalar]:
        """Return when the rows before the first one are no rows that turns write.

        Only the row before row 0, which is the last one, comes late enough; where there
        is one row, it is what this turn has written, if it has (``number`` times).
        """
        first, step = place
        before, extent = first - step * lag, self._array.shape[self._last.axis]
        if step < 0:
            return [less(before, extent)]
        if step * lag > 1 or sc.is_natural(before):
            return [less(-1, before)]
        return [
            less(-1, first),
            *([less(1, extent)] if number else []),
        ]
