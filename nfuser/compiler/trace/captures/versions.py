# SPDX-License-Identifier: Apache-2.0
"""Arrays from outside that were written unseen while a function was traced.

Functions that are written anew say what they write. What a library or Python itself
calls runs as it is, as the ``forward`` of a module does within ``module(x)``, and the
``__missing__`` of a dict: a write there would happen once, while tracing, and in no
later call. Tensors count how often they were written; arrays are looked at before a
function runs that may write.
"""

# What a user holds has no static type.
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nfuser.compiler.trace.numpy.names.refusals as refusals
from nfuser.compiler.trace.captures.unchanged import same
from nfuser.compiler.trace.standins.standin import Standin, is_ndarray

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nfuser.compiler.trace.captures.lookup.origin import Origin


class Versions:
    """How often tensors had been written when they were found, and what arrays held."""

    def __init__(self) -> None:
        self._before: list[tuple[Origin, Any, int]] = []
        self._held: dict[Origin, tuple[Any, Callable[[Any], bool]]] = {}

    def add(self, found: Iterable[tuple[Origin, Any]]) -> None:
        """Note the tensors among what was found."""
        for origin, item in found:
            count = _version(item)
            if count is not None:
                self._before.append((origin, item, count))

    def hold(self, found: Iterable[tuple[Origin, Any]]) -> None:
        """Note what arrays hold, before a function runs that may write unseen."""
        for origin, item in found:
            if is_ndarray(item) and origin not in self._held:
                self._held[origin] = item, same(item)

    def check(self) -> None:
        """Raise if one was written since."""
        for origin, (item, is_same) in self._held.items():
            if not is_same(item):
                raise refusals.written_unseen(str(origin))
        for origin, item, count in self._before:
            if _version(item) != count:
                raise refusals.written_unseen(str(origin))


def _version(item: Any) -> int | None:
    """Return how often a tensor was written, if it is one that counts."""
    if isinstance(item, Standin) or not hasattr(type(item), "_version"):
        return None
    try:
        return int(item._version)
    except RuntimeError:  # made in torch.inference_mode
        return None
