# SPDX-License-Identifier: Apache-2.0
"""NumPy's generators in traced functions: their methods become calls of the library.

The numbers are NumPy's, bit for bit, and each call of the function draws anew. What
draws inside of kernels are the generators of ``nfuser.random``.
"""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import inspect
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nfuser.compiler.dtypes import DType, as_dtype
from nfuser.compiler.ops.folds.draws import OperandAt, drawn
from nfuser.compiler.ops.folds.products import stack_of
from nfuser.compiler.trace.captures.parts import is_array
from nfuser.compiler.trace.captures.randomness.clocks import is_of_numpy
from nfuser.compiler.trace.numpy.speaking import speaking_numpy
from nfuser.compiler.trace.standins.standin import Standin
from nfuser.errors import ArgumentError, ShapeError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.trace.tracer import Tracer

_FLOATS = (
    *("random", "standard_normal", "standard_exponential", "standard_gamma"),
    *("uniform", "normal", "lognormal", "exponential", "gamma", "beta", "chisquare"),
    *("noncentral_chisquare", "f", "noncentral_f", "standard_cauchy", "standard_t"),
    *("vonmises", "pareto", "weibull", "power", "laplace", "gumbel", "logistic"),
    *("rayleigh", "wald", "triangular"),
)
_COUNTS = (
    *("binomial", "negative_binomial", "poisson", "zipf", "geometric"),
    *("hypergeometric", "logseries", "integers"),
)
_VECTORS = {  # with the parameter that is as long as the last axis of the result
    "dirichlet": ("alpha", DType.F64),
    "multivariate_normal": ("mean", DType.F64),
    "multinomial": ("pvals", DType.I64),
    "multivariate_hypergeometric": ("colors", DType.I64),
}
_MOVED = {"permutation": "x", "permuted": "x", "shuffle": "x"}


class _Made(NamedTuple):
    """What a draw gives; ``sizes`` are the axes of the result that were asked for."""

    shape: Sequence[Scalar | int]
    dtype: DType
    sizes: tuple[int, int] | None = None
    whole: DType | None = None  # of what is chosen from, if the library has no such


class _Given:
    """The arguments of one draw: arrays and open numbers are operands of the call."""

    def __init__(self, t: Tracer, named: dict[str, Any]) -> None:
        out, size = named.pop("out", None), named.pop("size", None)
        if out is not None:
            size = out.shape
        self.size = None if size is None else _sizes(t, size)
        self.operands: list[TensorView] = []
        self.tensors: dict[str, TensorView] = {}
        self.named = named
        self.arguments: list[tuple[str, Any]] = []
        for name, item in named.items():
            if isinstance(item, Standin | list | tuple) or is_array(item):
                self.tensors[name] = held = t.tensor(item)
                item = OperandAt(len(self.operands))
                self.operands.append(held)
            if name == "dtype":
                item = as_dtype(item).numpy.name
            self.arguments.append((name, item))

    def vector(self, name: str) -> TensorView:
        """Return the operand that is the vector of this name."""
        if name not in self.tensors or not self.tensors[name].ndim:
            message = f"write an array of one axis or more as {name}"
            raise ShapeError(message)
        return self.tensors[name]


def method_of(
    t: Tracer, function: Any, written: Callable[[Any], Any]
) -> Callable[..., Any] | None:
    """Return what is called in place of a method of NumPy's generators, or None.

    ``written`` is told of an array that it writes, and gives what stands for it.
    """
    generator = getattr(function, "__self__", None)
    if generator is None or not is_of_numpy(generator):
        return None
    name = function.__name__

    def method(*args: Any, **kwargs: Any) -> Any:
        named = _named(name, args, kwargs)
        target = "x" if name == "shuffle" else "out"
        if (whole := named.get(target)) is not None:
            whole = named[target] = written(whole)
        found = _drawn(t, generator, name, named)
        if whole is None:
            return found
        whole[...] = found
        return None if name == "shuffle" else whole

    return method


def _drawn(t: Tracer, generator: Any, name: str, named: dict[str, Any]) -> Any:
    with speaking_numpy(t):
        given = _Given(t, named)
        made = _made(t, name, given)
        slot = t.draw(generator)
        b = t.builder
        b.source = t.turns.line()
        passed = slot, given.arguments, given.operands
        before = t.tokens.get(slot)
        found, token = drawn(b, name, *passed, *made[:3], before)
        t.tokens[slot] = token
        if made.whole is not None:
            found = b.cast(found, made.whole)
    return t.wrap(found)


def _named(name: str, args: Any, kwargs: Any) -> dict[str, Any]:
    """Return the arguments by name; refuse those that the method does not take."""
    if name not in (*_FLOATS, *_COUNTS, *_VECTORS, *_MOVED, "choice"):
        message = (
            f"call Generator.{name} outside, and pass what it gives: a fused function "
            "draws arrays of numbers"
        )
        raise UnsupportedError(message)
    signature = _signature(name)
    try:
        bound = signature.bind(None, *args, **kwargs)
    except TypeError as error:
        message = f"Generator.{name}() {error}; expected {name}{signature}"
        raise ArgumentError(message) from None
    return dict(list(bound.arguments.items())[1:])


@cache
def _signature(name: str) -> inspect.Signature:
    return inspect.signature(getattr(np.random.Generator, name))


def _sizes(t: Tracer, size: Any) -> tuple[Any, ...]:
    listed = tuple(size) if isinstance(size, list | tuple | np.ndarray) else (size,)
    if any(isinstance(n, int) and n < 0 for n in listed):
        message = f"write a size that is not negative: found {size!r}"
        raise ShapeError(message)
    return tuple(t.operand(n) for n in listed)


def _made(t: Tracer, name: str, given: _Given) -> _Made:
    """Return what a method gives of these arguments."""
    if name in _VECTORS:
        return _vectors(t, name, given)
    if name in _MOVED:
        return _moved(t, given)
    if name == "choice":
        return _chosen(t, given)
    kind = DType.F64 if name in _FLOATS else DType.I64
    if (asked := given.named.get("dtype")) is not None:
        kind = as_dtype(asked)
    if given.size is not None:
        return _Made(given.size, kind, (0, len(given.size)))
    held = given.operands
    return _Made(t.builder.broadcast(*held, name=name) if held else (), kind)


def _vectors(t: Tracer, name: str, given: _Given) -> _Made:
    key, kind = _VECTORS[name]
    vector = given.vector(key)
    stack: Sequence[Scalar | int] = given.size or ()
    if name == "multinomial" and given.size is None:
        counts, rows = given.tensors.get("n"), vector.shape[:-1]
        stack = rows if counts is None else stack_of(t.builder, counts.shape, rows)
    sizes = None if given.size is None else (0, len(given.size))
    return _Made((*stack, vector.shape[-1]), kind, sizes)


def _moved(t: Tracer, given: _Given) -> _Made:
    held = given.tensors.get("x")
    if held is None or not held.ndim:
        count = t.operand(given.named["x"])
        return _Made((count,), DType.I64)
    return _Made(held.shape, _held_as(held), None, held.dtype)


def _chosen(t: Tracer, given: _Given) -> _Made:
    held, size = given.tensors.get("a"), given.size or ()
    if held is None or not held.ndim:
        sizes = None if given.size is None else (0, len(size))
        return _Made(size, DType.I64, sizes)
    axis = int(given.named.get("axis", 0)) % held.ndim
    shape = (*held.shape[:axis], *size, *held.shape[axis + 1 :])
    sizes = None if given.size is None else (axis, len(size))
    return _Made(shape, _held_as(held), sizes, held.dtype)


def _held_as(held: TensorView) -> DType:
    return DType.F32 if held.dtype.is_half else held.dtype
