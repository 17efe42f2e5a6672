# SPDX-License-Identifier: Apache-2.0
"""What was found out about a body when it ran before, for the next time it runs.

A body runs until all that it carries is known, and all that is in it with it. Each time
it would find out the same about the bodies inside, running each several times, and so
on with those in them: once more for each level. So each body begins with what it found.
"""

from __future__ import annotations

import weakref
from collections import Counter
from typing import TYPE_CHECKING, Any, TypeAlias

import nfuser.compiler.trace.call.tree as tree
from nfuser.compiler.ir.base import node
from nfuser.compiler.trace.standins.standin import Standin

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from types import CodeType

    from nfuser.compiler.trace.loops.record import FormChange

Place: TypeAlias = "tuple[weakref.ref[Any], tuple[str, int] | None]"


@node
class Settled:
    """What a loop carried in the end; ``left`` are names that are left alone.

    An array is told by a variable that holds it when the body begins, if there is one:
    it may be another one the next time.
    """

    carried: Sequence[str]
    left: frozenset[str]
    starts: Mapping[str, Any]
    roots: Sequence[Place]
    may_be: Mapping[str, Sequence[Place]]
    forms: Mapping[str, Sequence[FormChange]]


class BodySite:
    """A body or a branch on one way through the program."""

    def __init__(self) -> None:
        self.is_dear: bool | None = None
        self.settled: Settled | None = None
        self._inner: dict[tuple[CodeType, int], BodySite] = {}
        self._met: Counter[CodeType] = Counter()

    def begin(self) -> None:
        """Begin to run it."""
        self._met.clear()

    def inner(self, code: CodeType) -> BodySite:
        """Return the site of a body that is met now, maybe not for the first time."""
        key = code, self._met[code]
        self._met[code] += 1
        if key not in self._inner:
            self._inner[key] = BodySite()
        return self._inner[key]


def places(arrays: Iterable[Any], names: Mapping[str, Any]) -> list[Place]:
    """Return how to find ``arrays`` again, where variables hold ``names``."""
    held = {
        id(root_of(x)): (name, k)
        for name, value in names.items()
        for k, x in enumerate(tree.flatten(value)[0])
        if isinstance(x, Standin)
    }
    return [(weakref.ref(x), held.get(id(x))) for x in arrays]


def arrays_at(found: Iterable[Place], names: Mapping[str, Any]) -> list[Any]:
    """Return the arrays that are at these places now."""
    arrays: dict[int, Any] = {}
    for ref, place in found:
        one = ref()
        if place is not None:
            leaves = tree.flatten(names.get(place[0]))[0]
            one = root_of(leaves[place[1]]) if place[1] < len(leaves) else None
        if isinstance(one, Standin) and hasattr(type(one), "_remake"):
            arrays[id(one)] = one
    return list(arrays.values())


def root_of(x: Any) -> Any:
    """Return the array that ``x`` is a view of, or is."""
    root = getattr(x, "_root", None) if isinstance(x, Standin) else None
    return x if root is None else root
