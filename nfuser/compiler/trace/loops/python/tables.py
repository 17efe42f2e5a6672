# SPDX-License-Identifier: Apache-2.0
"""What functions that are written anew ask of arrays: items of tables, and lengths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nfuser.compiler.trace.standins.asked import to_be_assigned
from nfuser.compiler.trace.standins.literals import holds_standins
from nfuser.compiler.trace.standins.standin import Standin

if TYPE_CHECKING:
    import numpy as np

    from nfuser.compiler.trace.tracer import Tracer


class Table:
    """An array of NumPy's of which items are read, perhaps at places of the trace."""

    def __init__(self, t: Tracer, array: np.ndarray[Any, Any]) -> None:
        self._t = t
        self._array = array

    def __getitem__(self, key: Any) -> Any:
        """Return the items as NumPy has them, or as a traced array."""
        if not holds_standins(key):
            return self._array[key]
        t = self._t
        if not t.makes:  # with open sizes, if NumPy's functions can make it
            raise to_be_assigned()
        return t.wrap(t.tensor(self._array))[key]


def length_of(function: Any) -> Any:
    """Return what is called in place of ``len``; None for other functions."""
    return _length if function is len else None


def _length(x: Any) -> Any:
    """Return ``len(x)``; that of a traced array stays open."""
    is_array = isinstance(x, Standin) and hasattr(type(x), "_remake")
    shape: tuple[Any, ...] = getattr(x, "shape", ()) if is_array else ()
    found: Any = x
    return shape[0] if shape else len(found)
