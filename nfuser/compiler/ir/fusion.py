# SPDX-License-Identifier: Apache-2.0
"""A fusion: a straight-line program over tensors."""

from __future__ import annotations

from dataclasses import replace
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar

from nfuser.base.locks import cached_property
from nfuser.compiler.ir.base import node, refuse_change
from nfuser.compiler.ir.expr import (
    LIBRARY_CALLS,
    Argument,
    Assign,
    Called,
    Concatenate,
    Expr,
    Loop,
    Matmul,
    Pad,
    Part,
    PartialSum,
    Pointwise,
    Reduce,
    Scan,
    Scatter,
    Take,
    results,
    sources,
)
from nfuser.compiler.ir.tensor import IterType
from nfuser.compiler.ir.walk import toposort

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from nfuser.compiler.ir.tensor import TensorView


R = TypeVar("R")
E = TypeVar("E")


class Tensors(tuple["TensorView", ...]):
    """Tensors in order; a call gives them as a list, as nvFuser's methods do."""

    __slots__ = ()

    def __call__(self) -> list[TensorView]:
        """Return the tensors."""
        return list(self)


def _only(says: str, *kinds: type[E]) -> cached_property[tuple[E, ...]]:
    def found(fusion: Fusion) -> tuple[E, ...]:
        return tuple(e for e in fusion.exprs if isinstance(e, kinds))

    found.__doc__ = says
    return cached_property(found)


class Fusion:
    """Expressions in an order that defines before it uses; frozen.

    Not slotted, unlike other nodes: look-ups are computed on demand and kept. Equal
    fusions share what is built for them. A copy is the fusion itself.
    """

    name: str
    exprs: tuple[Expr, ...]
    outputs: Tensors

    def __init__(
        self, name: str, exprs: Sequence[Expr], outputs: Sequence[TensorView]
    ) -> None:
        held = vars(self)
        held["name"] = name
        held["exprs"] = tuple(exprs)
        held["outputs"] = Tensors(outputs)

    __setattr__ = refuse_change
    __delattr__ = refuse_change

    def __copy__(self) -> Fusion:
        return self

    def __deepcopy__(self, memo: object) -> Fusion:
        return self

    def __reduce__(self) -> tuple[type[Fusion], tuple[object, ...]]:
        """Pickle what it says, and not what was worked out of that."""
        return Fusion, (self.name, self.exprs, tuple(self.outputs))

    @cached_property
    def arguments(self) -> tuple[Argument, ...]:
        """The inputs, in the order of their slots."""
        found = [e for e in self.exprs if isinstance(e, Argument)]
        return tuple(sorted(found, key=lambda a: (a.slot, a.part.value)))

    @cached_property
    def inputs(self) -> Tensors:
        """What the caller passes, in the order of the slots."""
        return Tensors(argument.result for argument in self.arguments)

    def print_math(self, from_outputs_only: bool = True) -> None:
        """Print the program; nothing but what outputs need is in it."""
        del from_outputs_only
        text = import_module("nfuser.compiler.ir.text").text  # it imports this module
        print(text(self), end="")  # noqa: T201 (it is what was asked for)

    @cached_property
    def complex_arguments(self) -> tuple[tuple[TensorView, TensorView], ...]:
        """Both parts of each complex array, where both are inputs."""
        reals = {a.slot: a.result for a in self.arguments if a.part is Part.REAL}
        return tuple(
            (reals[a.slot], a.result)
            for a in self.arguments
            if a.part is Part.IMAG and a.slot in reals and not a.by_value
        )

    @cached_property
    def sums_in_parts(self) -> Mapping[TensorView, TensorView]:
        """Each array of partial sums that is read, with the first one of its shape.

        Their parts are of the same rows.
        """
        firsts: dict[tuple[object, ...], TensorView] = {}
        return {
            tensor: firsts.setdefault(tensor.shape, tensor)
            for tensor in dict.fromkeys(t for e in self.exprs for t in sources(e))
            if tensor.ndim and tensor.axes[0].iter_type is IterType.PARTS
        }

    @cached_property
    def definition(self) -> Mapping[TensorView, Expr]:
        """The expression that gives each tensor."""
        return {tensor: e for e in self.exprs for tensor in results(e)}

    @cached_property
    def users(self) -> Mapping[TensorView, tuple[Expr, ...]]:
        """The expressions that read each tensor, in program order."""
        found: dict[TensorView, list[Expr]] = {t: [] for t in self.definition}
        for expr in self.exprs:
            for tensor in dict.fromkeys(sources(expr)):
                found[tensor].append(expr)
        return {tensor: tuple(users) for tensor, users in found.items()}

    @cached_property
    def failing(self) -> tuple[Expr, ...]:
        """What may be refused while it runs; it runs, though nobody reads it."""
        return tuple(e for e in self.exprs if may_fail(e))

    @cached_property
    def roots(self) -> tuple[TensorView, ...]:
        """The outputs, and what else is to be computed."""
        if not self.failing:
            return self.outputs
        failing = (results(e)[0] for e in self.failing)
        return tuple(dict.fromkeys((*self.outputs, *failing)))

    reductions = _only("The reductions, in program order.", Reduce)
    partial_sums = _only("The sums in parts, in program order.", PartialSum)
    scans = _only("The scans, in program order.", Scan)
    assignments = _only("The assignments, in program order.", Assign)
    loops = _only("The loops; those in their bodies are the bodies' own.", Loop)
    library_calls = _only("What the array library computes.", *LIBRARY_CALLS)

    @cached_property
    def every(self) -> tuple[Expr, ...]:
        """The expressions, and before each loop those of its body."""
        if not self.loops:
            return self.exprs
        found: list[Expr] = []
        for expr in self.exprs:
            if isinstance(expr, Loop):
                found.extend(expr.body.every)
            found.append(expr)
        return tuple(found)

    @cached_property
    def tensors(self) -> tuple[TensorView, ...]:
        """What ``every`` expression gives, in order."""
        return tuple(tensor for e in self.every for tensor in results(e))

    def __repr__(self) -> str:
        return f"<Fusion {self.name}: {len(self.exprs)} expressions>"


def remembered(about: Callable[[Fusion], R]) -> Callable[[Fusion], R]:
    """Return ``about``, whose answer is kept with the fusion: it depends on no more."""
    name = f"{about.__module__}.{about.__qualname__}"

    @wraps(about)
    def once(fusion: Fusion) -> R:
        held = vars(fusion)
        if name not in held:
            held[name] = about(fusion)
        return held[name]

    return once


def may_fail(expr: Expr) -> bool:
    """Tell whether there are values of which ``expr`` gives an error as it runs."""
    match expr:
        case Scatter():
            return not expr.inside
        case Called():
            return expr.may_fail
        case Loop():
            return bool(expr.body.failing)
        case _:
            return False


def live_exprs(
    outputs: Iterable[TensorView], definition: Mapping[TensorView, Expr]
) -> list[Expr]:
    """Return the expressions that ``outputs`` need, definitions first."""
    roots = [definition[tensor] for tensor in outputs]
    return toposort(roots, lambda e: [definition[t] for t in sources(e)])


def with_sources(expr: Expr, new: Sequence[TensorView]) -> Expr:
    """Return ``expr`` reading ``new`` instead; itself where nothing changed."""
    if tuple(new) == sources(expr):
        return expr
    match expr:
        case Pointwise():
            return replace(expr, operands=tuple(new))
        case Concatenate():
            return replace(expr, parts=tuple(new))
        case Pad():
            return replace(expr, source=new[0], fill=new[1])
        case Take():
            return replace(expr, source=new[0], index=new[1])
        case Matmul():
            return replace(expr, lhs=new[0], rhs=new[1])
        case Scatter():
            return replace(expr, source=new[0], index=new[1], value=new[2])
        case Loop() | Called():
            return replace(expr, operands=tuple(new))
        case Assign():
            return replace(expr, source=new[0], value=new[1])
        case _:
            return replace(expr, source=new[0])


def with_results(expr: Expr, made: Sequence[TensorView]) -> Expr:
    """Return ``expr`` giving ``made`` instead."""
    if isinstance(expr, (Reduce, Loop, Called)):
        return replace(expr, results=tuple(made))
    return replace(expr, result=made[0])


@node
class Replacement:
    """Expressions to put in place of one, and what stands for its results."""

    exprs: tuple[Expr, ...]
    tensors: tuple[TensorView, ...]


def rebuild(
    fusion: Fusion, change: Callable[[Expr], Replacement | TensorView | None]
) -> Fusion:
    """Return ``fusion`` with each expression kept, replaced or forwarded.

    ``change`` sees an expression whose sources are already new. It returns None to
    keep it, or a tensor to use in place of its only result, or a replacement. The same
    fusion comes back when nothing changed.
    """
    new_of: dict[TensorView, TensorView] = {}
    exprs: list[Expr] = []
    changed = False
    for expr in fusion.exprs:
        seen = with_sources(expr, [new_of.get(t, t) for t in sources(expr)])
        answer = change(seen)
        changed |= seen is not expr or answer is not None
        if answer is None:
            exprs.append(seen)
        elif isinstance(answer, Replacement):
            exprs.extend(answer.exprs)
            new_of.update(zip(results(expr), answer.tensors, strict=True))
        else:
            new_of[results(expr)[0]] = answer
    if not changed:
        return fusion
    return Fusion(fusion.name, exprs, [new_of.get(t, t) for t in fusion.outputs])
