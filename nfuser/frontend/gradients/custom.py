# SPDX-License-Identifier: Apache-2.0
"""``nfuser.custom_vjp``: functions that bring their own way back."""

# What is called has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from nfuser.errors import ArgumentError
from nfuser.frontend.gradients.transform import check_function, places
from nfuser.trace import current_tracer
from nfuser.trace.custom_pull import with_pull

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def custom_vjp(
    fun: Callable[..., Any], nondiff_argnums: Sequence[int] = ()
) -> CustomVjp:
    """Return ``fun`` as a function whose way back ``defvjp`` sets; a decorator.

    Arguments in the places ``nondiff_argnums`` are no arrays, or constants: they go to
    ``bwd`` as they are, before all else.

    >>> import numpy as np, nfuser
    >>> double = nfuser.custom_vjp(lambda x: 2 * x)
    >>> double.defvjp(lambda x: (2 * x, None), lambda kept, t: (t * 100,))
    >>> double(1.5), nfuser.grad(double)(1.5)
    (3.0, 100.0)
    """
    check_function("custom_vjp", fun)
    return CustomVjp(fun, tuple(nondiff_argnums))


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

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Set ``fwd(*args) -> (value, kept)`` and ``bwd(kept, cotangent) -> args``.

        ``bwd`` returns a tuple: a cotangent for each argument, None for zeros.
        """
        check_function("custom_vjp", fwd)
        check_function("custom_vjp", bwd)
        self.fwd, self.bwd = fwd, bwd

    def __call__(self, *args: Any) -> Any:
        """Return what ``fun`` gives; where it is differentiated, what ``fwd`` does."""
        tracer = current_tracer()
        if tracer is None or not tracer.runs:
            return self.fun(*args)
        fwd, bwd = self.fwd, self.bwd
        if fwd is None or bwd is None:
            name = getattr(self.fun, "__name__", "f")
            message = (
                f"write {name}.defvjp(fwd, bwd) before {name} is differentiated: it "
                "has no way back yet"
            )
            raise ArgumentError(message)
        found = fwd(*args)
        if not isinstance(found, tuple) or len(found) != 2:
            message = (
                "return (value, kept) from fwd: expected a pair, found "
                f"{type(found).__name__}"
            )
            raise ArgumentError(message)
        value, kept = found
        fixed = places("custom_vjp", self.nondiff_argnums, len(args))
        before = tuple(args[k] for k in fixed)
        others = [x for k, x in enumerate(args) if k not in fixed]
        return with_pull(tracer, others, value, lambda t: bwd(*before, kept, t))
