# SPDX-License-Identifier: Apache-2.0
"""How a call is spelled: which arguments come by position, and which by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nfuser.compiler.ir.base import value

if TYPE_CHECKING:
    import inspect
    from collections.abc import Sequence


@value
class CallShape:
    """Arguments in the order of the call, and where a function finds them.

    ``names`` are those of the last arguments. ``positions`` says which argument each
    parameter is, and ``keywords`` which those are that can only be named.
    """

    names: tuple[str, ...]
    positions: tuple[int, ...]
    keywords: tuple[tuple[str, int], ...] = ()

    @property
    def order(self) -> tuple[int, ...]:
        """The arguments in the order in which they are taken apart."""
        return (*self.positions, *(place for _, place in self.keywords))

    def bound(self, args: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return what the parameters are, as ``args`` and ``kwargs``."""
        named = {name: args[place] for name, place in self.keywords}
        return tuple(args[place] for place in self.positions), named


def by_position(count: int) -> CallShape:
    """Return the shape of a call without keywords."""
    return CallShape((), tuple(range(count)))


def with_names(
    signature: inspect.Signature, count: int, names: tuple[str, ...]
) -> CallShape:
    """Return the shape of a call that fits the signature."""
    places = {name: count + k for k, name in enumerate(names)}
    found = signature.bind(*range(count), **places)
    return CallShape(names, found.args, tuple(found.kwargs.items()))
