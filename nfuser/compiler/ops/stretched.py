# SPDX-License-Identifier: Apache-2.0
"""Extents in which others meet when they stretch: the one of them that is not 1."""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import nfuser.compiler.ir.scalars.functions as scalar_functions
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.scalar import Const

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nfuser.compiler.ir.scalars.scalar import Scalar

_FEW = 8  # extents, of which most operations have one or two
_key = attrgetter("key")


class _Ordered(NamedTuple):
    """The first ``length`` of ``items``, in order; whoever has more shares the list."""

    items: list[Scalar]
    length: int

    def with_one(self, at: int, x: Scalar) -> _Ordered:
        """Return these with ``x`` in place ``at``."""
        items, length = self
        if at < len(items):
            items = [*items[:at], x, *items[at:length]]
        else:
            items.append(x)
        return _Ordered(items, length + 1)


class Stretched:
    """What the extents of one program meet in, and which extents that is made of."""

    def __init__(self) -> None:
        self._parts: dict[Scalar, _Ordered] = {}

    def meet(self, extents: Iterable[Scalar]) -> Scalar:
        """Return the one of ``extents`` that is not 1, or 1."""
        found, begun = self._candidates(extents)
        if not found.length:
            return sc.const(1)
        meet = self._one_that_stretches_others(found, begun)
        self._parts[meet] = found
        return meet

    def _candidates(self, extents: Iterable[Scalar]) -> tuple[_Ordered, Scalar | None]:
        """Return the extents of which ``extents`` are made, in their order.

        Those that come one by one are put among the many that are in order already.
        Where they follow on these, what the many meet in comes with them.
        """
        groups = {e: self._made_of(e) for e in extents if not isinstance(e, Const)}
        begun = max(groups, key=lambda e: groups[e].length, default=None)
        if begun is None:
            return _Ordered([], 0), None
        found = groups.pop(begun)
        for group in groups.values():
            for x in group.items[: group.length]:
                at = bisect_left(found.items, x.key, hi=found.length, key=_key)
                if at == found.length or found.items[at] is not x:
                    begun = begun if at == found.length else None
                    found = found.with_one(at, x)
        return found, begun

    def _made_of(self, extent: Scalar) -> _Ordered:
        return self._parts.get(extent) or _Ordered([extent], 1)

    def _one_that_stretches_others(
        self, found: _Ordered, begun: Scalar | None
    ) -> Scalar:
        """Return the extent among ``found`` that is not 1, or 1.

        The first few are asked one after the other. Those after them are asked before
        what has been found so far: many that come one by one make a chain that grows.
        That is gone on with where ``begun`` is what so many of the first meet in.
        """
        count = 0 if begun is None else self._made_of(begun).length
        if begun is None or (count < _FEW and count < found.length):
            *few, begun = found.items[: min(_FEW, found.length)]
            for candidate in reversed(few):
                begun = scalar_functions.select(
                    scalar_functions.equal(candidate, 1), begun, candidate
                )
            count = _FEW
        for candidate in found.items[count : found.length]:
            begun = scalar_functions.select(
                scalar_functions.equal(candidate, 1), begun, candidate
            )
        return begun
