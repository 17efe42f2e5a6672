# SPDX-License-Identifier: Apache-2.0
"""Cut a fusion: merge expressions into groups as long as one kernel can run each.

The graph of groups stays acyclic: a merge is refused when a path between the two leads
through a third.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from nfuser.compiler.ir.expr import (
    Argument,
    Assign,
    Expr,
    Pointwise,
    results,
    sources,
)
from nfuser.compiler.ir.fusion import Fusion, live_exprs
from nfuser.compiler.ir.scalars.scalar import Const
from nfuser.compiler.segment.asked_once import asked_once
from nfuser.compiler.segment.both_ways import in_parts, only_one_way, summed_both_ways
from nfuser.compiler.segment.computed_again import is_free, with_cheap_producers
from nfuser.compiler.segment.elementwise import is_elementwise
from nfuser.compiler.segment.order import Order
from nfuser.compiler.segment.overwriting import Overwriting
from nfuser.compiler.segment.segmented import (
    LOOP,
    Cut,
    Rejection,
    Segment,
    Segmented,
    piece_of,
    wholes,
)

if TYPE_CHECKING:
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.segment.segmented import (
        FindScheduler,
        KnownScheduler,
        ShouldMerge,
    )
    from nfuser.compiler.segment.sharding import Shardings


def segment(
    fusion: Fusion,
    find: FindScheduler,
    should_merge: ShouldMerge | None = None,
    shardings: Shardings | None = None,
) -> Segmented:
    """Return ``fusion`` as one piece if a kernel can run it, else cut.

    ``find`` gives the scheduler that takes a fusion, or why none does.
    ``should_merge`` may forbid two groups of expressions to share a kernel.
    ``shardings`` says how tensors lie over ranks: pieces are cut where that changes.
    """
    if not _without_given(fusion).roots:
        return Segmented(fusion, (), ())
    find = asked_once(find, one_program=True)
    if shardings is not None:
        # Few have ranks.
        from nfuser.compiler.segment.rank_cuts import changes, within  # noqa: PLC0415
        from nfuser.compiler.segment.sharding_propagation import spread  # noqa: PLC0415

        found = spread(fusion, shardings)
        why = _SPREAD if should_merge is None else _ASKED
        one_way = only_one_way(find)
        cut = _Cutter(fusion, one_way, within(found, should_merge), why).run()
        changed = changes(found, cut.segments)
        others = (c for c in cut.cuts if c.tensor not in changed)
        return replace(cut, cuts=(*others, *changed.values()), spread=found)
    cut = _pieces_of(fusion, find, should_merge)
    while across := summed_both_ways(cut):
        cut = _pieces_of(in_parts(cut.fusion, across), find, should_merge)
    return cut


def _pieces_of(
    fusion: Fusion, find: FindScheduler, should_merge: ShouldMerge | None
) -> Segmented:
    if should_merge is None:
        kernel = _without_given(fusion)
        found = find(kernel)
        if not isinstance(found, tuple):
            whole = Segment(kernel, tuple(a.result for a in fusion.arguments), found)
            return Segmented(fusion, (whole,), ())
    return _Cutter(fusion, find, should_merge, _ASKED).run()


def _without_given(fusion: Fusion) -> Fusion:
    """Return ``fusion`` without outputs that are arguments: nothing stores these."""
    given = {a.result for a in fusion.arguments}
    if given.isdisjoint(fusion.outputs):
        return fusion
    made = [t for t in fusion.outputs if t not in given]
    return Fusion(fusion.name, fusion.exprs, made)


class _Group:
    def __init__(self, exprs: list[Expr]) -> None:
        self.exprs = exprs


class _Cutter:
    def __init__(
        self,
        fusion: Fusion,
        find: FindScheduler,
        should_merge: ShouldMerge | None,
        why_apart: Rejection,
    ) -> None:
        self.find = find
        self.fusion = fusion
        self.order = {e: k for k, e in enumerate(fusion.exprs)}
        self.should_merge = should_merge
        self.why_apart = why_apart  # where that says no
        self.outputs = frozenset(fusion.roots)
        self._whole = wholes(fusion)
        self.group_of: dict[Expr, _Group] = {}
        self.groups = Order[_Group](())
        self._together = dict(fusion.sums_in_parts)
        self.cuts: dict[TensorView, tuple[Rejection, ...]] = {}
        self.overwriting = Overwriting(fusion)

    def run(self) -> Segmented:
        for expr in self.fusion.exprs:
            if not is_free(expr):
                self._begin(expr)
        begun = list(dict.fromkeys(self.group_of.values()))
        self.groups = Order(self._in_order(begun))
        for expr in (*self.overwriting.left_by_loops, *list(self.group_of)):
            self._merge_with_producers(expr)
        self._merge_siblings()
        return self._finished()

    def _begin(self, expr: Expr) -> None:
        """Put ``expr`` in the group of its only producer if nothing else reads that.

        A run of elementwise operations always shares a kernel if the caller lets it; to
        ask schedulers for each of them would take time that grows with the square of
        their number.
        """
        inputs = (self.fusion.definition[t] for t in sources(expr))
        producers = [e for e in dict.fromkeys(inputs) if e in self.group_of]
        group = _Group([])
        if len(producers) == 1 and self._is_private(producers[0], expr):
            found = self.group_of[producers[0]]
            alone = self.overwriting.comes_between(found.exprs, expr)
            asked = self.should_merge
            if not alone and (asked is None or asked(found.exprs, [expr])):
                group = found
        group.exprs.append(expr)
        self.group_of[expr] = group

    def _is_private(self, producer: Expr, user: Expr) -> bool:
        return (
            isinstance(producer, Pointwise)
            and isinstance(user, Pointwise)
            and user not in self.overwriting.copied
            and producer.result.shape == user.result.shape
            and self.fusion.users[producer.result] == (user,)
            and producer.result not in self.outputs
        )

    def _merge_with_producers(self, expr: Expr) -> None:
        for tensor in reversed(sources(expr)):
            producer = self.fusion.definition[tensor]
            if producer in self.group_of:
                self._try(self.group_of[producer], self.group_of[expr], tensor)

    def _merge_siblings(self) -> None:
        """Merge what shares inputs but no edge: one kernel reads them once.

        Borders of arrays share a kernel if they are alike: to launch it takes longer
        than what it does.
        """
        groups = list(dict.fromkeys(self.group_of.values()))
        computing = sum(not isinstance(g.exprs[0], Assign) for g in groups)
        if computing > _MOST_SIBLINGS:
            return
        have = {group: self._reads(group) | self._borders(group) for group in groups}
        apart = self._apart(groups)
        for k, first in enumerate(groups):
            for second in groups[k + 1 :]:
                alive = first.exprs and second.exprs
                if not alive or have[first].isdisjoint(have[second]):
                    continue
                if first in apart[second] or second in apart[first]:
                    continue
                self._try(first, second)
                if not second.exprs:
                    have[first] |= have[second]
                    apart = self._apart([g for g in groups if g.exprs])

    def _apart(self, groups: list[_Group]) -> dict[_Group, set[_Group]]:
        """Return, for each group, those above it that others lie between."""
        above: dict[_Group, set[_Group]] = {}
        found: dict[_Group, set[_Group]] = {}
        for group in self._in_order(groups):
            producers = self._producers(group)
            found[group] = {g for p in producers for g in above[p]}
            above[group] = found[group].union(producers)
        return found

    def _reads(self, group: _Group) -> set[TensorView]:
        read = (t for e in group.exprs for t in sources(e) if t.ndim)
        found = (self._whole.get(t, t) for t in read)
        return {self._together.get(t, t) for t in found}

    def _borders(self, group: _Group) -> set[tuple[Scalar, ...]]:
        """Return the shapes of what ``group`` leaves that is short along some axis."""
        shapes = {t.shape for t in self._stored(group.exprs) if t.ndim > 1}
        return {shape for shape in shapes if any(map(_is_short, shape))}

    def _try(
        self, first: _Group, second: _Group, tensor: TensorView | None = None
    ) -> None:
        """Merge two groups; ``tensor`` is what the second reads of the first, if so."""
        if first is second:
            return
        if self.should_merge and not self.should_merge(first.exprs, second.exprs):
            self._refuse(first, second, tensor, self.why_apart)
            return
        between = self._between(first, second)
        if between is None:
            self._refuse(first, second, tensor, _BETWEEN)
            return
        exprs = sorted(first.exprs + second.exprs, key=self.order.__getitem__)
        if not self.overwriting.allows(exprs, self._stored(exprs)):
            self._refuse(first, second, tensor, _OVERWRITTEN)
            return
        if not is_elementwise(exprs):  # which schedulers take; they would look longer
            found = self.find(self._fusion_of(exprs))
            if isinstance(found, tuple):
                self._refuse(first, second, tensor, *found)
                return
        self.groups.merge(second, first, between)
        first.exprs, second.exprs = exprs, []
        for expr in exprs:
            self.group_of[expr] = first

    def _refuse(
        self,
        first: _Group,
        second: _Group,
        tensor: TensorView | None,
        *reasons: Rejection,
    ) -> None:
        """Keep the first reasons for what two groups have in common."""
        both = self._reads(first) & self._reads(second)
        for shared in both if tensor is None else (tensor,):
            self.cuts.setdefault(shared, reasons)

    def _between(self, first: _Group, second: _Group) -> set[_Group] | None:
        """Return the groups between two, as seen from ``second``; None for a detour.

        It is the smaller one as groups grow along the program.
        """
        is_behind = self.groups.is_behind(second, first)
        step = self._producers if is_behind else self._consumers
        return self.groups.between(second, first, step)

    def _producers(self, group: _Group) -> list[_Group]:
        definition, group_of = self.fusion.definition, self.group_of
        inputs = (definition[t] for expr in group.exprs for t in sources(expr))
        found = dict.fromkeys(group_of[e] for e in inputs if e in group_of)
        before = self.overwriting.before
        for expr in group.exprs if before else ():
            found.update((group_of[e], None) for e in before.get(expr, ()))
        found.pop(group, None)
        return list(found)

    def _consumers(self, group: _Group) -> list[_Group]:
        users = self.fusion.users
        found = dict.fromkeys(
            self.group_of[user]
            for expr in group.exprs
            for tensor in results(expr)
            for user in users[tensor]
        )
        after = self.overwriting.after
        for expr in group.exprs if after else ():
            found.update((self.group_of[e], None) for e in after.get(expr, ()))
        found.pop(group, None)
        return list(found)

    # -- pieces --------------------------------------------------------------

    def _fusion_of(self, exprs: list[Expr]) -> Fusion:
        """Return the fusion of a group: what it reads from others are arguments."""
        return piece_of(self.fusion, exprs, self._stored(exprs))

    def _stored(self, exprs: list[Expr]) -> list[TensorView]:
        """Return what a group leaves for others, or returns."""
        stays, users = set(exprs).issuperset, self.fusion.users
        return [
            tensor
            for expr in exprs
            for tensor in results(expr)
            if tensor in self.outputs or not stays(users[tensor])
        ]

    def _finished(self) -> Segmented:
        groups = [g for g in dict.fromkeys(self.group_of.values()) if g.exprs]
        groups = self._in_order(groups)
        wanted = set(self.fusion.roots)
        segments: list[Segment] = []
        # Backwards: whether a group must store something depends on later ones.
        for group in reversed(groups):
            pieces = self._pieces(group, wanted)
            segments.extend(reversed(pieces))
            wanted.update(t for piece in pieces for t in piece.inputs)
        segments.reverse()
        held = Counter(t for s in segments for t in s.fusion.definition)
        shared = [t for t in self.fusion.definition if t in self.cuts and held[t] > 1]
        cuts = tuple(Cut(t, self.cuts[t]) for t in shared)
        return Segmented(self.fusion, tuple(numbered(segments)), cuts)

    def _in_order(self, groups: list[_Group]) -> list[_Group]:
        """Return ``groups`` producers first, otherwise in the order of the program."""
        place = {group: k for k, group in enumerate(groups)}
        missing = {group: len(self._producers(group)) for group in groups}
        ready = [place[group] for group in groups if not missing[group]]
        done: list[_Group] = []
        while ready:
            group = groups[heappop(ready)]
            done.append(group)
            for consumer in self._consumers(group):
                missing[consumer] -= 1
                if not missing[consumer]:
                    heappush(ready, place[consumer])
        if len(done) < len(groups):
            message = "the groups of a segmentation form a cycle"
            raise AssertionError(message)
        return done

    def _pieces(self, group: _Group, wanted: set[TensorView]) -> tuple[Segment, ...]:
        """Return the segment of ``group``, storing only what is ``wanted``.

        What is cheap to compute again from arguments is computed again. What is left of
        a group when others do so may have no scheduler: it is cut like a program.
        """
        outputs = [t for e in group.exprs for t in results(e) if t in wanted]
        if not outputs:
            return ()
        exprs = [
            e for e in live_exprs(outputs, self._definitions(group)) if not is_free(e)
        ]
        cloned = exprs
        if self.should_merge is None:
            written = self.overwriting.arrays
            cloned = with_cheap_producers(exprs, self.fusion, written)
        made: Fusion | None = None
        for candidate in (cloned, exprs) if cloned != exprs else (exprs,):
            made = self._fusion_of(sorted(candidate, key=self.order.__getitem__))
            made = Fusion(made.name, made.exprs, outputs)
            made, found = self._taken(made)
            if not isinstance(found, tuple):
                inputs = tuple(a.result for a in made.arguments)
                return (Segment(made, inputs, found),)
        assert made is not None
        if len(exprs) == len(self.group_of):
            message = "a group of a segmentation has no scheduler"
            raise AssertionError(message)
        cut = _Cutter(made, self.find, self.should_merge, self.why_apart).run()
        self.cuts.update((c.tensor, c.reasons) for c in cut.cuts)
        return tuple(
            replace(s, fusion=_named(s.fusion, made.name)) for s in cut.segments
        )

    def _taken(
        self, made: Fusion
    ) -> tuple[Fusion, KnownScheduler | tuple[Rejection, ...]]:
        """Return a piece, and who takes it.

        A kernel that runs a loop has each array that turns carry in memory, also one
        that nobody reads after them: it stores that, too.
        """
        found = self.find(made)
        arrays = (t for loop in made.loops for *_, t in loop.pairs if t.ndim)
        left = [t for t in arrays if t not in made.outputs]
        if not left or isinstance(found, tuple) or found.name != LOOP:
            return made, found
        whole = Fusion(made.name, made.exprs, (*made.outputs, *left))
        other = self.find(whole)
        is_kernel = not isinstance(other, tuple) and other.name != LOOP
        return (whole, other) if is_kernel else (made, found)

    def _definitions(self, group: _Group) -> dict[TensorView, Expr]:
        own = set(group.exprs)
        found: dict[TensorView, Expr] = {}
        for expr in group.exprs:
            for tensor in (*sources(expr), *results(expr)):
                definition = self.fusion.definition[tensor]
                inside = definition in own or is_free(definition)
                found[tensor] = definition if inside else Argument(-1, tensor)
        return found


def _is_short(extent: Scalar) -> bool:
    return isinstance(extent, Const) and extent.value <= _SHORT


_MOST_SIBLINGS = 64  # groups that compute, of which each is tried with each
_SHORT = 4  # elements across a border of an array, at most
_ASKED = Rejection("should_merge", "the caller keeps them apart")
_SPREAD = Rejection("sharding", "the pieces run on different parts of what ranks hold")
_OVERWRITTEN = Rejection(
    "order", "the one reads elements of an array that the other overwrites"
)
_BETWEEN = Rejection("order", "another piece reads the one and is read by the other")


def numbered(segments: list[Segment]) -> list[Segment]:
    """Give each piece a name of its own where there are several."""
    if len(segments) == 1:
        return segments
    return [
        replace(s, fusion=_named(s.fusion, f"{s.fusion.name}_{k}"))
        for k, s in enumerate(segments)
    ]


def _named(fusion: Fusion, name: str) -> Fusion:
    return Fusion(name, fusion.exprs, fusion.outputs)
