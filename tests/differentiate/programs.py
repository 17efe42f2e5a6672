# SPDX-License-Identifier: Apache-2.0
"""Random differentiable programs, as functions of a NumPy-like module and of arrays.

``python -m tests.differentiate --programs 1000`` compares gradients of as many with
central differences, and with JAX where it is installed.
"""

# Arrays of any library have no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_AXES, MOST_ELEMENTS = 4, 120


@dataclass(frozen=True)
class Step:
    """One operation on values made before: their numbers, and what else it takes."""

    name: str
    operands: tuple[int, ...]
    apply: Callable[..., Any]
    options: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Program:
    """Steps on arguments of some shapes; the last value counts, and some others."""

    shapes: tuple[tuple[int, ...], ...]
    steps: tuple[Step, ...]
    seed: int

    def run(self, xp: Any, *args: Any) -> Any:
        """Return the number that the program computes, with functions of ``xp``."""
        values = list(args)
        for step in self.steps:
            given = [values[k] for k in step.operands]
            values.append(step.apply(xp, *given, *step.options))
        total: Any = 0.0
        for number, value in enumerate(values[-3:]):
            total = total + xp.sum(xp.sin(value + 0.1 * number))
        return total

    def function(self, xp: Any) -> Callable[..., Any]:
        """Return the program as a function of its arguments."""
        return lambda *args: self.run(xp, *args)

    def complex_function(self, xp: Any) -> Callable[..., Any]:
        """Return the program as a function of complex arguments, made real first."""

        def function(*zs: Any) -> Any:
            reals = list(_REALS.values())
            picked = [reals[(self.seed + k) % len(reals)] for k in range(len(zs))]
            return self.run(xp, *(f(xp, z) for f, z in zip(picked, zs, strict=True)))

        return function

    def arguments(self, turn: int = 0) -> list[Any]:
        """Return arrays between -1 and 1, of other shapes in odd turns if those fit."""
        rng = np.random.default_rng([self.seed, turn] if turn else self.seed)
        if turn % 2:
            longer = [tuple(n + (n > 1) for n in shape) for shape in self.shapes]
            xs = [rng.uniform(-1, 1, shape) for shape in longer]
            if self._fits(xs):
                return xs
        return [rng.uniform(-1, 1, shape) for shape in self.shapes]

    def complex_arguments(self, turn: int = 0) -> list[Any]:
        """Return complex arrays, both parts between -1 and 1."""
        real = self.arguments(turn)
        rng = np.random.default_rng([self.seed, turn, 1])
        return [x + 1j * rng.uniform(-1, 1, x.shape) for x in real]

    def _fits(self, xs: list[Any]) -> bool:
        """Return whether the program runs on these arrays, and gives a number."""
        try:
            with np.errstate(all="ignore"):
                return bool(np.isfinite(self.run(np, *xs)))
        except (ValueError, IndexError):
            return False

    def __str__(self) -> str:
        lines = [f"arguments {self.shapes}, seed {self.seed}"]
        first = len(self.shapes)
        for k, s in enumerate(self.steps):
            lines.append(f"v{k + first} = {s.name}{s.operands} {s.options}")
        return "\n".join(lines)


_UNARY: dict[str, Callable[[Any, Any], Any]] = {
    "sin": lambda xp, x: xp.sin(x),
    "tanh": lambda xp, x: xp.tanh(x),
    "exp": lambda xp, x: xp.exp(xp.sin(x)),
    "exp2": lambda xp, x: xp.exp2(xp.cos(x)),
    "expm1": lambda xp, x: xp.expm1(-x * x),
    "log": lambda xp, x: xp.log(x * x + 0.5),
    "log1p": lambda xp, x: xp.log1p(xp.abs(x)),
    "log2": lambda xp, x: xp.log2(2 + xp.sin(x)),
    "sqrt": lambda xp, x: xp.sqrt(x * x + 0.1),
    "reciprocal": lambda xp, x: 1 / (1.5 + xp.cos(x)),
    "abs": lambda xp, x: xp.abs(x),
    "cube": lambda xp, x: xp.sin(x) ** 3,
    "root": lambda xp, x: (x * x + 0.2) ** 1.5,
    "power": lambda xp, x: (xp.cos(x) + 1.5) ** -0.7,
    "arctan": lambda xp, x: xp.arctan(x),
    "arcsinh": lambda xp, x: xp.arcsinh(x),
    "arcsin": lambda xp, x: xp.arcsin(0.9 * xp.sin(x)),
    "arctanh": lambda xp, x: xp.arctanh(0.9 * xp.sin(x)),
    "sinh": lambda xp, x: xp.sinh(xp.sin(x)),
    "cosh": lambda xp, x: xp.cosh(xp.sin(x)),
    "tan": lambda xp, x: xp.tan(xp.sin(x)),
    "cbrt": lambda xp, x: xp.cbrt(x * x + 0.3),
    "relu": lambda xp, x: xp.maximum(x, 0.05),
    "clip": lambda xp, x: xp.clip(x, -0.4, 0.6),
    "where": lambda xp, x: xp.where(x > 0.07, xp.log(xp.abs(x)), x * x),
    "floor": lambda xp, x: x - 0.3 * xp.floor(x * 3),
    "complex": lambda xp, x: xp.abs((x + 0.3j) * (1 - x * 1j) + 2.1),
    "complex exp": lambda xp, x: xp.real(xp.exp(1j * x) / (2 + 1j * x)),
    "f32": lambda xp, x: x.astype("float64"),
}
_REALS: dict[str, Callable[[Any, Any], Any]] = {
    "square": lambda xp, z: xp.real(z * z),
    "abs": lambda xp, z: xp.abs(z + 2.5),
    "exp": lambda xp, z: xp.imag(xp.exp(z)),
    "divide": lambda xp, z: xp.real(z / (3 + 1j * z)),
    "conjugate": lambda xp, z: xp.imag(xp.conj(z) * (z * z + 1j)),
    "log": lambda xp, z: xp.real(xp.log(z + 3)) - xp.imag(z),
}
_BINARY: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda xp, x, y: x + y,
    "subtract": lambda xp, x, y: x - 2 * y,
    "multiply": lambda xp, x, y: x * y,
    "divide": lambda xp, x, y: x / (1.7 + xp.sin(y)),
    "maximum": lambda xp, x, y: xp.maximum(x, y + 0.013),
    "minimum": lambda xp, x, y: xp.minimum(x, y - 0.017),
    "hypot": lambda xp, x, y: xp.hypot(x, y + 0.3),
    "arctan2": lambda xp, x, y: xp.arctan2(x, 2 + xp.cos(y)),
    "logaddexp": lambda xp, x, y: xp.logaddexp(x, y),
    "power": lambda xp, x, y: (1.5 + xp.sin(x)) ** xp.tanh(y),
    "where": lambda xp, x, y: xp.where(x > y, x * y, xp.sin(y)),
    "guarded": lambda xp, x, y: xp.where(x > 0.03, xp.sqrt(xp.abs(x)) * y, y),
}
_FOLDS: dict[str, Callable[..., Any]] = {
    "sum": lambda xp, x, axis, keep: xp.sum(x, axis=axis, keepdims=keep),
    "mean": lambda xp, x, axis, keep: xp.mean(x, axis=axis, keepdims=keep),
    "prod": lambda xp, x, axis, keep: xp.prod(xp.sin(x), axis=axis, keepdims=keep),
    "max": lambda xp, x, axis, keep: xp.max(x, axis=axis, keepdims=keep),
    "min": lambda xp, x, axis, keep: xp.min(x, axis=axis, keepdims=keep),
    "var": lambda xp, x, axis, keep: xp.var(x, axis=axis, keepdims=keep),
    "norm": lambda xp, x, axis, keep: xp.sqrt(
        xp.sum(x * x, axis=axis, keepdims=keep) + 0.1
    ),
}


def _softmax(xp: Any, x: Any, axis: int) -> Any:
    grown = xp.exp(x - xp.max(x, axis=axis, keepdims=True))
    return grown / xp.sum(grown, axis=axis, keepdims=True)


def _layer_norm(xp: Any, x: Any, axis: int) -> Any:
    centred = x - xp.mean(x, axis=axis, keepdims=True)
    spread = xp.mean(centred * centred, axis=axis, keepdims=True)
    return centred / xp.sqrt(spread + 0.2)


_ALONG: dict[str, Callable[..., Any]] = {
    "cumsum": lambda xp, x, axis: xp.cumsum(x, axis=axis),
    "cumprod": lambda xp, x, axis: xp.cumprod(xp.cos(x), axis=axis),
    "softmax": _softmax,
    "layer norm": _layer_norm,
    "flip": lambda xp, x, axis: xp.flip(x, axis),
    "roll": lambda xp, x, axis: xp.roll(x, 2, axis),
    "sort": lambda xp, x, axis: xp.sort(x, axis=axis),
    "join": lambda xp, x, axis: xp.concatenate([x, x * x], axis=axis),
    "repeat": lambda xp, x, axis: xp.repeat(x, 2, axis=axis),
    "stack": lambda xp, x, axis: xp.stack([x, xp.sin(x)], axis=axis),
    "expand": lambda xp, x, axis: xp.expand_dims(x, axis),
}
_SLICES = (
    *(slice(None, None, 2), slice(1, None), slice(None, -1), slice(None, None, -1)),
    *(slice(-1, None, -2), slice(0, 1), slice(1, 3)),
)
_MODES = ("constant", "edge", "wrap", "symmetric", "reflect")


def _times_vector(xp: Any, x: Any) -> Any:
    return x @ xp.cos(xp.reshape(x, (-1,))[: x.shape[-1]])


def _whole(name: str, rng: Any, shape: tuple[int, ...]) -> Step | None:
    """Return an operation on all axes of a value of this shape, if it fits."""
    rank = len(shape)
    match name:
        case "transpose":
            order = tuple(int(k) for k in rng.permutation(rank))
            return Step(name, (), lambda xp, x, o: xp.transpose(x, o), (order,))
        case "slice" if rank:
            key = tuple(_SLICES[rng.integers(len(_SLICES))] for _ in shape)
            return Step(name, (), lambda xp, x, k: x[k], (key,))
        case "item" if rank and shape[0]:
            return Step(name, (), lambda xp, x, k: x[k], (int(rng.integers(shape[0])),))
        case "pad" if rank and min(shape):
            mode = str(_MODES[rng.integers(len(_MODES))])
            widths = tuple((int(a), int(c)) for a, c in rng.integers(0, 3, (rank, 2)))
            pads = lambda xp, x, w, m: xp.pad(x, w, mode=m)  # noqa: E731
            return Step(name, (), pads, (widths, mode))
        case "merge" if rank > 1:
            kept = tuple(shape[2:])
            return Step(name, (), lambda xp, x, s: xp.reshape(x, s), ((-1, *kept),))
        case "tile" if rank:
            counts = tuple(int(n) for n in rng.integers(1, 3, rank))
            return Step(name, (), lambda xp, x, c: xp.tile(x, c), (counts,))
        case "tril" if rank > 1:
            return Step(name, (), lambda xp, x: xp.tril(x))
        case "product" if rank > 1:
            return Step(name, (), lambda xp, x: x @ xp.swapaxes(x, -1, -2))
        case "vector" if rank:
            return Step(name, (), _times_vector)
        case _:
            return None


_WHOLE = (
    *("transpose", "slice", "item", "pad", "merge", "tile", "tril", "product"),
    "vector",
)


def random_program(seed: int, length: int = 8) -> Program:
    """Return the program of this seed."""
    rng = np.random.default_rng(seed)
    sizes = [int(n) for n in rng.choice([1, 2, 3, 4], 3)]
    count = int(rng.integers(1, 4))
    shapes = tuple(
        tuple(n if rng.random() < 0.8 else 1 for n in sizes[rng.integers(0, 3) :])
        for _ in range(count)
    )
    program = Program(shapes, (), seed)
    values = program.arguments()
    steps: list[Step] = []
    while len(steps) < length:
        step = _candidate(rng, values)
        if step is None:
            continue
        given = [values[k] for k in step.operands]
        with np.errstate(all="ignore"):
            try:
                made = step.apply(np, *given, *step.options)
            except ValueError:
                continue
        made = np.asarray(made)
        is_small = made.ndim <= MOST_AXES and 0 < made.size <= MOST_ELEMENTS
        if not is_small or not np.isfinite(made).all() or abs(made).max() > 50:
            continue
        values.append(made)
        steps.append(step)
    return Program(shapes, tuple(steps), seed)


def _candidate(rng: Any, values: list[Any]) -> Step | None:
    """Return an operation on values that stand near the end of the list."""

    def pick() -> int:
        return len(values) - 1 - min(int(rng.geometric(0.4)) - 1, len(values) - 1)

    kind = rng.choice(["unary", "binary", "fold", "along", "whole"])
    first = pick()
    shape = values[first].shape
    if kind == "unary":
        name = str(rng.choice(list(_UNARY)))
        return Step(name, (first,), _UNARY[name])
    if kind == "binary":
        name = str(rng.choice(list(_BINARY)))
        return Step(name, (first, pick()), _BINARY[name])
    if kind == "whole":
        found = _whole(str(rng.choice(_WHOLE)), rng, shape)
        return found and Step(found.name, (first,), found.apply, found.options)
    if not shape:
        return None
    axis = int(rng.integers(len(shape)))
    if kind == "fold":
        name = str(rng.choice(list(_FOLDS)))
        axes = None if rng.random() < 0.2 else axis
        return Step(name, (first,), _FOLDS[name], (axes, bool(rng.random() < 0.5)))
    name = str(rng.choice(list(_ALONG)))
    return Step(name, (first,), _ALONG[name], (axis,))
