# SPDX-License-Identifier: Apache-2.0
"""How a function of derivatives is fused, and what it says of itself."""

# What is differentiated has no static type.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import functools
from operator import index
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

from nfuser.compiler.trace import current_tracer
from nfuser.errors import ArgumentError
from nfuser.frontend.fuse.fused import Fused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Argnums: TypeAlias = "int | Sequence[int]"
P = ParamSpec("P")
R = TypeVar("R")
_MOST = 256  # functions whose derivatives are kept, the last used ones


def fused_like(
    name: str,
    function: Callable[..., Any],
    derived: Callable[..., Any],
    *,
    again: tuple[Any, ...],
    takes_the_same: bool = True,
) -> Fused[..., Any]:
    """Return ``derived`` fused as ``function`` is, and named after it.

    ``again`` is what makes it, and with what, in another process.
    """
    if takes_the_same:
        functools.update_wrapper(derived, function, updated=())
    plain = getattr(function, "__name__", "function").strip("<>")
    derived.__name__ = f"{name}_{plain}"
    derived.__qualname__ = f"{name}({getattr(function, '__qualname__', plain)})"
    options: tuple[Any, ...] = (None, None, None, None)
    if isinstance(function, Fused):
        options = (
            *(function._backend, function._resize),
            *(function._dialect, function._should_merge),
        )
    made: Fused[..., Any] = Fused(derived, *options)
    made.is_of_nfuser = True
    made.made_by = again
    return made


def way_back_like(
    name: str,
    function: Callable[..., Any],
    derived: Callable[..., Any],
    again: tuple[Any, ...],
) -> Fused[..., Any]:
    """Return ``derived``, the way back through ``function``, as ``fused_like`` does."""
    made = fused_like(name, function, derived, again=again, takes_the_same=False)
    made.goes_back = True
    return made


def remembered(make: Callable[P, R]) -> Callable[P, R]:
    """Return ``make``, which makes one thing for one function: it holds compiled code.

    Of a function that cannot be a key, it makes one a call.
    """
    kept = functools.lru_cache(_MOST)(make)

    @functools.wraps(make)
    def found(*args: P.args, **kwargs: P.kwargs) -> R:
        if current_tracer() is not None:
            return make(*args, **kwargs)  # what a trace makes holds what is traced
        try:
            hash((args, *kwargs.values()))
        except TypeError:
            return make(*args, **kwargs)
        return kept(*args, **kwargs)

    return found


def check_function(name: str, function: Any) -> None:
    """Refuse what cannot be called."""
    if not callable(function):
        message = (
            f"write nfuser.{name}(f)(x), with a function f: found "
            f"{type(function).__name__}"
        )
        raise ArgumentError(message)


def listed(argnums: Argnums) -> Argnums:
    """Return ``argnums`` as what can be a key."""
    return tuple(argnums) if isinstance(argnums, list) else argnums


def places(name: str, argnums: Argnums, count: int) -> tuple[int, ...]:
    """Return ``argnums`` counted from the front, of ``count`` arguments."""
    given: Any = argnums if isinstance(argnums, (tuple, list)) else (argnums,)
    found: list[int] = []
    for item in given:
        try:
            number = index(item)
        except TypeError:
            message = (
                f"write argnums=0, the place of an argument, or several, as (0, 1): "
                f"nfuser.{name} found {type(item).__name__}"
            )
            raise ArgumentError(message) from None
        if not -count <= number < count:
            message = (
                f"pass argument {number} by position: nfuser.{name} takes the "
                f"derivative in it by argnums, found {count} arguments"
            )
            raise ArgumentError(message)
        place = number % count
        if place in found:
            message = (
                f"write each place once in argnums: nfuser.{name} found {place} again"
            )
            raise ArgumentError(message)
        found.append(place)
    return tuple(found)
