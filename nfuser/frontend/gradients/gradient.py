# SPDX-License-Identifier: Apache-2.0
"""``nfuser.grad`` and ``nfuser.value_and_grad``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nfuser.compiler.trace.transforms.derivatives import Run, one_like
from nfuser.frontend.gradients.transform import (
    check_function,
    fused_like,
    listed,
    places,
    remembered,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.frontend.fuse.fused import Fused
    from nfuser.frontend.gradients.transform import Argnums


def value_and_grad(
    function: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Fused[..., Any]:
    """Return a fused function that gives the value of ``function`` and its gradient.

    ``function`` returns one real number; with ``has_aux`` a pair of it and of anything
    else, and then ``((value, aux), gradient)`` comes back. The gradient is taken in
    the argument in place ``argnums``, an array or a nest of arrays, and is a nest like
    it; of several places, it is a tuple.

    >>> import numpy as np, nfuser
    >>> x = np.array([1.0, 2.0])
    >>> nfuser.value_and_grad(lambda x: (x * x).sum())(x)
    (np.float64(5.0), array([2., 4.]))
    """
    check_function("value_and_grad", function)
    return _with_value(function, listed(argnums), has_aux)


@remembered
def _with_value(
    function: Callable[..., Any], argnums: Argnums, has_aux: bool
) -> Fused[..., Any]:
    def derived(*args: Any, **kwargs: Any) -> Any:
        value, aux, found = _taken(
            "value_and_grad", function, argnums, has_aux, args, kwargs
        )
        return ((value, aux), found) if has_aux else (value, found)

    again = value_and_grad, (function, argnums, has_aux)
    return fused_like("value_and_grad", function, derived, again=again)


def grad(
    function: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Fused[..., Any]:
    """Return a fused function that gives the gradient of ``function``.

    It takes what ``function`` takes; ``argnums`` and ``has_aux`` are those of
    ``value_and_grad``. With ``has_aux`` it gives ``(gradient, aux)``.

    >>> import numpy as np, nfuser
    >>> slope = nfuser.grad(np.tanh)
    >>> slope(0.0)
    1.0
    >>> nfuser.grad(nfuser.grad(lambda x: x**3))(2.0)
    12.0
    """
    check_function("grad", function)
    return _alone(function, listed(argnums), has_aux)


@remembered
def _alone(
    function: Callable[..., Any], argnums: Argnums, has_aux: bool
) -> Fused[..., Any]:
    def derived(*args: Any, **kwargs: Any) -> Any:
        _, aux, found = _taken("grad", function, argnums, has_aux, args, kwargs)
        return (found, aux) if has_aux else found

    again = grad, (function, argnums, has_aux)
    return fused_like("grad", function, derived, again=again)


def _taken(
    name: str,
    function: Callable[..., Any],
    argnums: Argnums,
    has_aux: bool,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[Any, Any, Any]:
    """Return value, aux and gradient of a call."""
    which = places(name, argnums, len(args))
    run = Run(name, function, args, kwargs, which, has_aux=has_aux)
    found = run.pull([one_like(run)])
    is_one = not isinstance(argnums, tuple)
    return run.value, run.aux, found[0] if is_one else tuple(found)
