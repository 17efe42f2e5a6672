# SPDX-License-Identifier: Apache-2.0
"""Python's functions of numbers that are not known: max, min, any, all, float, int."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportPrivateUsage=false

from __future__ import annotations

import dis
import inspect
import operator
import sys
from collections.abc import Iterable
from functools import partial
from types import CodeType, GeneratorType
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ops as ops
from nfuser.compiler.dtypes import DType, promote
from nfuser.compiler.trace.loops.forms import between
from nfuser.compiler.trace.loops.python.state import State, Variables
from nfuser.compiler.trace.loops.rewriting.originals import originals
from nfuser.compiler.trace.standins.array import TracedArray
from nfuser.compiler.trace.standins.open_number import OpenNumber
from nfuser.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.trace.tracer import Tracer

_COMPARED = ((max, operator.gt), (min, operator.lt))
_JOINED = ((any, ops.logical_or, True), (all, ops.logical_and, False))
_END = object()
_CHOSEN = "what is chosen"
_LATER = (
    "write {0}([...]) with a list: Python ends with the first item that decides, which "
    "is not known while tracing, and computing later ones writes into an array"
)
_ITEMS = (
    "write np.argmax or np.argmin in place of {0}(..., key=...), and index with what "
    "it gives: which item is chosen is not known while tracing, and they are not all "
    "numbers of one kind"
)
_STORES = ("STORE_DEREF", "STORE_GLOBAL", "STORE_NAME")


def of_numbers(plain: Any, function: Any) -> Callable[..., Any] | None:
    """Return what runs in place of such a function; None for others."""
    for own, is_better in _COMPARED:
        if function is own:
            return partial(_extreme, plain._t, own, is_better)
    for own, combine, last in _JOINED:
        if function is own:
            return partial(_joined, plain, own, combine, last)
    if function is float or function is int or function is bool:
        return partial(_converted, plain, function)
    if function is type and plain._t.opens:
        return _type_of
    return None


def _converted(plain: Any, kind: type, *given: Any, **options: Any) -> Any:
    """Return ``float(x)``, ``int(x)`` or ``bool(x)``."""
    x = given[0] if len(given) == 1 and not options else None
    if isinstance(x, TracedArray):
        if kind is bool and plain.is_unknown(x):
            return plain.python_truth(x)
        if kind is not bool and x._may_open(f"{kind.__name__}(x)"):
            return plain._t.python_number(x, kind)
    return kind(*given, **options)


def _type_of(*given: Any) -> Any:
    """Return ``type(x)``: of what stands for a number of Python's, its own."""
    is_open = len(given) == 1 and type(given[0]) is OpenNumber
    return given[0].__class__ if is_open else type(*given)


def _joined(
    plain: Any, own: Callable[[Any], Any], combine: Any, last: bool, items: Any
) -> Any:
    """Return ``any(items)`` or ``all(items)``; an item that is ``last`` ends it."""
    if isinstance(items, TracedArray) and items.ndim == 1:
        return plain.python_truth(items.any() if last else items.all())
    is_listed = isinstance(items, (list, tuple))
    if not is_listed and not (_is_read(items) and _references(items) == _ALONE):
        return own(items)
    found: Any = None
    before: Any = None
    each = iter(items)
    while (item := _next(plain, each, is_sure=found is None)) is not _END:
        if plain.is_unknown(item):
            truth = plain.truth(item)
            before = before or State(plain._t, Variables())
            found = truth if found is None else plain._t.call(combine, found, truth)
        elif bool(item) is last:
            found = last
            break
    if before is not None and before.written():
        before.restore()
        raise TraceError(_LATER.format(own.__name__))
    if isinstance(found, TracedArray):
        return plain.python_truth(found)
    return (not last) if found is None else found


def _next(plain: Any, each: Any, *, is_sure: bool) -> Any:
    """Return the next item, or what says that there is none.

    It is not ``is_sure`` to be asked for where an item before may have decided.
    """
    if is_sure:
        return next(each, _END)
    with plain.perhaps():
        return next(each, _END)


def _is_read(items: Any) -> bool:
    """Tell whether ``items`` is a generator whose expressions were written anew.

    It has not begun, and binds no name of the function around it.
    """
    if type(items) is not GeneratorType or items.gi_code not in originals:
        return False
    is_begun = inspect.getgeneratorstate(items) != inspect.GEN_CREATED
    is_expression = items.gi_code.co_name == "<genexpr>"
    return is_expression and not is_begun and not _binds(items.gi_code)


def _binds(code: CodeType) -> bool:
    """Tell whether ``code`` binds a name of the function around it."""
    stores = (x for x in dis.get_instructions(code) if x.opname in _STORES)
    own = code.co_cellvars
    inner = (x for x in code.co_consts if isinstance(x, CodeType))
    return any(x.argval not in own for x in stores) or any(map(_binds, inner))


def _references(items: Any) -> tuple[int, int]:
    """Return how often a generator is held, and what it goes through.

    Who holds one of them may ask for the items after that which decides.
    """
    return sys.getrefcount(items), sys.getrefcount(items.gi_frame.f_locals[".0"])


def _counted(_: Any, items: Any) -> tuple[int, int]:
    return _references(items)


_ALONE: tuple[int, int] = partial(_counted, None)(x for x in [0])


def _extreme(
    t: Tracer,
    own: Callable[..., Any],
    is_better: Callable[[Any, Any], Any],
    *given: Any,
    key: Any = None,
    **options: Any,
) -> Any:
    """Choose as Python does, one after the other: the first one of equals."""
    is_listed = len(given) == 1
    if is_listed and not isinstance(given[0], Iterable):
        return own(*given, key=key, **options)
    items: tuple[Any, ...] = tuple(given[0]) if is_listed else given
    if not items:
        return own(*(items,) * is_listed, key=key, **options)
    keys = items if key is None else tuple(map(key, items))
    if options.keys() - {"default"} or not _are_numbers(t, keys):
        at = own(range(len(items)), key=keys.__getitem__, **options)
        return items[at]
    if key is not None and len(_kinds(t, items)) != 1:
        raise TraceError(_ITEMS.format(own.__name__))
    best, most = items[0], keys[0]
    for item, one in zip(items[1:], keys[1:], strict=True):
        found = is_better(one, most)
        if isinstance(found, TracedArray):
            most = between(t, found, one, most, _CHOSEN)
            best = most if key is None else between(t, found, item, best, _CHOSEN)
        elif found:
            best, most = item, one
    return best


def _kinds(t: Tracer, items: tuple[Any, ...]) -> set[Any]:
    """Return how numbers take part in promotion; nothing if not all are numbers."""
    is_number = (isinstance(x, (TracedArray, np.generic, int, float)) for x in items)
    if not all(is_number) or any(isinstance(x, TracedArray) and x.ndim for x in items):
        return set()
    return {t.builder.type_of(t.operand(x)) for x in items}


def _are_numbers(t: Tracer, items: tuple[Any, ...]) -> bool:
    """Tell whether some are not known, and one dtype holds all, whichever is chosen."""
    if not any(isinstance(x, TracedArray) for x in items):
        return False
    kinds = _kinds(t, items)
    dtypes = kinds & set(DType)
    return len(kinds) == 1 if not dtypes else {promote(*kinds)} == dtypes
