# SPDX-License-Identifier: Apache-2.0
"""What all stand-ins have in common."""

from __future__ import annotations

from operator import attrgetter
from typing import Any


class Standin:
    """Base of what stands in a traced function for what is not known yet.

    One of a number says that it is of the number's class: ``isinstance(n, int)``, a
    ``case int()`` and ``singledispatch`` take the branch that they take without
    tracing. Ours ask for stand-ins first.
    """

    __slots__ = ("__weakref__", "_kind", "_tracer")
    _kind: type
    _tracer: Any
    # Read without running Python: what watches a trace would see it.
    __class__ = property(attrgetter("_kind"))  # pyright: ignore[reportIncompatibleMethodOverride]

    def _operand(self) -> Any:
        """Return the tensor or the scalar that this stands for."""
        raise NotImplementedError
