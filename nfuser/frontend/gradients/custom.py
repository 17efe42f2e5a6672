# SPDX-License-Identifier: Apache-2.0
"""``nfuser.custom_vjp``: functions that bring their own way back."""

# What is called has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import functools
import inspect
from types import MethodType
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from nfuser.compiler.trace import current_tracer
from nfuser.compiler.trace.transforms.custom_pull import with_pull
from nfuser.errors import ArgumentError
from nfuser.frontend.fuse.fused import Fused
from nfuser.frontend.gradients.transform import check_function, places

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nfuser.frontend.gradients.transform import Argnums


def custom_vjp(fun: Callable[..., Any], nondiff_argnums: Argnums = ()) -> CustomVjp:
    """Return ``fun`` as a function whose way back ``defvjp`` sets; a decorator.

    Arguments in the places ``nondiff_argnums`` are no arrays, or constants: they go to
    ``bwd`` as they are, before all else. What ``fun`` reads beside its arguments is a
    constant to derivatives.

    >>> import numpy as np, nfuser
    >>> double = nfuser.custom_vjp(lambda x: 2 * x)
    >>> double.defvjp(lambda x: (2 * x, None), lambda kept, t: (t * 100,))
    >>> double(1.5), nfuser.grad(double)(1.5)
    (3.0, 100.0)
    """
    check_function("custom_vjp", fun)
    is_one = isinstance(nondiff_argnums, int)
    return CustomVjp(fun, (nondiff_argnums,) if is_one else tuple(nondiff_argnums))


class CustomVjp:
    """A function with a way back of its own."""

    def __init__(
        self, fun: Callable[..., Any], nondiff_argnums: tuple[int, ...]
    ) -> None:
        functools.update_wrapper(self, fun, updated=())
        self.fun = fun
        self.nondiff_argnums = nondiff_argnums
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None
        self._in_fwd: WeakSet[Any] = WeakSet()  # traces in which fwd runs now

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Set ``fwd(*args) -> (value, kept)`` and ``bwd(kept, cotangent) -> args``.

        ``bwd`` returns a tuple: a cotangent for each argument, None for zeros.
        """
        check_function("custom_vjp", fwd)
        check_function("custom_vjp", bwd)
        self.fwd, self.bwd = fwd, bwd

    def __get__(self, item: Any, owner: type | None = None) -> Any:
        """Return what a method is: this, with the object as the first argument."""
        return self if item is None else MethodType(self, item)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return what ``fun`` gives; where it is differentiated, what ``fwd`` does."""
        tracer = current_tracer()
        if tracer is None or not tracer.runs:
            return self.fun(*args, **kwargs)
        args = self._by_position(args, kwargs)
        fwd, bwd = self.fwd, self.bwd
        if fwd is None or bwd is None:
            name = getattr(self.fun, "__name__", "f")
            message = (
                f"write {name}.defvjp(fwd, bwd) before {name} is differentiated: it "
                "has no way back yet"
            )
            raise ArgumentError(message)
        fixed = places("custom_vjp", self.nondiff_argnums, len(args))
        before = tuple(args[k] for k in fixed)
        others = [x for k, x in enumerate(args) if k not in fixed]
        if tracer in self._in_fwd:
            # fwd calls the function itself for its value: what the way back of that
            # needs is asked for if somebody goes there.
            value = self.fun(*args)
            return with_pull(
                tracer,
                others,
                value,
                lambda t: bwd(*before, self._forward(tracer, fwd, args)[1], t),
            )
        value, kept = self._forward(tracer, fwd, args)
        return with_pull(tracer, others, value, lambda t: bwd(*before, kept, t))

    def _forward(
        self, tracer: Any, fwd: Callable[..., Any], args: tuple[Any, ...]
    ) -> tuple[Any, Any]:
        """Return the value and what the way back needs."""
        self._in_fwd.add(tracer)
        try:
            found = fwd(*args)
        finally:
            self._in_fwd.discard(tracer)
        if not isinstance(found, tuple) or len(found) != 2:
            message = (
                "return (value, kept) from fwd: expected a pair, found "
                f"{type(found).__name__}"
            )
            raise ArgumentError(message)
        return found

    def _by_position(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        """Return all arguments as ``fwd`` takes them, those that were left out, too."""
        left = dict(kwargs)
        fun = self.fun
        plain = inspect.unwrap(fun) if isinstance(fun, Fused) else fun
        if inspect.isfunction(plain):  # NumPy's own have options besides
            bound = inspect.signature(plain).bind(*args, **kwargs)
            left = bound.kwargs
            bound.apply_defaults()
            args = bound.args
        if left:
            message = (
                "pass all arguments by position to what nfuser.custom_vjp made: found "
                f"{', '.join(left)} by name"
            )
            raise ArgumentError(message)
        return args
