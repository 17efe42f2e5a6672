# SPDX-License-Identifier: Apache-2.0
"""What a call keeps for the way back through it.

A function is traced together with its derivative, and cut by the bytes of a call. What
is kept is known by its place among all that the function computes, and by what it is
computed of, which the way back looks at: a function that says something else by then
is refused.
"""

# What is differentiated has no static type.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import sys
from functools import partial
from hashlib import sha256
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.base import value
from nfuser.compiler.ir.expr import (
    LIBRARY_CALLS,
    Argument,
    Loop,
    Pointwise,
    Reduce,
    results,
    sources,
)
from nfuser.compiler.ir.fusion import live_exprs
from nfuser.compiler.ir.walk import toposort
from nfuser.compiler.ops.customs import Custom
from nfuser.compiler.trace import current_tracer
from nfuser.compiler.trace.captures.parts import is_array
from nfuser.compiler.trace.transforms.derivatives import Run
from nfuser.compiler.transforms.partition import Choice, Saved, cut, sums_of_arrays
from nfuser.errors import NfuserError, TraceError
from nfuser.frontend.call.inputs.arguments import Arguments
from nfuser.frontend.call.recording import unrecorded
from nfuser.frontend.gradients.transform import fused_like, remembered

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.builder import Builder
    from nfuser.frontend.call.ready import Ready
    from nfuser.frontend.fuse.fused import Fused


_MOST_READY = 256  # whose plans are remembered
_FEW = 16  # what has so many times fewer bytes, or elements, than another is little
_LONG = 1 << 12  # elements of a row in which a fold keeps a block of a GPU waiting


@value
class Kept:
    """Something that is kept besides arguments.

    It has the number ``place`` among all that the function computes, and ``digest``
    says of what; ``output`` is its number among the results, if it is one. It has
    ``dtype`` in memory. Gradients of gradients go to a result that ``stands``, and not
    to what it is computed of.
    """

    place: int
    digest: str
    output: int | None
    dtype: DType
    stands: bool


@value
class KeepingPlan:
    """What is kept: of the leaves of the arguments those ``read``, and others.

    Results whose numbers are ``constant`` depend on none of them. What is kept in the
    place of leaves that are ``summed`` is a sum of them, which gradients go through.
    """

    read: frozenset[int]
    kept: tuple[Kept, ...]
    saved: tuple[Saved, ...]
    constant: frozenset[int] = frozenset()
    summed: frozenset[int] = frozenset()

    @property
    def added(self) -> tuple[Kept, ...]:
        """What the way there returns besides its results."""
        return tuple(k for k in self.kept if k.output is None)


class Planner:
    """Finds the plans of a function's calls, one for each of its traces."""

    def __init__(
        self,
        like: Callable[..., Any],
        flat: Callable[..., Any],
        wanted: tuple[int, ...],
        names: Sequence[str],
        varies: Callable[[Any], bool] | None = None,
        *,
        has_aux: bool = False,
    ) -> None:
        self._flat, self._wanted, self._names = flat, wanted, tuple(names)
        self._varies, self._has_aux = varies, has_aux
        self._plans: dict[
            TensorView, KeepingPlan
        ] = {}  # by the first argument of a trace
        self._known: dict[Ready, KeepingPlan | None] = {}

        def planned(*leaves: Any) -> Any:
            run = self.run(leaves)
            self._note(run, leaves)
            return run.value

        self.fused: Fused[..., Any] = fused_like(
            *("plan", like, planned), again=(), takes_the_same=False
        )

    def run(self, leaves: Sequence[Any]) -> Run:
        """Run the function in a trace."""
        flat, wanted, varies = self._flat, self._wanted, self._varies
        has_aux = self._has_aux
        return Run("vjp", flat, leaves, {}, wanted, has_aux=has_aux, varies=varies)

    def plan_for(self, ready: Ready, leaves: Sequence[Any]) -> KeepingPlan | None:
        """Return what a call keeps that ``ready`` serves; looked for once."""
        if ready not in self._known:
            if len(self._known) >= _MOST_READY:
                self._known.clear()
            self._known[ready] = self.plan(leaves)
        return self._known[ready]

    def plan(self, leaves: Sequence[Any]) -> KeepingPlan | None:
        """Return what a call keeps; None where that cannot be told."""
        given = tuple(leaves)
        try:
            with unrecorded():
                arguments = Arguments(given, {}, self.fused._function)
                trace, _ = self.fused._traced_call(arguments, given, {})
        except NfuserError:
            return None  # whoever runs the function says what is wrong
        arrays = [a.result for a in trace.fusion.arguments if not a.by_value]
        return self._plans.get(arrays[0]) if arrays else None

    def _note(self, run: Run, leaves: Sequence[Any]) -> None:
        tracer = current_tracer()
        assert tracer is not None
        b = tracer.builder
        fusion = b.fusion(run.gradients())
        is_recorded = self._varies is not None
        asked = {t for t, keeps in tracer.told.items() if keeps}
        sizes = _Sizes(b, fusion, set(run.outputs), asked, is_recorded=is_recorded)
        choices = cut(
            *(fusion, run.there, run.outputs, sizes.bytes, tracer.told),
            sizes.folds_much,
            arguments_stay=not is_recorded,
        )
        held = {
            tracer.tensor(leaf): k
            for k, leaf in enumerate(leaves)
            if getattr(leaf, "_is_array", False) or is_array(leaf)
        }
        first = next(iter(held), None)
        if first is not None:
            self._plans[first] = _plan(
                *(b, run, choices, held, self._names, sizes), is_recorded=is_recorded
            )


def _plan(
    b: Builder,
    run: Run,
    choices: Sequence[Choice],
    held: dict[TensorView, int],
    names: Sequence[str],
    sizes: _Sizes,
    *,
    is_recorded: bool,
) -> KeepingPlan:
    """Return the plan that keeps ``choices``.

    Gradients of recorded gradients go back to the arguments through what is kept. Torch
    knows where a result comes from; of what else is kept, all arguments that it depends
    on are kept as well. Of a sum they are known without their elements.
    """
    places = {t: k for k, t in enumerate(run.made)}
    chosen = {c.tensor: c.why for c in choices}
    inside = [t for t in chosen if t in places]
    arguments = _arguments_of(b, inside)
    kept = [t for t in inside if t not in arguments]
    summed = [t for t in kept if t in sizes.sums]
    standing = [t for t in kept if _stands(b, run, t) and t not in summed]
    others = [t for t in kept if t not in (*summed, *standing)]
    for tensor in _arguments_of(b, others, (*summed, *standing)) if is_recorded else ():
        chosen.setdefault(tensor, "an argument of what is kept")
    terms = [t for t in _arguments_of(b, summed) if t not in chosen]
    saved: list[Saved] = []
    for tensor, why in chosen.items():
        shape = tuple(b.today(n) or 0 for n in tensor.shape)
        dtype = sizes.dtype(tensor)
        name = _name(tensor, run, held, names, places)
        saved.append(Saved(name, shape, dtype, prod(shape) * dtype.itemsize, why))
    return KeepingPlan(
        frozenset(held[t] for t in chosen if t in held),
        tuple(
            _kept(b, run, t, places[t], sizes.dtype(t), stands=t in standing)
            for t in kept
        ),
        tuple(saved),
        run.constant(),
        frozenset(held[t] for t in terms if t in held),
    )


def _arguments_of(
    b: Builder, tensors: Sequence[TensorView], known: Sequence[TensorView] = ()
) -> list[TensorView]:
    """Return the arguments that ``tensors`` are computed of, and of what is known."""
    of = b.fusion(tensors).definition
    needed = toposort(
        [of[t] for t in tensors],
        lambda e: [of[t] for t in sources(e) if t not in known],
    )
    return [e.result for e in needed if isinstance(e, Argument)]


def _name(
    tensor: TensorView,
    run: Run,
    held: dict[TensorView, int],
    names: Sequence[str],
    places: dict[TensorView, int],
) -> str:
    if tensor in held:
        return names[held[tensor]]
    if tensor in run.outputs:
        return f"result {run.outputs.index(tensor)}"
    return f"value {places[tensor]}" if tensor in places else "captured"


def _stands(b: Builder, run: Run, tensor: TensorView) -> bool:
    """Tell whether ``tensor`` is a result whose derivative is its own alone."""
    expr = b.fusion([tensor]).definition[tensor]
    is_apart = len(results(expr)) == 1 and tensor not in b.customs
    return is_apart and tensor in run.outputs


def _kept(
    b: Builder, run: Run, tensor: TensorView, place: int, dtype: DType, *, stands: bool
) -> Kept:
    outputs = run.outputs
    output = outputs.index(tensor) if tensor in outputs else None
    return Kept(place, digest(b, tensor), output, dtype, stands)


def digest(b: Builder, tensor: TensorView) -> str:
    """Return how ``tensor`` is computed, as a name; slots may differ."""
    exprs = live_exprs([tensor], b.fusion([tensor]).definition)
    spelled = ";".join(map(_spelled, exprs))
    return sha256(spelled.encode()).hexdigest()


def _spelled(expr: Expr) -> str:
    name = expr.op.name if isinstance(expr, Pointwise) else type(expr).__name__
    made = (f"{t.dtype}{t.ndim}" for t in results(expr))
    return f"{name} {','.join(made)}"


def at(b: Builder, run: Run, kept: Kept) -> TensorView:
    """Return what the run has in the place of ``kept``, if it is still the same."""
    made = run.made
    if kept.place < len(made):
        tensor = made[kept.place]
        if digest(b, tensor) == kept.digest:
            return tensor
    message = (
        "leave what the function depends on as it is until the way back: it computes "
        "something else than on the way there"
    )
    raise TraceError(message)


class _Sizes:
    """Counts the bytes of what a call may keep.

    A 16-bit float that is computed has the digits of f32 until it is rounded, as a
    result is: it is kept in f32. Of a recorded call torch needs the arguments anyway,
    but those of a sum: besides what is in memory, or what the user asks for, only sums
    of arguments are kept, rounded as results are, and what is little.
    """

    def __init__(
        self,
        b: Builder,
        fusion: Fusion,
        there: Collection[TensorView],
        asked: Collection[TensorView],
        *,
        is_recorded: bool,
    ) -> None:
        self._b, self._definition = b, fusion.definition
        self._there, self._asked = there, asked
        given = [e.result for e in fusion.arguments if not e.by_value]
        limit = sum(self._count(t) * t.dtype.itemsize for t in given) // _FEW
        self._most = limit if is_recorded else None
        known = sums_of_arrays(fusion.exprs) if is_recorded else ()
        self.sums = frozenset(t for t in known if t not in given)

    def bytes(self, tensor: TensorView) -> int | None:
        """Return the bytes of ``tensor`` where it is kept, None if it may not be."""
        known = [self._b.today(n) for n in tensor.shape]
        if not known or any(n is None for n in known):
            return None
        size = self._count(tensor) * self.dtype(tensor).itemsize
        is_there = self._is_rounded(tensor) or tensor in self._asked
        return size if is_there or self._most is None or size <= self._most else None

    def dtype(self, tensor: TensorView) -> DType:
        """Return the dtype that ``tensor`` is kept in."""
        is_wide = tensor.dtype.is_half and not self._is_rounded(tensor)
        return DType.F32 if is_wide else tensor.dtype

    def folds_much(self, expr: Expr) -> bool:
        """Tell whether ``expr`` makes little of much, in a pass of its own.

        Who goes back through a short row has it at hand: to fold it again is free.
        """
        if not isinstance(expr, Reduce):
            return False
        last = range(expr.result.ndim, expr.source.ndim)
        length = self._count(expr.source) // max(self._count(expr.result), 1)
        return length >= (_LONG if expr.axes == tuple(last) else _FEW)

    def _is_rounded(self, tensor: TensorView) -> bool:
        expr = self._definition[tensor]
        in_memory = (*LIBRARY_CALLS, Loop, Argument)
        is_there = tensor in self._there or tensor in self.sums
        return is_there or isinstance(expr, in_memory)

    def _count(self, tensor: TensorView) -> int:
        return prod(self._b.today(n) or 0 for n in tensor.shape)


@remembered
def saving(
    like: Callable[..., Any], planner: Planner, plan: KeepingPlan
) -> Fused[..., Any]:
    """Return the way there, which gives its value, and a list of what is kept."""

    def there(*leaves: Any) -> Any:
        run = planner.run(leaves)
        tracer = current_tracer()
        assert tracer is not None
        b = tracer.builder
        kept = [tracer.wrap(b.cast(at(b, run, k), k.dtype)) for k in plan.added]
        for item in kept:
            item._is_array = True
        return run.value, run.aux, kept

    return fused_like("saving", like, there, again=(), takes_the_same=False)


def read_kept(run: Run, plan: KeepingPlan, kept: Sequence[Any]) -> list[TensorView]:
    """Let what was derived read ``kept``; return what the run has in its place."""
    tracer = current_tracer()
    assert tracer is not None
    b = tracer.builder
    found = [at(b, run, k) for k in plan.kept]
    for tensor, k, item in zip(found, plan.kept, kept, strict=True):
        read = run.fitting(item, tensor, k.dtype)
        b.read_instead(tensor, b.unrounded(read, tensor.dtype))
    return found


def let_stand(run: Run, plan: KeepingPlan, kept: Sequence[Any]) -> None:
    """Let derivatives of what was derived go to the results that are ``kept``.

    Torch knows where these come from.
    """
    tracer = current_tracer()
    assert tracer is not None
    b = tracer.builder
    for k, item in zip(plan.kept, kept, strict=True):
        if k.stands:
            made, held = at(b, run, k), tracer.tensor(item)
            pull = partial(_cast_all, b, held.dtype)
            b.customs[made] = Custom((held,), (made,), pull)


def _cast_all(
    b: Builder, dtype: DType, ts: Sequence[TensorView | None]
) -> list[TensorView | None]:
    return [None if t is None else b.cast(t, dtype) for t in ts]


def copied(array: Any) -> Any:
    """Return what is kept of a result, which is the caller's to change."""
    return array.clone() if hasattr(array, "clone") else array.copy()


def standin(array: Any) -> Any:
    """Return an array of the same shape and kind, whose elements nobody reads.

    It has no memory of its own; what is of another library stays as it is.
    """
    torch: Any = sys.modules.get("torch")
    if array.__class__ is np.ndarray and array.dtype.kind != "O":
        return np.broadcast_to(np.empty((), array.dtype), array.shape)
    if torch is not None and array.__class__ in (torch.Tensor, torch.nn.Parameter):
        one = torch.empty((), dtype=array.dtype, device=array.device)
        return one.expand(array.shape)
    return array
