# SPDX-License-Identifier: Apache-2.0
"""The chunks of one axis: their sizes, one after another."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

Chunks: TypeAlias = "tuple[int, ...]"


def is_cut(chunks: Chunks | None) -> bool:
    """Tell whether an axis is in more than one chunk."""
    return chunks is not None and len(chunks) > 1


def boundaries(chunks: Chunks) -> list[int]:
    """Return where chunks begin and end.

    >>> boundaries((2, 3))
    [0, 2, 5]
    """
    return [0, *accumulate(chunks)]


def between(edges: Sequence[int]) -> Chunks:
    """Return the sizes of what lies between ``edges``."""
    return tuple(b - a for a, b in pairwise(edges))


def shifted(chunks: Chunks, start: int, size: int) -> Chunks:
    """Return the chunks of the ``size`` elements from ``start`` on.

    >>> shifted((4, 4, 4), 1, 10)
    (3, 4, 3)
    """
    inner = [e - start for e in boundaries(chunks) if 0 < e - start < size]
    return between([0, *dict.fromkeys(inner), size])


def scaled(chunks: Chunks, times: int, over: int) -> Chunks | None:
    """Return ``chunks * times / over``, if all of them divide.

    >>> scaled((2, 4), 6, 4), scaled((2, 3), 6, 4)
    ((3, 6), None)
    """
    if any(c * times % over for c in chunks):
        return None
    return tuple(c * times // over for c in chunks)


def met(found: Sequence[Chunks]) -> Chunks:
    """Return chunks that suit all: those of the first, or what all edges cut.

    Edges that lie a little beside another's, as those of a shifted array, cut nothing.

    >>> met([(4, 4), (3, 5)]), met([(40, 40), (39, 41)]), met([(4, 4), (8,)])
    ((3, 1, 4), (40, 40), (4, 4))
    """
    first, *others = sorted(dict.fromkeys(found), key=lambda c: -len(c))
    edges = boundaries(first)
    more: set[int] = set()
    for chunks in others:
        near = sum(chunks) // (8 * len(chunks))
        for edge in boundaries(chunks):
            at = bisect_left(edges, edge)
            beside = edges[max(at - 1, 0) : at + 1]
            if all(abs(edge - e) > near for e in beside):
                more.add(edge)
    if not more:
        return first
    return between(sorted({*edges, *more}))
