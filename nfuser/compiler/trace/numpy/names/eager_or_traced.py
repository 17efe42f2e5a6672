# SPDX-License-Identifier: Apache-2.0
"""Functions that trace on traced arrays and compute at once on all others."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.trace.numpy.functions import HANDLERS
from nfuser.compiler.trace.numpy.names.eager import FUNCTIONS
from nfuser.compiler.trace.standins.dialect import in_numpy
from nfuser.compiler.trace.standins.standin import Standin
from nfuser.compiler.trace.torch.unfused import on_tensors
from nfuser.compiler.trace.tracer import Tracer, current_tracer
from nfuser.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def _tracer_of(items: Iterable[Any]) -> Tracer | None:
    for item in items:
        if isinstance(item, Standin):
            return current_tracer()
        if isinstance(item, (tuple, list)) and _tracer_of(item):
            return current_tracer()
    return None


def function(name: str, handler: Any = None) -> Callable[..., Any]:
    """Return the function called ``name``, with NumPy's or our own eager form."""
    handler = in_numpy(handler) if handler else HANDLERS[name]
    return _named(_either(_plain(name), handler), name)


def _plain(name: str) -> Callable[..., Any]:
    """Return what computes at once; an older NumPy has not all of NumPy's names."""
    if found := FUNCTIONS.get(name):
        return found
    try:
        return attrgetter(name)(np)
    except AttributeError:
        return _absent(name)


def _absent(name: str) -> Callable[..., Any]:
    def refuse(*_args: Any, **_options: Any) -> Any:
        message = (
            f"call nfuser.numpy.{name} in a fused function, or install a newer NumPy: "
            f"NumPy {np.__version__}, which plain arrays are given to, has no {name}"
        )
        raise UnsupportedError(message)

    return refuse


def ufunc(name: str) -> Any:
    """Return a function that can also ``accumulate`` and make an ``outer`` product."""
    made: Any = function(name)
    for method in ("accumulate", "outer"):
        inner = f"{name}.{method}"
        setattr(made, method, function(inner))
    return made


def creation(name: str) -> Callable[..., Any]:
    """Return a function that makes arrays: traced ones wherever a trace runs."""
    handler = HANDLERS[name]
    plain: Any = attrgetter(name)(np)

    def made(*args: Any, **options: Any) -> Any:
        tracer = current_tracer()
        if tracer is None:
            return on_tensors(plain, args, options)
        return handler(tracer, *args, **options)

    return _named(made, name)


def _either(plain: Any, handler: Any) -> Callable[..., Any]:
    def either(*args: Any, **options: Any) -> Any:
        tracer = _tracer_of((*args, *options.values()))
        if tracer is None:
            return on_tensors(plain, args, options)
        return handler(tracer, *args, **options)

    return either


def _named(made: Any, name: str) -> Callable[..., Any]:
    made.__module__ = "nfuser.numpy"
    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"Return ``{name}`` of traced arrays, or of NumPy's."
    return made
