# SPDX-License-Identifier: Apache-2.0
"""Derivatives of what a traced function calls, while it is traced."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nfuser.compiler.ir.scalars.functions as scalar_functions
import nfuser.compiler.ops as ops
import nfuser.compiler.trace.call.tree as tree
from nfuser.compiler.ir.expr import SumTo, results, sources
from nfuser.compiler.trace.call.passed import Passed
from nfuser.compiler.trace.captures.parts import is_array
from nfuser.compiler.trace.standins.array import TracedArray
from nfuser.compiler.trace.standins.standin import Standin
from nfuser.compiler.trace.tracer import Tracer, current_tracer
from nfuser.compiler.transforms.differentiate import pullback, pushforward
from nfuser.errors import (
    ArgumentError,
    DTypeError,
    MutationError,
    ShapeError,
    TraceError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nfuser.compiler.dtypes import DType
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops import Builder
    from nfuser.compiler.trace.call.tree import Tree


class Variable:
    """One array that a derivative is taken in, under a name of its own."""

    def __init__(self, tracer: Tracer, item: Any, held: TensorView) -> None:
        self.held = tracer.builder.twin(held)
        self._is_array = getattr(item, "_is_array", is_array(item))
        kind = item._kind if isinstance(item, Standin) else None
        self.standin = TracedArray(tracer, self.held, kind=kind)
        self.standin._is_array = self._is_array
        self.standin._is_variable = True

    def wrap(self, tracer: Tracer, found: TensorView | None) -> Any:
        """Return the stand-in of a derivative, which is what the variable is."""
        b = tracer.builder
        if found is None:
            found = ops.full(b, self.held.shape, 0, self.held.dtype)
        if self.held in b.weak:
            b.weak[found] = b.weak[self.held]
        made = tracer.wrap(found)
        made._is_array = self._is_array
        return made


class Run:
    """One run of a function over variables that stand for some of its arguments.

    ``value`` is what it gave, ``aux`` what it gave beside that with ``has_aux``. What
    it captures is a variable, too, where it ``varies``.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        argnums: Sequence[int],
        *,
        has_aux: bool = False,
        varies: Callable[[Any], bool] | None = None,
    ) -> None:
        tracer = current_tracer()
        if tracer is None:
            message = f"nfuser.{name} works on the arrays of a fused function"
            raise TraceError(message)
        self._tracer, self._name = tracer, name
        self.variables: list[Variable] = []
        self.trees: list[Tree] = []
        given = list(args)
        for place in argnums:
            given[place] = self._varied(place, args[place])
        self._captured: list[Variable] = []
        if varies is not None:
            tracer.vary = lambda item, held: self._vary(item, held, varies)
        tracer.runs += 1
        self._begin = len(tracer.builder.exprs)
        try:
            passed = Passed(tuple(given[place] for place in argnums), {})
            value = tracer.as_called(function)(*given, **kwargs)
            passed.refuse_changes()
        finally:
            tracer.runs -= 1
        self.aux: Any = None
        if has_aux:
            value, self.aux = self._apart(value)
        self.value = value
        self._check_unwritten()
        flat, self.shape = tree.flatten(value)
        self.outputs = [self._output(item) for item in flat]
        self._end = len(tracer.builder.exprs)

    @property
    def made(self) -> list[TensorView]:
        """What the function computed, in its order."""
        exprs = self._tracer.builder.exprs[self._begin : self._end]
        return [tensor for expr in exprs for tensor in results(expr)]

    @property
    def there(self) -> list[TensorView]:
        """All that was there once the function had run."""
        exprs = self._tracer.builder.exprs[: self._end]
        return [tensor for expr in exprs for tensor in results(expr)]

    def constant(self) -> frozenset[int]:
        """Return which results depend on no variable, by their numbers.

        What is flat, as a rounded number, depends on it: its gradient is zero.
        """
        b = self._tracer.builder
        reached = {variable.held for variable in (*self.variables, *self._captured)}
        for expr in b.exprs[: self._end]:
            custom = b.customs.get(results(expr)[0])
            given = sources(expr) if custom is None else custom.inputs
            if not reached.isdisjoint(given):
                made = (t for t in results(expr) if t not in b.stopped)
                reached.update(
                    t for t in made if t.dtype.is_float or t.dtype.is_complex
                )
        return frozenset(k for k, t in enumerate(self.outputs) if t not in reached)

    def gradients(self) -> list[TensorView]:
        """Return cotangents of the variables, for ones of the results."""
        b = self._tracer.builder
        floats = [t for t in self.outputs if t.dtype.is_float or t.dtype.is_complex]
        pairs = [(t, ops.full(b, t.shape, 1, t.dtype)) for t in floats]
        variables = [*self.variables, *self._captured]
        found = pullback(b, pairs, [variable.held for variable in variables])
        return [t for t in found if t is not None]

    def _varied(self, place: int, item: Any) -> Any:
        flat, shape = tree.flatten(item)
        self.trees.append(shape)
        names = [n for n, p in tree.parts(shape, f"argument {place}") if p == tree.LEAF]
        pairs = zip(names, flat, strict=True)
        made = [self._variable(name, leaf) for name, leaf in pairs]
        self.variables += made
        return tree.unflatten(shape, [variable.standin for variable in made])

    def _variable(self, name: str, item: Any) -> Variable:
        tracer = self._tracer
        is_number = isinstance(item, (Standin, int, float, complex))
        if not is_number and not is_array(item):
            message = (
                f"{self._leave_out()}: nfuser.{self._name} takes derivatives in "
                f"arrays of floats, found {type(item).__name__} in {name}"
            )
            raise ArgumentError(message)
        held = tracer.tensor(item)
        if not (held.dtype.is_float or held.dtype.is_complex):
            other = (
                "write x.astype(np.float64)" if held.ndim else "pass a float, as 3.0,"
            )
            message = (
                f"{other} for {name}, or {self._leave_out()}: nfuser.{self._name} "
                f"takes derivatives in floats, found {held.dtype}"
            )
            raise DTypeError(message)
        return Variable(tracer, item, held)

    def _leave_out(self) -> str:
        if self._name in ("vjp", "jvp"):
            return "leave it out, as n in lambda x: f(x, n)"
        return "name others by argnums"

    def _vary(
        self, item: Any, held: TensorView, varies: Callable[[Any], bool]
    ) -> TensorView:
        if not varies(item) or not (held.dtype.is_float or held.dtype.is_complex):
            return held
        made = Variable(self._tracer, item, held)
        self._captured.append(made)
        return made.held

    def _apart(self, value: Any) -> tuple[Any, Any]:
        if isinstance(value, tuple) and len(value) == 2:
            return value
        message = (
            "return (value, aux), or leave has_aux out: expected a pair, found "
            f"{type(value).__name__}"
        )
        raise ArgumentError(message)

    def _check_unwritten(self) -> None:
        for variable in self.variables:
            if variable.standin._operand() is not variable.held:
                message = (
                    "write into a copy, x = x.copy(): nfuser."
                    f"{self._name} differentiates functions that leave their arguments "
                    "as they are"
                )
                raise MutationError(message)

    def _output(self, item: Any) -> TensorView:
        return self._tracer.tensor(item)

    def scalar(self) -> TensorView:
        """Return the result, which has to be one real number."""
        tracer, outputs = self._tracer, self.outputs
        b = tracer.builder
        if self.value is None:
            message = (
                f"return one number, as (x * x).sum(): nfuser.{self._name} takes the "
                "gradient of what the function returns, found None"
            )
            raise ArgumentError(message)
        if len(outputs) != 1 or self.shape != tree.LEAF:
            message = (
                f"write nfuser.{self._name}(lambda x: f(x)[0]), or has_aux=True for "
                f"what comes beside the number: expected one number, found "
                f"{len(outputs)} results"
            )
            raise ArgumentError(message)
        (found,) = outputs
        if found.ndim:
            message = (
                f"write nfuser.{self._name}(lambda x: f(x).sum()), or nfuser.jacrev or "
                "nfuser.vjp: a gradient is that of one number, found an array of shape "
                f"{b.shape_text(found.shape)}"
            )
            raise ShapeError(message)
        if not found.dtype.is_float:
            other = (
                "take its real part, or its square"
                if found.dtype.is_complex
                else ("return a float")
            )
            message = f"{other}: a gradient is that of a float, found {found.dtype}"
            raise DTypeError(message)
        return found

    def pull(self, cotangents: Sequence[TensorView]) -> list[Any]:
        """Return the cotangents of the arguments, each as what the argument is."""
        b, tracer = self._tracer.builder, self._tracer
        given = [
            (tensor, t)
            for tensor, t in zip(self.outputs, cotangents, strict=True)
            if tensor.dtype.is_float or tensor.dtype.is_complex
        ]
        found = pullback(b, given, [variable.held for variable in self.variables])
        pairs = zip(self.variables, found, strict=True)
        return self.like_arguments([v.wrap(tracer, t) for v, t in pairs])

    def like_arguments(self, leaves: Sequence[Any]) -> list[Any]:
        """Return ``leaves`` as nests like the arguments of the derivative."""
        rest = iter(leaves)
        return [tree.unflatten(shape, _taken(shape, rest)) for shape in self.trees]

    def pulled(self, cotangent: Any) -> tuple[Any, ...]:
        """Return the cotangents of the arguments for one of the value."""
        flat = self._matching(cotangent, self.shape, self.outputs, "the value")
        return tuple(self.pull(flat))

    def pulled_as_torch(
        self,
        numbers: Sequence[int],
        cotangents: Sequence[Any],
    ) -> tuple[list[Any], list[Any]]:
        """Return cotangents of the arguments, and of what was captured.

        ``numbers`` are those of the results that have a cotangent. That of a complex
        number is the conjugate of what it is here, as torch has it.
        """
        b, tracer = self._tracer.builder, self._tracer
        outputs = [self.outputs[k] for k in numbers]
        taken = [
            ops.conj(b, self.fitting(t, like))
            if like.dtype.is_complex
            else self.fitting(t, like)
            for t, like in zip(cotangents, outputs, strict=True)
        ]
        variables = [*self.variables, *self._captured]
        pairs = list(zip(outputs, taken, strict=True))
        found = pullback(b, pairs, [variable.held for variable in variables])
        made = [
            v.wrap(tracer, t if t is None or not t.dtype.is_complex else ops.conj(b, t))
            for v, t in zip(variables, found, strict=True)
        ]
        return made[: len(self.variables)], made[len(self.variables) :]

    def unbroadcast(self, gradient: Any) -> TensorView:
        """Return what ``gradient`` is, or what it sums over axes that were stretched.

        Of arguments of one shape those that sum the same are equal.
        """
        tensor = self._tracer.tensor(gradient)
        expr = self._tracer.builder.fusion([tensor]).definition[tensor]
        return expr.source if isinstance(expr, SumTo) else tensor

    def pushed(self, tangents: Sequence[Any]) -> Any:
        """Return the tangent of the value, for one of each argument."""
        b, tracer = self._tracer.builder, self._tracer
        held = [variable.held for variable in self.variables]
        shape = tree.Tree(tuple, tuple(self.trees))
        flat = self._matching(tuple(tangents), shape, held, "the arguments")
        found = pushforward(b, list(zip(held, flat, strict=True)), self.outputs)
        made: list[Any] = []
        for tensor, t in zip(self.outputs, found, strict=True):
            if t is None:
                t = ops.full(b, tensor.shape, 0, tensor.dtype)
            if tensor in b.weak:
                b.weak[t] = b.weak[tensor]
            made.append(tracer.wrap(t))
        return tree.unflatten(self.shape, made)

    def _matching(
        self, nest: Any, shape: Tree, like: Sequence[TensorView], what: str
    ) -> list[TensorView]:
        flat, given = tree.flatten(nest)
        if given != shape:
            message = (
                f"write a nest like that of {what}: nfuser.{self._name} expects one "
                f"array for each, found {len(flat)} in another nest"
            )
            raise ArgumentError(message)
        return [self.fitting(x, t) for x, t in zip(flat, like, strict=True)]

    def fitting(
        self, item: Any, like: TensorView, dtype: DType | None = None
    ) -> TensorView:
        """Return ``item`` in the shape of ``like``, and in its dtype or another."""
        b = self._tracer.builder
        found = self._tracer.tensor(item)
        pairs = zip(found.shape, like.shape, strict=False)
        fits = found.ndim == like.ndim and all(
            b.ask(scalar_functions.equal(a, c), usual=1) for a, c in pairs
        )
        if not fits:
            given, wanted = (b.shape_text(t.shape) for t in (found, like))
            message = (
                f"write an array of shape {wanted}: nfuser.{self._name} expects what "
                f"has the shape of its partner, found {given}"
            )
            raise ShapeError(message)
        return ops.broadcast_to(b, b.cast(found, dtype or like.dtype), like.shape)


def _taken(shape: Tree, leaves: Any) -> list[Any]:
    """Return the next of ``leaves`` that fill ``shape``."""
    if shape.container is None:
        return [next(leaves)]
    return [leaf for child in shape.children for leaf in _taken(child, leaves)]


def one_like(run: Run) -> TensorView:
    """Return the cotangent 1 of the number that a run gave."""
    tracer = current_tracer()
    assert tracer is not None
    return tracer.builder.constant(1.0, run.scalar().dtype)


def stopped(item: Any) -> Any:
    """Return ``item`` as a constant to derivatives; nests of arrays, too."""
    tracer = current_tracer()
    if tracer is None:
        return item
    flat, shape = tree.flatten(item)
    return tree.unflatten(shape, [_stopped(tracer, leaf) for leaf in flat])


def _stopped(tracer: Tracer, item: Any) -> Any:
    if not isinstance(item, TracedArray):
        return item
    held = tracer.tensor(item)
    if not (held.dtype.is_float or held.dtype.is_complex):
        return item
    standin = tracer.wrap(stop(tracer.builder, held))
    standin._is_array = item._is_array
    return standin


def stop(b: Builder, x: TensorView) -> TensorView:
    """Return ``x`` as a constant to derivatives."""
    made = b.twin(x)
    b.stopped.add(made)
    return made
