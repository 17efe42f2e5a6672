# SPDX-License-Identifier: Apache-2.0
"""Verbs of nfuser's own, during which an observer has nothing to see.

Watching costs more than most of what a verb does. None of the user's code runs in it,
unless an argument brings some: an object with ``__index__``, a function, an array of a
class of the user's. With those, and inside of whatever is not known here, watching
goes on.
"""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import functools
import sys
from types import EllipsisType, NoneType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from nfuser.compiler.trace.standins.standin import Standin
from nfuser.compiler.trace.tracer import Tracer
from nfuser.compiler.trace.watch.observer import WATCHING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

P = ParamSpec("P")
R = TypeVar("R")


def unwatched(verb: Callable[P, R]) -> Callable[P, R]:
    """Return ``verb``, not watched while its arguments bring no code of the user's."""
    return _quiet(verb, looks=True)


def unseen(work: Callable[P, R]) -> Callable[P, R]:
    """Return ``work``, never watched: whatever it is given, it runs no code of users.

    For what is done once, with the text of a function and not with its values.
    """
    return _quiet(work, looks=False)


def _quiet(verb: Callable[P, R], *, looks: bool) -> Callable[P, R]:
    @functools.wraps(verb)
    def quiet(*args: P.args, **options: P.kwargs) -> R:
        # Until watching stops, each call written here is seen, and costs as much.
        see = WATCHING.see
        if see is None:
            return verb(*args, **options)
        sys.setprofile(None)
        if looks and (
            _may_bring_code(args) or (options and _may_bring_code(options.values()))
        ):
            sys.setprofile(see)
            return verb(*args, **options)
        WATCHING.see = None
        try:
            return verb(*args, **options)
        finally:
            WATCHING.see = see
            sys.setprofile(see)

    return quiet


class _Inert(dict[type, bool]):
    """Tells whether objects of exactly this kind run no code of the user's."""

    def __missing__(self, kind: type) -> bool:
        if not issubclass(kind, (Standin, np.generic, np.dtype, np.ufunc)):
            return False
        is_ours = kind.__module__.partition(".")[0] in ("nfuser", "numpy")
        if is_ours:
            self[kind] = True
        return is_ours


_KINDS: tuple[type, ...] = (
    *(bool, int, float, complex, str, NoneType, EllipsisType, np.ndarray, Tracer),
    type(np._NoValue),  # pyright: ignore[reportPrivateUsage]
)
_INERT = _Inert.fromkeys(_KINDS, True)


def _may_bring_code(items: Iterable[Any]) -> bool:
    for item in items:
        kind = type(item)
        if _INERT[kind]:
            continue
        if kind is tuple or kind is list:
            inner = item
        elif kind is slice:
            inner = (item.start, item.stop, item.step)
        elif kind is type and _INERT[item]:
            continue
        else:
            return True
        if _may_bring_code(inner):
            return True
    return False
