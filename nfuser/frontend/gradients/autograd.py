# SPDX-License-Identifier: Apache-2.0
"""A call with tensors that require gradients is one operation of torch's graph.

Its inputs are the tensors among the arguments, and those that the function captures:
the parameters of a module. They are saved, with torch's checks that nobody writes into
them; what else the way back needs it computes again, in one fusion with itself. That is
a call of a fused function, so that torch can record it as well.
"""

# What torch gives has no static type.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

import functools
import inspect
import sys
from typing import TYPE_CHECKING, Any

from nfuser.frontend.gradients.again import plan_of, standing
from nfuser.frontend.gradients.transform import fused_like, remembered
from nfuser.trace import tree as trees
from nfuser.trace.derivatives import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nfuser.frontend.fuse.fused import Fused
    from nfuser.trace.tree import Tree


def call_recorded(
    fused: Fused[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """Return what the call gives, as results that torch knows the way back from."""
    torch = sys.modules["torch"]
    call = _Call(fused, args, kwargs)
    with torch.no_grad():
        captured = _captured(fused, args, kwargs)
        found = fused(*args, **kwargs)
    outputs, shape = trees.flatten(found)
    places = [k for k, x in enumerate(outputs) if _is_tensor(x)]
    call.results = [outputs[k] for k in places]
    call.given = tuple(k for k in places if _is_floating(outputs[k]))
    made = _operation().apply(call, *call.tensors(args, kwargs), *captured)
    for k, tensor in zip(places, made, strict=True):
        outputs[k] = tensor
    return trees.unflatten(shape, outputs)


class _Call:
    """One call: what is not a tensor of it, and where the tensors stand."""

    def __init__(
        self,
        fused: Fused[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> None:
        self._fused = fused
        _, owner = _unbound(fused)
        given = ((*owner, *args), dict(kwargs))
        leaves, self._shape = trees.flatten(standing(given))
        self._places = [k for k, x in enumerate(leaves) if _is_tensor(x)]
        self._rest = [None if _is_tensor(x) else x for x in leaves]
        self.results: list[Any] = []
        self.given: tuple[int, ...] = ()  # the numbers of the results with gradients

    def tensors(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        """Return the tensors among the arguments."""
        return [x for x in trees.flatten((args, dict(kwargs)))[0] if _is_tensor(x)]

    def pull(
        self, saved: Sequence[Any], cotangents: Sequence[Any], needed: Sequence[bool]
    ) -> list[Any]:
        """Return the gradient of each input, None of those that nobody needs."""
        count = len(self._places)
        leaves = list(self._rest)
        for k, tensor in zip(self._places, saved[:count], strict=True):
            leaves[k] = tensor
        wanted = tuple(
            k
            for k, x, need in zip(self._places, saved, needed, strict=False)
            if need and _is_floating(x)
        )
        back = pulled(self._fused, self._shape, wanted, self.given)
        given = standing((tuple(leaves), tuple(cotangents)))
        of_arguments, of_captured = back(*given)
        found = dict(zip(wanted, of_arguments, strict=True))
        known = self._of_captured(back, given, of_captured) if of_captured else {}
        return [
            *(found.get(k) for k in self._places),
            *(
                known[id(x)] if need else None
                for x, need in zip(saved[count:], needed[count:], strict=True)
            ),
        ]

    def _of_captured(
        self, back: Fused[..., Any], given: tuple[Any, ...], found: Sequence[Any]
    ) -> dict[int, Any]:
        torch = sys.modules["torch"]
        with torch.no_grad():
            captured = [x for x in _captured(back, given, {}) if _is_floating(x)]
        return {id(x): g for x, g in zip(captured, found, strict=True)}


@remembered
def pulled(
    fused: Fused[..., Any],
    shape: Tree,
    wanted: tuple[int, ...],
    given: tuple[int, ...],
) -> Fused[..., Any]:
    """Return the way back through ``fused``: from leaves and cotangents to gradients.

    ``shape`` is the nest of the arguments, ``wanted`` are the leaves in which gradients
    are taken, ``given`` the numbers of the results that have cotangents.
    """
    function, _ = _unbound(fused)

    def flat(*leaves: Any) -> Any:
        args, kwargs = trees.unflatten(shape, leaves)
        return tuple(trees.flatten(function(*args, **kwargs))[0])

    def derived(leaves: Any, cotangents: Any) -> Any:
        run = Run("vjp", flat, leaves, {}, wanted, varies=_is_tensor)
        return run.pulled_as_torch(given, cotangents)

    again = pulled, (fused, shape, wanted, given)
    return fused_like("backward", fused, derived, again=again, takes_the_same=False)


def _unbound(fused: Fused[..., Any]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return a function that is no method, and the object that it takes first, if any.

    What an object holds is followed where the object is an argument.
    """
    function = fused._function
    if inspect.ismethod(function):
        return function.__func__, (function.__self__,)
    if isinstance(function, sys.modules["torch"].nn.Module):
        return type(function).__call__, (function,)
    return fused, ()


def _captured(
    fused: Fused[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[Any]:
    """Return the tensors that a call captures, in the order of their slots."""
    return [x for x in plan_of(fused, args, kwargs) if _is_tensor(x)]


def _is_tensor(item: Any) -> bool:
    torch = sys.modules["torch"]
    return item.__class__ in (torch.Tensor, torch.nn.Parameter)


def _is_floating(tensor: Any) -> bool:
    return tensor.dtype.is_floating_point or tensor.dtype.is_complex


@functools.cache
def _operation() -> Any:
    """Return the operation, a class of torch's own making."""
    torch = sys.modules["torch"]

    class FusedCall(torch.autograd.Function):
        """One call of a fused function."""

        @staticmethod
        def forward(ctx: Any, call: _Call, *inputs: Any) -> Any:
            ctx.call, results = call, tuple(call.results)
            call.results = []  # they hold this
            ctx.save_for_backward(*inputs)
            exact = [x for x in results if not _is_floating(x)]
            ctx.mark_non_differentiable(*exact)
            ctx.floating = [_is_floating(x) for x in results]
            return results

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            pairs = zip(cotangents, ctx.floating, strict=True)
            given = [t for t, is_floating in pairs if is_floating]
            needed = ctx.needs_input_grad[1:]
            return None, *ctx.call.pull(ctx.saved_tensors, given, needed)

    return FusedCall
