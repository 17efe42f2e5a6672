# SPDX-License-Identifier: Apache-2.0
"""Functions of NumPy that write into what they are given, told before they do."""

from __future__ import annotations

from functools import partial
from types import BuiltinFunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.trace.captures.lookup.stores import OPERATORS, is_in_place
from nfuser.compiler.trace.captures.parts import is_silent
from nfuser.compiler.trace.watch.unwatched import unwatched

if TYPE_CHECKING:
    from collections.abc import Callable

_FIRST = {
    *("copyto", "put", "place", "putmask", "fill_diagonal", "put_along_axis"),
}
_METHODS = {"fill", "put", "sort", "partition", "itemset", "resize", "byteswap"}


def writer(function: Any, written: Callable[[Any], Any]) -> Any:
    """Return what is called in place of a function that writes, or None.

    ``written`` is told of the array, and gives what stands for it. Ufuncs are called by
    what ``into_outputs`` returns.
    """
    name: str = getattr(function, "__name__", "")
    owner = getattr(function, "__self__", None)
    is_writer = name in _METHODS or is_in_place(name)
    if is_silent(owner):
        return getattr(written(owner), name) if is_writer else None
    if is_writer and getattr(function, "__objclass__", None) is np.ndarray:
        return partial(_method_of_first, name, written)
    if type(function) is BuiltinFunctionType and function in OPERATORS:
        return partial(_into_first, function, written)
    is_at = name == "at" and isinstance(owner, np.ufunc)
    if is_at or (name in _FIRST and getattr(np, name, None) is function):
        return partial(_into_first, function, written)
    return None


def _into_first(
    function: Any, written: Callable[[Any], Any], x: Any, *args: Any, **options: Any
) -> Any:
    return function(written(x), *args, **options)


def _method_of_first(
    name: str, written: Callable[[Any], Any], x: Any, *args: Any, **options: Any
) -> Any:
    return getattr(written(x), name)(*args, **options)


def into_outputs(
    function: np.ufunc, written: Callable[[Any], Any]
) -> Callable[..., Any]:
    """Return what calls a ufunc, whose outputs may follow its operands."""
    count = function.nin

    @unwatched
    def called(*args: Any, **options: Any) -> Any:
        if len(args) <= count:
            return function(*args, **options)
        outputs = [x if x is None else written(x) for x in args[count:]]
        return function(*args[:count], *outputs, **options)

    return called
