# SPDX-License-Identifier: Apache-2.0
"""Which functions do nothing but return a value, so that one run may stand for all."""

from __future__ import annotations

from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from nfuser.compiler.trace.numpy.functions import HANDLERS
from nfuser.compiler.trace.standins.asked import MAKERS, NAMES
from nfuser.compiler.trace.standins.standin import Standin

_KINDS = frozenset(
    {
        *(bool, int, float, complex, str, tuple, list, dict, set, frozenset, type),
        *(range, zip, enumerate, reversed, slice, object),
    }
)
_BUILTINS = frozenset(
    {
        *(abs, all, any, callable, divmod, getattr, hasattr, isinstance, issubclass),
        *(len, max, min, pow, repr, round, sum, hash, id, ord, chr),
    }
)
_METHODS = {
    str: frozenset(n for n in dir(str) if not n.startswith("_")),
    tuple: frozenset({"index", "count", "_replace", "_asdict"}),
    list: frozenset({"index", "count", "copy"}),
    dict: frozenset({"get", "keys", "values", "items", "copy"}),
    np.ufunc: frozenset({"outer", "reduce", "accumulate", "reduceat"}),
    np.ndarray: frozenset(
        {
            *("all", "any", "argmax", "argmin", "astype", "conj", "copy", "cumsum"),
            *("dot", "flatten", "item", "max", "mean", "min", "prod", "ravel"),
            *("reshape", "squeeze", "std", "sum", "swapaxes", "tolist", "transpose"),
            *("var", "view"),
        }
    ),
}
_WRITERS = {"copyto", "put", "place", "putmask", "fill_diagonal", "put_along_axis"}
_MADE = {"arange", "linspace", "broadcast_shapes", "finfo", "iinfo", "dtype", "shape"}
_NUMPYS = (set(HANDLERS) | set(MAKERS) | set(NAMES) | _MADE) - _WRITERS


def is_harmless(function: Any) -> bool:
    """Tell whether a call of ``function``, no user's, changes nothing.

    >>> is_harmless(abs), is_harmless(print), is_harmless([].append)
    (True, False, False)
    """
    if isinstance(function, type):
        return _is_harmless_class(function)
    if type(function) is partial:
        return is_harmless(function.func)
    owner = getattr(function, "__self__", None)
    if issubclass(type(owner), Standin) or issubclass(type(function), Standin):
        return True
    module = str(getattr(function, "__module__", None) or "")
    top = module.partition(".")[0]
    if top == "nfuser":
        return not module.startswith("nfuser.random")
    if isinstance(function, np.ufunc):
        return True
    if isinstance(function, (MethodType, BuiltinFunctionType)) and owner is not None:
        for kind, names in _METHODS.items():
            if isinstance(owner, kind):
                return function.__name__ in names
    if top == "numpy":
        return not module.startswith("numpy.random") and _name(function) in _NUMPYS
    if type(function) is FunctionType:
        return False
    return top in ("math", "_operator", "operator", "cmath") or _is_builtin(function)


def _is_builtin(function: Any) -> bool:
    return isinstance(function, BuiltinFunctionType) and function in _BUILTINS


def _name(function: Any) -> str:
    name = str(getattr(function, "__name__", ""))
    module = str(function.__module__).removeprefix("numpy").lstrip(".")
    return f"{module}.{name}" if f"{module}.{name}" in HANDLERS else name


def _is_harmless_class(kind: type) -> bool:
    if kind in _KINDS or issubclass(kind, (np.generic, np.dtype)):
        return True
    if issubclass(kind, BaseException):
        return True
    own = (vars(k) for k in kind.__mro__ if k not in (object, tuple))
    return issubclass(kind, tuple) and not any("__init__" in names for names in own)
