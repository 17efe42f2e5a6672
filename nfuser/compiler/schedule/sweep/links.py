# SPDX-License-Identifier: Apache-2.0
"""What a chain of kernels has in memory, and which of it no other kernel sees.

Each link is a kernel of its own by what it computes: a loop, or what is elementwise.
All go over the same rows. If each row reads and writes its own part of what the links
share, then one thread may run all links on a row before it takes the next. An array
that begins with anything, and that nothing else reads, is a column then: a thread has
what one row leaves in it, and writes the next row over that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.domains.loops.first_turn import first_turn
from nfuser.compiler.domains.space import Mismatch, find_space, reads, roots
from nfuser.compiler.domains.unset import is_unset
from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.expr import Argument, Assign
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.schedule.facts.memory import memory_tensors
from nfuser.compiler.segment import segment

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nfuser.compiler.domains.loops.first_turn import FirstTurn, Row
    from nfuser.compiler.domains.maps import Point
    from nfuser.compiler.domains.space import Space
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.scalars.scalar import LoopIndex, Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.segment import FindScheduler

MOST_LINKS = 16  # the code of all is in one kernel
SWEEP, POINTWISE = "sweep", "pointwise"  # the schedulers of links


@node
class Portion:
    """Which portion of ``whole`` a tensor is: ``starts + steps * index``."""

    whole: TensorView
    starts: tuple[Scalar, ...]
    steps: tuple[int, ...]


@node
class Link:
    """What one kernel would run: a fusion without a loop, maybe the first ``turn``."""

    fusion: Fusion
    space: Space
    turn: FirstTurn | None

    @property
    def rows(self) -> Mapping[TensorView, Row]:
        """What each turn stores, if there are turns."""
        none: dict[TensorView, Row] = {}
        return none if self.turn is None else self.turn.rows


@node
class Chain:
    """Links in order, and which part of what each of their tensors is.

    ``columns`` are the arrays that a thread has for itself, each with the axes that
    tell one row from another; ``arrays`` are those in memory that a link writes.
    """

    links: tuple[Link, ...]
    places: Mapping[TensorView, Portion]
    columns: Mapping[TensorView, frozenset[int]]
    arrays: frozenset[TensorView]

    @property
    def kept(self) -> tuple[LoopIndex, ...]:
        """The loops over the rows, which all links have."""
        return self.links[0].space.kept


def find_chain(fusion: Fusion, find: FindScheduler) -> Chain | Mismatch:
    """Return ``fusion`` as links, or why it is no chain."""
    links: list[Link] = []
    stored: list[TensorView] = []
    begun: set[TensorView] = set()
    for piece in segment(fusion, find).segments:
        if is_unset(piece.fusion):
            begun.update(piece.fusion.outputs)
        elif piece.is_kernel:
            link = _link(piece.fusion, piece.scheduler.name)
            if isinstance(link, Mismatch):
                return link
            links.append(link)
            stored += piece.fusion.outputs
    if len(links) > MOST_LINKS or sum(link.turn is not None for link in links) < 2:
        return Mismatch("a chain has two loops or more")
    kept = links[0].space.kept
    for link in links:
        if not kept or link.space.kept != kept:
            return Mismatch("its links run over other axes", link.fusion.outputs[0])
    return _Memory(fusion, links, begun, stored).chain()


def _link(fusion: Fusion, scheduler: str) -> Link | Mismatch:
    if scheduler == SWEEP:
        turn = first_turn(fusion)
        if isinstance(turn, Mismatch):
            return turn
        return Link(turn.fusion, turn.space, turn)
    space = find_space(fusion)
    if scheduler != POINTWISE or isinstance(space, Mismatch):
        return Mismatch("no loop, and not elementwise", fusion.outputs[0])
    return Link(fusion, space, None)


class _Memory:
    """Where the tensors of links lie, and who reads and writes them."""

    def __init__(
        self,
        fusion: Fusion,
        links: Sequence[Link],
        begun: set[TensorView],
        stored: Sequence[TensorView],
    ) -> None:
        self._fusion, self._links, self._begun = fusion, links, begun
        self._stored = set(stored)
        self._assigned = {a.value: a for a in fusion.assignments}
        self._places: dict[TensorView, Portion] = {}
        self._rows: dict[TensorView, dict[int, LoopIndex]] = {}

    def chain(self) -> Chain | Mismatch:
        given = {a.result for a in self._fusion.arguments}
        for link in self._links:
            for tensor in _in_memory(link):
                self._place(tensor)
        wholes = {place.whole for place in self._places.values()}
        written = {self._places[t].whole for t in self._stored if t in self._places}
        read_only = wholes - written
        self._places = {
            t: p for t, p in self._places.items() if p.whole not in read_only
        }
        outside = set(self._fusion.outputs)
        for link in self._links:
            for tensor, point, axis in _touched(link):
                if tensor not in self._places:
                    if tensor in outside and _reads(link, tensor):
                        return Mismatch("another kernel reads it, too", tensor)
                    continue
                if not self._is_own(self._places[tensor], point, axis, link):
                    return Mismatch("a row reads or writes another one's", tensor)
        columns = {w: frozenset(self._rows[w]) for w in written - given}
        if not any(is_long(*column) for column in columns.items()):
            return Mismatch("no loop leaves anything for another one alone")
        for whole in columns:
            if whole.dtype.compute is not whole.dtype:
                return Mismatch("memory rounds what a thread would not", whole)
        arrays = frozenset(written & given)
        return Chain(tuple(self._links), self._places, columns, arrays)

    def _place(self, tensor: TensorView) -> None:
        """Find what ``tensor`` is a part of; what only goes out is no part."""
        assign = self._assigned.get(tensor)
        if assign is not None:
            whole = self._whole(assign.source)
            self._places[tensor] = Portion(whole, assign.starts, assign.steps)
        elif tensor not in self._fusion.outputs:
            zeros, ones = (sc.const(0),) * tensor.ndim, (1,) * tensor.ndim
            self._places[tensor] = Portion(self._whole(tensor), zeros, ones)

    def _whole(self, tensor: TensorView) -> TensorView:
        expr = self._fusion.definition[tensor]
        while isinstance(expr, Assign):
            tensor = expr.source
            expr = self._fusion.definition[tensor]
        return tensor

    def _is_own(
        self, place: Portion, point: Point, axis: int | None, link: Link
    ) -> bool:
        """Tell whether all indices of the row are those of the kernel's row."""
        index = list(point.index)
        if axis is not None:
            index.insert(axis, sc.const(-1))  # where turns lie
        rows: dict[int, LoopIndex] = {}
        for k, (start, step, at) in enumerate(
            zip(place.starts, place.steps, index, strict=True)
        ):
            moved = start + at * step
            if isinstance(moved, sc.LoopIndex) and moved in link.space.kept:
                rows[k] = moved
        if self._rows.setdefault(place.whole, rows) != rows:
            return False
        return sorted(rows.values(), key=lambda x: x.number) == list(link.space.kept)


def is_long(whole: TensorView, rows: frozenset[int]) -> bool:
    """Tell whether a column of ``whole`` has more than one place for each row."""
    return any(
        not axis.is_broadcast for k, axis in enumerate(whole.axes) if k not in rows
    )


def _in_memory(link: Link) -> Iterator[TensorView]:
    """Yield what a kernel of ``link`` reads and stores, wholes in place of rows."""
    rows = link.rows
    for tensor in memory_tensors(link.fusion):
        yield rows[tensor].whole if tensor in rows else tensor


def _touched(link: Link) -> Iterator[tuple[TensorView, Point, int | None]]:
    """Yield where ``link`` reads and writes memory, and along which axis turns lie."""
    for tensor in link.fusion.outputs:
        row = link.rows.get(tensor)
        whole, axis = (tensor, None) if row is None else (row.whole, row.axis)
        yield whole, link.space.points[tensor], axis
    found = reads(link.fusion, roots(link.fusion, link.space))
    for tensor, point in found if link.turn is None else link.turn.reads:
        if _reads(link, tensor):
            yield tensor, point, None


def _reads(link: Link, tensor: TensorView) -> bool:
    expr = link.fusion.definition.get(tensor)
    return isinstance(expr, Argument) and not expr.by_value
