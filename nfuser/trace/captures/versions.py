# SPDX-License-Identifier: Apache-2.0
"""Tensors from outside that were written unseen while a function was traced.

Functions that are written anew say what they write. What a library calls runs as it is,
as the ``forward`` of a module does within ``module(x)``: a write there would happen
once, while tracing, and in no later call. Tensors count how often they were written.
"""

# What a user holds has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nfuser.trace.numpy.names.refusals as refusals
from nfuser.trace.standins.standin import Standin

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nfuser.trace.captures.origins import Origin


class Versions:
    """How often tensors had been written when they were found."""

    def __init__(self) -> None:
        self._before: list[tuple[Origin, Any, int]] = []

    def add(self, found: Iterable[tuple[Origin, Any]]) -> None:
        """Note the tensors among what was found."""
        for origin, item in found:
            count = _version(item)
            if count is not None:
                self._before.append((origin, item, count))

    def check(self) -> None:
        """Raise if one was written since."""
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
