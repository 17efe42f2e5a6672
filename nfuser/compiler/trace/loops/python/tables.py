# SPDX-License-Identifier: Apache-2.0
"""What functions that are written anew ask of arrays: items of tables, and lengths."""

from __future__ import annotations

from types import BuiltinFunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.trace.numpy.names.refusals as refusals
from nfuser.compiler.trace.standins.asked import to_be_assigned
from nfuser.compiler.trace.standins.dialect import NUMPY
from nfuser.compiler.trace.standins.literals import array_of, holds_standins
from nfuser.compiler.trace.standins.sizes import is_sequence
from nfuser.compiler.trace.standins.standin import Standin, chosen_by_masks
from nfuser.compiler.trace.standins.symbolic import SymbolicInt

if TYPE_CHECKING:
    from nfuser.compiler.trace.tracer import Tracer

_ENDS = ("start", "stop", "step")
_FOLDS = ("reduce", "accumulate")


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


class Joining:
    """``np.r_`` or ``np.c_``, of whose items some may be traced."""

    def __init__(self, t: Tracer, plain: Any) -> None:
        self._t = t
        self._plain = plain

    def __getitem__(self, key: Any) -> Any:
        """Return what it joins: numbers and slices become arrays, and rows columns."""
        if not holds_standins(key):
            return self._plain[key]
        t, are_columns = self._t, self._plain is np.c_
        name = "c_" if are_columns else "r_"
        items: list[Any] = [*key] if isinstance(key, tuple) else [key]
        parts: list[Any] = []
        for item in items:
            ends: list[Any] = [getattr(item, x, None) for x in _ENDS]
            is_open = isinstance(item, slice) and any(
                isinstance(x, Standin) and not isinstance(x, SymbolicInt) for x in ends
            )
            if isinstance(item, str) or is_open or t.dialect is not NUMPY:
                raise refusals.function(name)
            one = np.r_[item] if isinstance(item, slice) else item
            listed = is_sequence(one) or isinstance(one, np.ndarray)
            parts.append(array_of(t, one) if listed else t.operand(one))
        kind = t.builder.promote(*parts)
        wide = [t.wrap(t.builder.convert(x, kind)) for x in parts]
        if not are_columns:
            return np.concatenate([np.atleast_1d(x) for x in wide])
        wide = [np.atleast_1d(x)[:, None] if x.ndim < 2 else x for x in wide]
        return np.concatenate(wide, axis=-1)


def fold_of(t: Tracer, function: Any) -> Any:
    """Return what is called in place of a ufunc's fold, which takes lists of arrays."""
    if type(function) is not BuiltinFunctionType:
        return None
    if type(function.__self__) is not np.ufunc or function.__name__ not in _FOLDS:
        return None

    def fold(x: Any, *args: Any, **options: Any) -> Any:
        is_listed = is_sequence(x) and holds_standins(x)
        given = t.wrap(array_of(t, x)) if is_listed else x
        return function(given, *args, **options)

    return fold


def length_of(function: Any) -> Any:
    """Return what is called in place of ``len``; None for other functions."""
    return _length if function is len else None


def _length(x: Any) -> Any:
    """Return ``len(x)``; that of a traced array stays open."""
    is_chosen = type(x) in chosen_by_masks
    is_array = isinstance(x, Standin) and (is_chosen or hasattr(type(x), "_remake"))
    shape: tuple[Any, ...] = getattr(x, "shape", ()) if is_array else ()
    found: Any = x
    return shape[0] if shape else len(found)
