# SPDX-License-Identifier: Apache-2.0
"""A call with tensors that require gradients is one operation of torch's graph.

Its inputs are the tensors among the arguments, and those that the function captures:
the parameters of a module. What the way back reads of them is saved, with torch's
checks that nobody writes into it, and what is not computed twice, which the operation
has as further results. All else the way back computes again, in one fusion with itself.
That is a call of a fused function, so that torch can record it as well.
"""

# What torch gives has no static type.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportPrivateUsage=false

from __future__ import annotations

import functools
import inspect
import sys
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from nfuser.compiler.trace.call import tree as trees
from nfuser.compiler.trace.transforms.derivatives import Run
from nfuser.errors import TraceError
from nfuser.frontend.call.draws import DrawCalls, drawing_again, noting_draws
from nfuser.frontend.call.inputs.argument_names import leaf_names
from nfuser.frontend.gradients.again import plan_of
from nfuser.frontend.gradients.keeping import (
    KeepingPlan,
    Planner,
    let_stand,
    read_kept,
    saving,
    standin,
)
from nfuser.frontend.gradients.transform import remembered, way_back_like

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nfuser.compiler.trace.call.tree import Tree
    from nfuser.frontend.call.ready import Ready
    from nfuser.frontend.fuse.fused import Fused


def call_recorded(
    fused: Fused[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """Return what the call gives, as results that torch knows the way back from."""
    torch = sys.modules["torch"]
    ready, arrays = plan_of(fused, args, kwargs)
    call = _Call(fused, ready, args, kwargs)
    captured = [x for x in arrays if _is_tensor(x)]
    with torch.no_grad(), noting_draws() as call.draws:
        found, added = call.run(args, kwargs)
    outputs, shape = trees.flatten(found)
    places = [k for k, x in enumerate(outputs) if _is_tensor(x)]
    call.results = [*(outputs[k] for k in places), *added]
    count = len(outputs)
    call.numbers = (*places, *range(count, count + len(added)))
    call.added = len(added)
    inputs = call.tensors(args, kwargs)
    call.standins = call.shapes(inputs)
    made = _operation().apply(call, *inputs, *captured)
    for k, tensor in zip(places, made, strict=False):
        outputs[k] = tensor
    return trees.unflatten(shape, outputs)


class _Call:
    """One call: what is not a tensor of it, and where the tensors stand."""

    def __init__(
        self,
        fused: Fused[..., Any],
        ready: Ready,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> None:
        self._fused = fused
        _, owner = _unbound(fused)
        given = ((*owner, *args), dict(kwargs))
        leaves, self._shape = trees.flatten(given)
        self._places = [k for k, x in enumerate(leaves) if _is_tensor(x)]
        self._rest = [None if _is_tensor(x) else x for x in leaves]
        wanted = tuple(k for k in self._places if _asks(leaves[k]))
        self._planner = _planner(fused, self._shape, wanted)
        self.plan = self._planner.plan_for(ready, leaves)
        self._has_draws = bool(ready.variant.trace.captured.streams.drawn)
        self.results: list[Any] = []
        self.numbers: tuple[int, ...] = ()  # of the results, among all of the function
        self.added = 0  # how many of them are kept alone
        self.draws: list[DrawCalls] = []
        self.standins: list[Any] = []

    def run(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Any, list[Any]]:
        """Return what the function gives, and what it is to keep besides."""
        plan = self.plan
        if plan is None or not plan.added:
            return self._calling(self._fused)(*args, **kwargs), []
        _, owner = _unbound(self._fused)
        leaves, _ = trees.flatten(((*owner, *args), dict(kwargs)))
        there = saving(self._fused, self._planner, plan)
        found, _, added = self._calling(there)(*leaves)
        return found, list(added)

    def _calling(self, fused: Fused[..., Any]) -> Callable[..., Any]:
        """Return what calls ``fused``: native code, unless draws are to be noted."""
        return fused._called if self._has_draws else fused

    def tensors(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        """Return the tensors among the arguments."""
        return [x for x in trees.flatten((args, dict(kwargs)))[0] if _is_tensor(x)]

    def kept(self, inputs: Sequence[Any], results: Sequence[Any]) -> list[Any]:
        """Return what is saved of the call: None in the place of what is not read."""
        plan = self.plan
        if plan is None:
            return list(inputs)
        count = len(self._places)
        pairs = zip(self._places, inputs, strict=False)
        read = [x if k in plan.read else None for k, x in pairs]
        by_number = dict(zip(self.numbers, results, strict=True))
        first = len(self.numbers) and self.numbers[-1] - len(plan.added) + 1
        numbers = iter(range(first, first + len(plan.added)))
        return [
            *(*read, *inputs[count:]),
            *(
                by_number[next(numbers) if k.output is None else k.output]
                for k in plan.kept
            ),
            *(_stamp(self.draws) if self._is_stamped else ()),
        ]

    @property
    def _is_stamped(self) -> bool:
        """Whether something is kept that may be of what was drawn."""
        return bool(self.plan and self.plan.kept and self.draws)

    def shapes(self, inputs: Sequence[Any]) -> list[Any]:
        """Return what stands for inputs that are not read, of no memory.

        Those of a sum that is kept stand in torch's graph where the inputs do.
        """
        plan = self.plan
        if plan is None:
            return [None for _ in self._places]
        pairs = list(zip(self._places, inputs, strict=False))
        known = [k for k, x in pairs if k in plan.summed and _asks(x)]
        shadow = _shadow().apply if known else standin
        return [
            None if k in plan.read else shadow(x) if k in known else standin(x)
            for k, x in pairs
        ]

    def pull(
        self,
        saved: Sequence[Any],
        standins: Sequence[Any],
        cotangents: Mapping[int, Any],
        needed: Sequence[bool],
    ) -> list[Any]:
        """Return the gradient of each input, None of those that nobody needs."""
        count = len(self._places)
        leaves = list(self._rest)
        inputs, kept = saved[: len(needed)], saved[len(needed) :]
        if self.plan and self._is_stamped:
            first = len(self.plan.kept)
            kept, stamp = kept[:first], kept[first:]
            _check_stamp(stamp, self.draws)
        for k, tensor, like in zip(self._places, inputs, standins, strict=False):
            leaves[k] = like if tensor is None else tensor
        wanted = tuple(
            k
            for k, need in zip(self._places, needed, strict=False)
            if need and _is_floating(leaves[k])
        )
        alike = _alike([leaves[k] for k in wanted])
        numbers = tuple(cotangents)
        back = _back(self._fused, self._shape, wanted, numbers, self.plan, alike)
        given = tuple(leaves), tuple(cotangents.values()), tuple(kept)
        with drawing_again(self.draws):
            of_arguments, of_captured = self._calling(back)(*given)
        found = {wanted[k]: t for ks, t in of_arguments.items() for k in ks}
        known = self._of_captured(back, given, of_captured) if of_captured else {}
        return [
            *(found.get(k) for k in self._places),
            *(
                known[id(x)] if need else None
                for x, need in zip(inputs[count:], needed[count:], strict=True)
            ),
        ]

    def _of_captured(
        self, back: Fused[..., Any], given: tuple[Any, ...], found: Sequence[Any]
    ) -> dict[int, Any]:
        torch = sys.modules["torch"]
        with torch.no_grad():
            captured = [x for x in _captured(back, given, {}) if _is_floating(x)]
        return {id(x): g for x, g in zip(captured, found, strict=True)}


def _stamp(draws: Sequence[DrawCalls]) -> list[Any]:
    """Return tensors saved beside what is kept, which say of what numbers that is.

    A key on a GPU is one of them itself: to read it would wait for the device, which a
    CUDA graph that is recorded forbids.
    """
    told = [(count, [x for x in xs if not _is_tensor(x)]) for count, xs in draws]
    words = sha256(repr(told).encode()).digest()
    number = sys.modules["torch"].tensor(int.from_bytes(words[:7], "big"))
    return [number, *(x for _, xs in draws for x in xs if _is_tensor(x))]


def _check_stamp(stamp: Sequence[Any], draws: Sequence[DrawCalls]) -> None:
    """Refuse what was kept by another run of the call, with other random numbers."""
    if not all(map(_is_same, stamp, _stamp(draws))):
        message = (
            "write nfuser.checkpoint, or draw from a generator of torch: "
            "torch.utils.checkpoint runs the function again for what it keeps, and "
            "sets back torch's generators alone"
        )
        raise TraceError(message)


def _is_same(one: Any, other: Any) -> bool:
    """Tell whether two tensors have the same elements, unread where they are one."""
    is_one = one.data_ptr() == other.data_ptr()
    return is_one or bool(sys.modules["torch"].equal(one, other))


def _flat(fused: Fused[..., Any], shape: Tree) -> Callable[..., Any]:
    """Return the function of the leaves of its arguments, with a tuple of results."""
    function, _ = _unbound(fused)

    def flat(*leaves: Any) -> Any:
        args, kwargs = trees.unflatten(shape, leaves)
        return function(*args, **kwargs)

    return flat


@remembered
def _planner(fused: Fused[..., Any], shape: Tree, wanted: tuple[int, ...]) -> Planner:
    function, _ = _unbound(fused)
    plain = function._function if isinstance(function, type(fused)) else function
    names = leaf_names(plain, shape)
    return Planner(fused, _flat(fused, shape), wanted, names, _is_tensor)


@remembered
def pulled(
    fused: Fused[..., Any],
    shape: Tree,
    wanted: tuple[int, ...],
    numbers: tuple[int, ...],
) -> Fused[..., Any]:
    """Return the way back through ``fused``: from leaves and cotangents to gradients.

    ``shape`` is the nest of the arguments, ``wanted`` are the leaves in which gradients
    are taken, ``numbers`` those of the results that have cotangents.
    """
    flat = _flat(fused, shape)

    def derived(leaves: Any, cotangents: Any) -> Any:
        run = Run("vjp", flat, leaves, {}, wanted, varies=_is_tensor)
        return run.pulled_as_torch(numbers, cotangents)

    again = pulled, (fused, shape, wanted, numbers)
    return way_back_like("backward", fused, derived, again)


@remembered
def _back(
    fused: Fused[..., Any],
    shape: Tree,
    wanted: tuple[int, ...],
    numbers: tuple[int, ...],
    plan: KeepingPlan | None,
    alike: tuple[int, ...],
) -> Fused[..., Any]:
    """Return the way back as ``pulled`` does, of which a ``plan`` says what is kept.

    Each gradient comes once, under the numbers of the leaves that it is of: those of
    the terms of a sum are one tensor, as torch has it, where the leaves are ``alike``.
    """
    flat = _flat(fused, shape)

    def derived(leaves: Any, cotangents: Any, kept: Any) -> Any:
        run = Run("vjp", flat, leaves, {}, wanted, varies=_is_tensor)
        if plan is not None:
            read_kept(run, plan, kept)
        found, of_captured = run.pulled_as_torch(numbers, cotangents)
        if plan is not None:
            let_stand(run, plan, kept)
        first: dict[tuple[int, Any], int] = {}
        places: dict[int, list[int]] = {}
        for k, t in enumerate(found):
            same = first.setdefault((alike[k], run.unbroadcast(t)), k)
            places.setdefault(same, []).append(k)
        return {tuple(ks): found[k] for k, ks in places.items()}, of_captured

    again = _back, (fused, shape, wanted, numbers, plan, alike)
    return way_back_like("backward", fused, derived, again)


def _alike(leaves: Sequence[Any]) -> tuple[int, ...]:
    """Return for each leaf the number of the first one of its shape and dtype."""
    first: dict[tuple[Any, ...], int] = {}
    keys = ((x.shape, x.dtype) for x in leaves)
    return tuple(first.setdefault(key, k) for k, key in enumerate(keys))


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
    return [x for x in plan_of(fused, args, kwargs)[1] if _is_tensor(x)]


def _is_tensor(item: Any) -> bool:
    torch = sys.modules["torch"]
    return item.__class__ in (torch.Tensor, torch.nn.Parameter)


def _asks(tensor: Any) -> bool:
    return tensor.requires_grad and _is_floating(tensor)


def _is_floating(tensor: Any) -> bool:
    return tensor.dtype.is_floating_point or tensor.dtype.is_complex


@functools.cache
def _shadow() -> Any:
    """Return what makes a tensor of no memory that has the gradient of its argument."""
    torch = sys.modules["torch"]

    class Shadow(torch.autograd.Function):
        """An argument without its elements."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            del ctx
            return standin(x)

        @staticmethod
        def backward(ctx: Any, cotangent: Any) -> Any:
            del ctx
            return cotangent

    return Shadow


@functools.cache
def _operation() -> Any:
    """Return the operation, a class of torch's own making."""
    torch = sys.modules["torch"]

    class FusedCall(torch.autograd.Function):
        """One call of a fused function."""

        @staticmethod
        def forward(ctx: Any, call: _Call, *inputs: Any) -> Any:
            ctx.call, found = call, tuple(call.results)
            call.results = []  # they hold this
            ctx.save_for_backward(*call.kept(inputs, found))
            ctx.standins, call.standins = call.standins, []
            ctx.set_materialize_grads(False)
            count = len(found) - call.added
            constant = call.plan.constant if call.plan else ()
            pairs = zip(call.numbers, found[:count], strict=False)
            exact = [x for k, x in pairs if k in constant or not _is_floating(x)]
            ctx.mark_non_differentiable(*exact, *found[count:])
            ctx.floating = [_is_floating(x) for x in found]
            return found

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            triples = zip(ctx.call.numbers, cotangents, ctx.floating, strict=True)
            given = {k: t for k, t, is_float in triples if is_float and t is not None}
            needed = ctx.needs_input_grad[1:]
            if not given:
                return None, *(None for _ in needed)
            found = ctx.call.pull(ctx.saved_tensors, ctx.standins, given, needed)
            return None, *found

    return FusedCall
