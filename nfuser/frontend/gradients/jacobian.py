# SPDX-License-Identifier: Apache-2.0
"""``nfuser.jacfwd``, ``nfuser.jacrev`` and ``nfuser.hessian``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nfuser.compiler.trace.call.tree as tree
import nfuser.compiler.trace.transforms.jacobians as jacobians
from nfuser.compiler.trace import current_tracer
from nfuser.compiler.trace.transforms.derivatives import Run
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


def jacrev(
    function: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Fused[..., Any]:
    """Return a fused function that gives the Jacobian of ``function``, backwards.

    One way back is written, and taken for all elements of the value together: for
    values of few elements, and of many arguments. The derivative of a value of shape
    ``s`` in an argument of shape ``a`` has shape ``s + a``; it is nested as the value
    is, and for each of these as the argument. Of several places ``argnums`` it is a
    tuple. With ``has_aux`` the function returns a pair, and ``(jacobian, aux)`` comes
    back. A ``holomorphic`` function is one of complex numbers to complex numbers.

    >>> import numpy as np, nfuser
    >>> nfuser.jacrev(lambda x: np.array([2.0, 3.0]) * x.sum())(np.ones(3))
    array([[2., 2., 2.],
           [3., 3., 3.]])
    """
    check_function("jacrev", function)
    return _jacobian("jacrev", function, listed(argnums), has_aux, holomorphic)


def jacfwd(
    function: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Fused[..., Any]:
    """Return a fused function that gives the Jacobian of ``function``, forwards.

    One way forward is written, and taken for all elements of the arguments together:
    for arguments of few elements, and values of many. What it gives is nested as by
    ``jacrev``.

    >>> import numpy as np, nfuser
    >>> nfuser.jacfwd(lambda t: np.stack([np.cos(t), np.sin(t)]))(0.0)
    array([-0.,  1.])
    """
    check_function("jacfwd", function)
    return _jacobian("jacfwd", function, listed(argnums), has_aux, holomorphic)


def hessian(
    function: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Fused[..., Any]:
    """Return a fused function that gives the second derivatives of ``function``.

    It is ``jacfwd`` of ``jacrev``: of a number that depends on an array of shape ``a``
    it has shape ``a + a``.

    >>> import numpy as np, nfuser
    >>> nfuser.hessian(lambda x: x[0] ** 2 * x[1])(np.array([3.0, 5.0]))
    array([[10.,  6.],
           [ 6.,  0.]])
    """
    check_function("hessian", function)
    slopes = jacrev(function, argnums, has_aux, holomorphic)
    return jacfwd(slopes, argnums, has_aux, holomorphic)


_WAYS = {"jacrev": jacobians.by_pulling, "jacfwd": jacobians.by_pushing}


@remembered
def _jacobian(
    name: str,
    function: Callable[..., Any],
    argnums: Argnums,
    has_aux: bool,
    holomorphic: bool,
) -> Fused[..., Any]:
    def derived(*args: Any, **kwargs: Any) -> Any:
        tracer = current_tracer()
        assert tracer is not None
        which = places(name, argnums, len(args))
        run = Run(name, function, args, kwargs, which, has_aux=has_aux)
        shape, blocks = _WAYS[name](tracer, run, name, holomorphic=holomorphic)
        if not isinstance(argnums, tuple):
            blocks = [block[0] for block in blocks]
        found = tree.unflatten(shape, blocks)
        return (found, run.aux) if has_aux else found

    again = _jacobian, (name, function, argnums, has_aux, holomorphic)
    return fused_like(name, function, derived, again=again)
