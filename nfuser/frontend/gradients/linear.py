# SPDX-License-Identifier: Apache-2.0
"""``nfuser.vjp``, ``nfuser.jvp`` and ``nfuser.stop_gradient``."""

# What is differentiated has no static type.
# pyright: reportUnknownArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nfuser.compiler.trace import current_tracer
from nfuser.compiler.trace.call import tree as trees
from nfuser.compiler.trace.transforms.derivatives import Run, stopped
from nfuser.errors import ArgumentError
from nfuser.frontend.call.draws import drawing_again, noting_draws
from nfuser.frontend.call.inputs.argument_names import leaf_names
from nfuser.frontend.fuse.fused import Fused
from nfuser.frontend.gradients.again import plan_of
from nfuser.frontend.gradients.gradient import grad
from nfuser.frontend.gradients.keeping import (
    KeepingPlan,
    Planner,
    copied,
    read_kept,
    saving,
    standin,
)
from nfuser.frontend.gradients.transform import (
    check_function,
    fused_like,
    remembered,
    way_back_like,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nfuser.compiler.trace.call.tree import Tree


def vjp(function: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Return ``function(*primals)``, and a function of its cotangent.

    That function takes an array, or a nest, like the value; it returns a tuple of the
    cotangents of the primals, each what they are multiplied with by the transposed
    Jacobian. With ``has_aux`` a third result is the aux of ``function``. Called outside
    of a fused function it holds what ``nfuser.fuse(function).saved(*primals)`` says:
    of the primals those that it reads, with the elements that they have by then, and
    what is not computed twice.

    >>> import numpy as np, nfuser
    >>> x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    >>> value, pull = nfuser.vjp(np.multiply, x, y)
    >>> pull(np.array([1.0, 10.0]))
    (array([ 3., 40.]), array([ 1., 20.]))
    """
    check_function("vjp", function)
    if current_tracer() is not None:
        run = _run("vjp", function, primals, has_aux)
        return _with_aux(run, run.pulled) if has_aux else (run.value, run.pulled)

    forward = _valued(function)
    ready, _ = plan_of(forward, primals, {})
    leaves, shape = trees.flatten(primals)
    planner = _planner(function, shape, len(leaves), has_aux)
    plan = planner.plan_for(ready, leaves)
    with noting_draws() as draws:
        found, back = _kept(function, primals, planner, plan, has_aux)

    def pull(cotangent: Any) -> Any:
        with drawing_again(draws):
            return back(cotangent)

    if not has_aux:
        return found, pull
    value, aux = found
    return value, pull, aux


def _kept(
    function: Callable[..., Any],
    primals: Sequence[Any],
    planner: Planner,
    plan: KeepingPlan | None,
    has_aux: bool,
) -> tuple[Any, Callable[[Any], Any]]:
    """Return what ``function`` gives, and its way back, which holds what it reads."""
    if plan is None:
        pulled = _pulled(function, has_aux)
        found = _valued(function)._called(*primals)
        return found, lambda t: pulled._called(primals, t)
    leaves, shape = trees.flatten(primals)
    added: Sequence[Any] = ()
    if plan.added:
        value, aux, added = saving(function, planner, plan)._called(*leaves)
        found = (value, aux) if has_aux else value
    else:
        found = _valued(function)._called(*primals)
        value = found[0] if has_aux else found
    outputs, rest = trees.flatten(value)[0], iter(added)
    kept = [
        next(rest) if k.output is None else copied(outputs[k.output]) for k in plan.kept
    ]
    read = [x if k in plan.read else standin(x) for k, x in enumerate(leaves)]
    pulled = _pulled_kept(function, shape, planner, plan)
    return found, lambda t: pulled._called(read, t, kept)


@remembered
def _planner(
    function: Callable[..., Any], shape: Tree, count: int, has_aux: bool
) -> Planner:
    def flat(*leaves: Any) -> Any:
        return function(*trees.unflatten(shape, leaves))

    plain = function._function if isinstance(function, Fused) else function
    given = trees.flatten((trees.unflatten(shape, range(count)), {}))[1]
    names = leaf_names(plain, given)
    return Planner(function, flat, tuple(range(count)), names, has_aux=has_aux)


@remembered
def _pulled_kept(
    function: Callable[..., Any], shape: Tree, planner: Planner, plan: KeepingPlan
) -> Fused[..., Any]:
    def derived(leaves: Any, cotangent: Any, kept: Any) -> Any:
        run = planner.run(leaves)
        read_kept(run, plan, kept)
        found = run.pulled(cotangent)
        return trees.unflatten(shape, found)

    return way_back_like("vjp", function, derived, ())


def jvp(
    function: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool = False,
) -> Any:
    """Return ``function(*primals)``, and how it changes with the primals.

    ``tangents`` has the direction of the change, an array or a nest like each of the
    primals. This is forward mode: one run, whatever the value is. With ``has_aux`` a
    third result is the aux of ``function``.

    >>> import numpy as np, nfuser
    >>> nfuser.jvp(np.sin, (0.0,), (2.0,))
    (np.float64(0.0), np.float64(2.0))
    """
    check_function("jvp", function)
    _check_items("jvp", primals, tangents)
    if current_tracer() is not None:
        return _pushed_now(function, primals, tangents, has_aux)
    return _pushed(function, has_aux)(tuple(primals), tuple(tangents))


def hvp(
    function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Any, ...]:
    """Return the product of the Hessian of ``function`` at ``primals`` with a vector.

    ``function`` returns one real number, ``tangents`` is the vector, as ``jvp`` takes
    them. The product is a tuple: an array, or a nest, like each of the primals. The
    Hessian is not computed.

    >>> import numpy as np, nfuser
    >>> x, v = np.array([1.0, 2.0]), np.array([1.0, 0.0])
    >>> nfuser.hvp(lambda x: (x**3).sum(), (x,), (v,))
    (array([6., 0.]),)
    """
    check_function("hvp", function)
    _check_items("hvp", primals, tangents)
    slope = grad(function, tuple(range(len(primals))))
    return jvp(slope, primals, tangents)[1]


def stop_gradient(x: Any) -> Any:
    """Return ``x``, an array or a nest of arrays, as a constant to derivatives.

    >>> import numpy as np, nfuser
    >>> nfuser.grad(lambda x: x * nfuser.stop_gradient(x))(3.0)
    3.0
    """
    return stopped(x)


def _check_items(name: str, primals: Any, tangents: Any) -> None:
    for what, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, (tuple, list)):
            message = (
                f"write nfuser.{name}(f, (x,), (t,)): {what} are a tuple with one item "
                f"for each argument, found {type(given).__name__}"
            )
            raise ArgumentError(message)


def _run(
    name: str, function: Callable[..., Any], primals: Sequence[Any], has_aux: bool
) -> Run:
    return Run(name, function, primals, {}, range(len(primals)), has_aux=has_aux)


def _with_aux(run: Run, found: Any) -> tuple[Any, Any, Any]:
    return run.value, found, run.aux


def _pushed_now(
    function: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool,
) -> Any:
    run = _run("jvp", function, primals, has_aux)
    found = run.pushed(tangents)
    return _with_aux(run, found) if has_aux else (run.value, found)


@remembered
def _valued(function: Callable[..., Any]) -> Fused[..., Any]:
    def derived(*args: Any) -> Any:
        return function(*args)

    return fused_like("value", function, derived, again=(_valued, (function,)))


@remembered
def _pulled(function: Callable[..., Any], has_aux: bool) -> Fused[..., Any]:
    def derived(primals: Any, cotangent: Any) -> Any:
        return _run("vjp", function, primals, has_aux).pulled(cotangent)

    again = _pulled, (function, has_aux)
    return way_back_like("vjp", function, derived, again)


@remembered
def _pushed(function: Callable[..., Any], has_aux: bool) -> Fused[..., Any]:
    def derived(primals: Any, tangents: Any) -> Any:
        return _pushed_now(function, primals, tangents, has_aux)

    again = _pushed, (function, has_aux)
    return fused_like("jvp", function, derived, again=again, takes_the_same=False)
