# SPDX-License-Identifier: Apache-2.0
"""NumPy's conversions, ``np.asarray(x)`` foremost, where ``x`` is a traced array.

They ask an object for its elements, and no protocol lets it answer with a stand-in. So
a trace that meets one in the user's code begins anew, and until it ends the names in
``numpy`` lead to functions that give a stand-in back; so do those of torch's that make
tensors. All other calls, those of other threads among them, go on to NumPy's own.
"""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import functools
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ops as ops
import nfuser.compiler.trace.numpy.names.refusals as refusals
from nfuser.base.locks import ForkSafeLock
from nfuser.compiler.dtypes import as_dtype
from nfuser.compiler.trace.numpy.dispatch.keywords import MISSING
from nfuser.compiler.trace.numpy.functions import HANDLERS
from nfuser.compiler.trace.numpy.without_axes import is_number, mark
from nfuser.compiler.trace.source_line import is_users
from nfuser.compiler.trace.standins.asked import MAKERS, NAMES, RANGES
from nfuser.compiler.trace.standins.literals import array_of, holds_standins
from nfuser.compiler.trace.tracer import current_tracer

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from nfuser.compiler.trace.tracer import Tracer

_ORDERS = {"ascontiguousarray": "C", "asfortranarray": "F"}
_lock = ForkSafeLock()
_replaced: list[tuple[Any, str, Any, Any]] = []
_users = 0


@contextmanager
def converting() -> Generator[None]:
    """Let the names of conversions in ``numpy`` lead to those for stand-ins."""
    global _users
    with _lock:
        _users += 1
        if _users == 1:
            for module, name, replace in _replacements():
                plain = getattr(module, name)
                made = replace(name, plain)
                _replaced.append((module, name, plain, made))
                setattr(module, name, made)
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                for module, name, plain, made in _replaced:
                    if getattr(module, name) is made:
                        setattr(module, name, plain)
                _replaced.clear()


def _replacements() -> Iterator[tuple[Any, str, Callable[..., Any]]]:
    """Yield what leads elsewhere, by module and name, with what makes it."""
    for name in NAMES:
        yield np, name, _either
    for name in MAKERS:
        yield np, name, _maker
    for name in RANGES:
        yield np, name, _maker
    if (torch := sys.modules.get("torch")) is not None and hasattr(torch, "zeros"):
        from nfuser.compiler.trace.torch.words.makers import MAKERS as OF_TORCH  # noqa: PLC0415 (it imports this)

        for name in OF_TORCH:
            yield torch, name, _maker_of_torch


def _either(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    def convert(tracer: Tracer, args: tuple[Any, ...], options: Any) -> Any:
        kinds = "iufc" if tracer.makes_ranges else "fc"
        if not (holds_standins(args) or (tracer.makes and _is_list_of(kinds, args))):
            return plain(*args, **options)
        return _converted(tracer, name, *args, **options)

    return _leading("converts", plain, convert)


def _is_list_of(kinds: str, args: tuple[Any, ...]) -> bool:
    """Tell whether a list is of numbers, and perhaps not of indices."""
    listed = args[0] if args else None
    is_list = isinstance(listed, (list, tuple))
    return is_list and np.asarray(listed).dtype.kind in kinds


def _maker(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    """Return what makes an array that the function may assign to while it is traced."""

    def make(tracer: Tracer, args: tuple[Any, ...], options: Any) -> Any:
        return HANDLERS[name](tracer, *args, **options)

    return _leading("makes_ranges" if name in RANGES else "makes", plain, make)


def _maker_of_torch(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    """Return what makes a tensor that the function may write while it is traced."""
    import nfuser.compiler.trace.torch.words.makers as makers  # noqa: PLC0415 (it imports this)

    def make(tracer: Tracer, args: tuple[Any, ...], options: Any) -> Any:
        return makers.make(tracer, name, plain, args, options)

    return _leading("makes", plain, make)


def _leading(
    asked: str, plain: Callable[..., Any], answer: Callable[..., Any]
) -> Callable[..., Any]:
    """Return ``plain``, but for calls of the user's in traces that are ``asked``."""

    @functools.wraps(plain)
    def lead(*args: Any, **options: Any) -> Any:
        tracer = current_tracer()
        if tracer is None or not getattr(tracer, asked):
            return plain(*args, **options)
        if not is_users(sys._getframe(1).f_code.co_filename):  # pyright: ignore[reportPrivateUsage]
            return plain(*args, **options)
        return answer(tracer, args, options)

    return lead


def _converted(
    t: Tracer,
    name: str,
    a: Any,
    dtype: Any = None,
    order: Any = None,
    *,
    copy: Any = MISSING,
    ndmin: int = 0,
    **options: Any,
) -> Any:
    """Return what NumPy's conversion makes of stand-ins, alone or in lists."""
    for option, given in options.items():
        if given not in (None, False, "cpu"):
            raise refusals.keyword(name, option)
    held = array_of(t, a, None if dtype is None else as_dtype(dtype))
    is_array = not is_number(a) and hasattr(a, "_remake") and held is t.operand(a)
    found: Any = a if is_array else mark(t.wrap(held), (), is_array=True)
    if dtype is not None and np.dtype(dtype) != found.dtype:
        found = HANDLERS["astype"](t, found, dtype)
    if name in _ORDERS:
        ndmin = max(ndmin, 1)
    if found.ndim < ndmin:
        found = found[(None,) * (ndmin - found.ndim)]
    order = _ORDERS.get(name, None if order in ("K", "A") else order)
    if name == "array" if copy is MISSING else copy:
        return HANDLERS["copy"](t, found, order or "K")
    return found if order is None else t.view(ops.copy, found, order)
