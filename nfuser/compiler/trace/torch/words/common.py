# SPDX-License-Identifier: Apache-2.0
"""What torch's words begin with."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

import nfuser.compiler.ops as ops
from nfuser.compiler.trace.numpy.dispatch.keywords import plain
from nfuser.compiler.trace.torch.state import default_float
from nfuser.errors import ArgumentError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.trace.tracer import Tracer

    Word: TypeAlias = Callable[..., Any]


def floating(t: Tracer, x: Any) -> Any:
    """Return ``x``; integers and bools as torch's default dtype."""
    held = t.tensor(x).dtype
    if held.is_float or held.is_complex:
        return x
    return t.call_on_tensor(ops.astype, x, default_float(t))


def axis_of(dim: Any, ndim: int) -> int:
    """Return an axis, counted from the front."""
    return ops.normal_axis(plain(dim), ndim)


def axes_of(dim: Any, ndim: int) -> tuple[int, ...]:
    """Return one axis, several, or all where there is none."""
    if dim is None:
        return tuple(range(ndim))
    listed = dim if isinstance(dim, (tuple, list)) else (dim,)
    return tuple(axis_of(d, ndim) for d in listed)


def sizes_of(sizes: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return sizes that are given one by one, or as a tuple."""
    nested = len(sizes) == 1 and isinstance(sizes[0], (tuple, list))
    return tuple(sizes[0]) if nested else sizes


def in_dtype(t: Tracer, x: Any, dtype: Any) -> Any:
    """Return ``x`` as ``dtype``, if one is given."""
    return x if dtype is None else t.handlers["astype"](t, x, dtype)


def root(t: Tracer, x: Any) -> Any:
    """Return the square root of a fold of squares, whose slope is 0 where these are."""
    return np.where(x > 0, t.call(ops.sqrt, x), x)


def met(t: Tracer, verb: Any, *operands: Any) -> Any:
    """Apply a verb to operands that meet as torch's do."""
    return t.call_operator(verb, *operands)


def met_as_floats(t: Tracer, verb: Any, *operands: Any) -> Any:
    """Apply a verb of floats: integers are of the default dtype first."""
    taken = [floating(t, x) if hasattr(x, "dtype") else x for x in operands]
    return t.call_operator(verb, *taken)


def refuse_others(name: str, **options: Any) -> None:
    """Refuse options that are given and have no fused form."""
    for option, given in options.items():
        if given is not None and given is not False:
            message = (
                f"leave {option}= out: {name} with {option}={given!r} has no fused form"
            )
            raise UnsupportedError(message)


def one_of(name: str, option: str, given: Any, among: tuple[Any, ...]) -> None:
    """Refuse what is none of the choices of an option."""
    if given not in among:
        choices = ", ".join(map(repr, among))
        message = f"{name}: expected one of {choices} for {option}=, found {given!r}"
        raise ArgumentError(message)
