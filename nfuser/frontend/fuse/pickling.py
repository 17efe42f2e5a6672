# SPDX-License-Identifier: Apache-2.0
"""How fused functions cross to other processes: as the plain functions would.

Each pickler has its own rule for functions. Pickle writes a name; cloudpickle writes
the name of what can be imported, and of what cannot (closures, lambdas, ``__main__``,
modules registered with it) the code, with the globals that it reads. A fused function
has to say which before it knows who asks, so it hands over a function and lets the
pickler decide.

Where its name leads back to it, the function is its *envoy*: a copy of the plain
function that is found under the name of the fused one, as ``f._envoy``. Written by
name, the envoy is found beside the fused function of that process, which is the result.
Written by value, it arrives as a function of its own, and is fused again.

Elsewhere the function is the plain one.
"""

# What a fused function wraps has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import functools
import importlib
import sys
from types import FunctionType
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary, ref

if TYPE_CHECKING:
    from collections.abc import Callable

_ENVOY = "_envoy"  # the attribute of fused functions that is ``envoy_of``
_NAMES_AS_A_PATH = 4  # the first protocol that can write the name of an attribute
_COPIED = (
    *("__code__", "__defaults__", "__kwdefaults__", "__annotations__"),
    *("__name__", "__doc__", "__module__"),
)

_by_envoy: WeakKeyDictionary[FunctionType, ref[Any]] = WeakKeyDictionary()
_by_function: WeakKeyDictionary[FunctionType, dict[Any, ref[Any]]]
_by_function = WeakKeyDictionary()


def reduced(fused: Any, options: tuple[Any, ...], protocol: int) -> tuple[Any, ...]:
    """Return what pickle asks of ``__reduce_ex__``."""
    function = fused.__wrapped__
    if _leads_back(fused):
        if protocol < _NAMES_AS_A_PATH:
            return _found, (fused.__module__, fused.__qualname__)
        # Where it arrives by value, its attributes do, too.
        return _restored, (type(fused), envoy_of(fused), options)
    return _restored, (type(fused), function, options), _given(fused) or None


def _given(fused: Any) -> dict[str, Any]:
    """Return the attributes that the user gave the fused function."""
    plain: dict[str, Any] = getattr(fused.__wrapped__, "__dict__", {})
    kind: type[Any] = type(fused)
    own = _own_names(kind)
    return {
        name: held
        for name, held in cast("dict[str, Any]", vars(fused)).items()
        if name not in own and (name not in plain or plain[name] is not held)
    }


@functools.cache
def _own_names(kind: type) -> frozenset[str]:
    held = {name for base in kind.__mro__ for name in vars(base)}
    return frozenset({*held, *vars(kind(len, None)), "_kept_envoy", *_COPIED})


def envoy_of(fused: Any) -> FunctionType:
    """Return the function that stands for ``fused``, always the same one."""
    plain = fused.__wrapped__
    kept = cast("dict[str, FunctionType]", vars(fused))
    envoy = kept.get("_kept_envoy")
    if envoy is None:
        made = FunctionType(
            plain.__code__, plain.__globals__, closure=plain.__closure__
        )
        envoy = kept.setdefault("_kept_envoy", made)
        _by_envoy[envoy] = ref(fused)
    for name in _COPIED:  # a function may be given other code and defaults
        setattr(envoy, name, getattr(plain, name))
    envoy.__qualname__ = f"{fused.__qualname__}.{_ENVOY}"
    vars(envoy).clear()
    vars(envoy).update(vars(plain) | _given(fused))
    return envoy


def _leads_back(fused: Any) -> bool:
    if not isinstance(fused.__wrapped__, FunctionType):
        return False
    module = sys.modules.get(fused.__module__)
    try:
        return _walk(module, f"{fused.__qualname__}.{_ENVOY}") is envoy_of(fused)
    except AttributeError:
        return False


def _walk(found: Any, path: str) -> Any:
    for name in path.split("."):
        found = getattr(found, name)
    return found


def _found(module: str, path: str) -> Any:
    """Return the fused function of this name."""
    return _by_envoy[_walk(importlib.import_module(module), f"{path}.{_ENVOY}")]()


def _restored(kind: Callable[..., Any], function: Any, options: tuple[Any, ...]) -> Any:
    """Return the fused function, one of ``kind``, that arrived as ``function``."""
    if not isinstance(function, FunctionType):
        return kind(function, *options)
    if (live := _by_envoy.get(function)) is not None and (found := live()) is not None:
        return found
    function.__qualname__ = function.__qualname__.removesuffix(f".{_ENVOY}")
    known = _by_function.setdefault(function, {})
    made = known[options]() if options in known else None
    if made is None:
        made = kind(function, *options)
        known[options] = ref(made)
    else:
        # A function that calls itself arrives in two steps, the first without its
        # names, globals and defaults.
        functools.update_wrapper(made, function)
    return made
