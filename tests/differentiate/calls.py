# SPDX-License-Identifier: Apache-2.0
"""Calls of the gradients of a random program, and what is right of them.

Gradients of f64 and of complex numbers are those of central differences, and of JAX
where it is installed. Kernels give what their fusion means, in each dtype, as near as
its rounding lets them; and what that means in f32 and bf16 is what it means in f64.
"""

# Arrays of any library have no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportMissingImports=false
# pyright: reportPrivateUsage=false

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

import nfuser
from nfuser.compiler.trace import call_of, trace_function
from nfuser.compiler.trace.call import tree
from tests.differentiate.noise import MORE_RUNS, UNITS, Noisy, gap, spread
from tests.differentiate.numeric import STEP, differences
from tests.differentiate.programs import Program, random_program
from tests.fuzz.backends import from_torch, to_torch
from tests.hand_built import sizes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

NARROW = {"float32": np.dtype(np.float32), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
TURNS = 2  # calls of each gradient, the second by what was compiled for the first
NEAR = 1e-8  # of the size of a gradient: what roundings of f64 leave
UNSTEADY = 0.1  # of the size of a gradient: so far noise may carry what is judged


@dataclass
class Tally:
    """What became of the calls of a program."""

    calls: int = 0
    unjudged: int = 0
    leaked: int = 0
    points: int = 0  # elements of gradients that JAX and PyTorch computed both
    apart: int = 0  # of these, where they differ
    problems: list[str] = field(default_factory=list[str])

    def judge(
        self, what: str, found: Any, wanted: Any, bound: float, *, call: bool = False
    ) -> None:
        """Compare what a call gave with what it should be, relative to its size."""
        self.calls += call
        self.problems += _apart(what, found, wanted, bound)

    def judge_slopes(
        self, what: str, found: Any, slopes: Callable[[float], Any], bound: float
    ) -> None:
        """Compare gradients with differences over a step, or over a shorter one.

        Near a pole, differences over a long step are of somewhere else.
        """
        problems: list[str] = []
        for step in (STEP, STEP / 10, STEP / 100):
            problems = _apart(what, found, slopes(step), bound)
            if not problems:
                return
        self.problems += problems


def _apart(what: str, found: Any, wanted: Any, bound: float) -> list[str]:
    """Say where results are not as near as the bound, relative to their size."""
    problems: list[str] = []
    for k, (one, other) in enumerate(zip(found, wanted, strict=True)):
        size = 1 + float(np.abs(np.asarray(other).astype(complex)).max(initial=0))
        far = gap(one, other) / size
        if not far <= bound:
            problems.append(f"{what}, argument {k}: off by {far:.3g}")
    return problems


class Derived:
    """The gradient of a function in all of its arguments, and what it means."""

    def __init__(self, function: Callable[..., Any], count: int, backend: str) -> None:
        self.kernels = nfuser.grad(
            fused_on(function, backend), argnums=tuple(range(count))
        )
        self._called = called_on(self.kernels, backend)

    def __call__(self, xs: Sequence[Any]) -> Sequence[Any]:
        """Return what the kernels compute, as NumPy's arrays."""
        return self._called(*xs)

    def meaning(self, xs: Sequence[Any]) -> Meaning:
        """Return what computes the gradients that the fusion of a call means."""
        return Meaning(self.kernels, xs)


def fused_on(function: Callable[..., Any], backend: str) -> nfuser.Fused[..., Any]:
    """Return the function fused; for ``cuda``, tensors say where it runs."""
    if backend == "cuda":
        return nfuser.fuse(function, dialect="numpy")
    return nfuser.fuse(function, backend=backend)


def called_on(fused: Callable[..., Any], backend: str) -> Callable[..., Any]:
    """Return a function of NumPy's arrays, which ``cuda`` moves to the device."""
    if backend != "cuda":
        return fused

    def call(*given: Any) -> Any:
        leaves, shape = tree.flatten(given)
        found = fused(*tree.unflatten(shape, [to_torch(np.asarray(x)) for x in leaves]))
        outputs, shape = tree.flatten(found)
        return tree.unflatten(shape, [from_torch(x) for x in outputs])

    return call


class Meaning:
    """What the fusion of a call means, by NumPy; it is traced once."""

    def __init__(self, fused: nfuser.Fused[..., Any], xs: Sequence[Any]) -> None:
        trace = trace_function(fused._function, call_of(tuple(xs)))
        taken = trace.captured.read(tuple(xs))
        assert taken is not None
        self._trace = trace
        self._arrays = [*tree.flatten(tuple(xs))[0], *taken]
        self._sizes = sizes_of(*(np.shape(x) for x in self._arrays))

    def __call__(self, unit: float = 0.0, seed: int = 0) -> list[Any]:
        """Return the outputs, with noise of this size in what is rounded."""
        found = Noisy(self._arrays, self._sizes, unit, seed).run(self._trace.fusion)
        return tree.flatten(tree.unflatten(self._trace.output_tree, found))[0]


def check(seed: int, backend: str) -> Tally:
    """Make the calls of the program of a seed."""
    program = random_program(seed, 4 + seed % 9)
    tally = Tally()
    _check_wide(tally, program, backend)
    for name, dtype in NARROW.items():
        _check_narrow(tally, program, backend, name, dtype)
    _check_complex(tally, program, backend)
    if seed % 10 == 0:
        _check_twice(tally, program, backend)
    if seed % 3 == 0:
        _check_tangents(tally, program, backend)
    return tally


def _check_wide(tally: Tally, program: Program, backend: str) -> None:
    function = program.function(np)
    derived = Derived(function, len(program.shapes), backend)
    for turn in range(TURNS):
        xs = program.arguments(turn)
        if turn == 0:
            meant = derived.meaning(xs)()

            def slopes(step: float, given: Sequence[Any] = xs) -> list[Any]:
                return differences(function, *given, step=step)

            tally.judge_slopes("f64 and differences", meant, slopes, 2e-4)
            if find_spec("jax"):
                _beside_others(tally, "f64", meant, program, xs)
        _near(tally, "f64 kernels", derived, xs, "float64")


def _beside_others(
    tally: Tally, what: str, found: Sequence[Any], program: Program, xs: Sequence[Any]
) -> None:
    """Judge beside JAX, and count where PyTorch differs from it.

    NaN that a branch that was not taken leaves in JAX is not judged. What XLA makes of
    a whole gradient is now and then not what its operations are one by one, so these
    decide.
    """
    kind = "complex_function" if np.iscomplexobj(xs[0]) else "function"
    theirs = of_jax(program, xs, kind)
    if _apart(what, found, theirs, NEAR):
        theirs = of_jax(program, xs, kind, whole=False)
    if find_spec("torch"):
        from tests.differentiate.of_torch import WORDS, gradients_of

        others = gradients_of(getattr(program, kind)(WORDS), xs)
        tally.points += sum(g.size for g in theirs)
        tally.apart += sum(map(_count_apart, theirs, others))
    pairs = list(zip(found, theirs, strict=True))
    leaked = [np.isnan(other) & np.isfinite(one) for one, other in pairs]
    tally.leaked += sum(bool(places.any()) for places in leaked)
    held = zip(leaked, pairs, strict=True)
    wanted = [np.where(places, one, other) for places, (one, other) in held]
    tally.judge(f"{what} and JAX", found, wanted, NEAR)


def _count_apart(one: Any, other: Any) -> int:
    """Return in how many elements two gradients differ by more than rounding."""
    size = 1 + np.abs(other[np.isfinite(other)]).max(initial=0)
    same = np.isclose(one, other, rtol=1e-8, atol=1e-8 * size, equal_nan=True)
    return int((~same).sum())


def _check_narrow(
    tally: Tally, program: Program, backend: str, name: str, dtype: np.dtype[Any]
) -> None:
    derived = Derived(program.function(np), len(program.shapes), backend)
    for turn in range(TURNS):
        xs = [x.astype(dtype) for x in program.arguments(turn)]
        if turn == 0:
            wide = [x.astype(np.float64) for x in xs]
            exact = derived.meaning(wide)
            found = derived.meaning(xs)()
            within(tally, f"{name} and f64", found, exact, UNITS[name])
        _near(tally, f"{name} kernels", derived, xs, "float32", UNITS[name])


def _near(
    tally: Tally,
    what: str,
    derived: Derived,
    xs: Sequence[Any],
    computed: str,
    rounded: float = 0.0,
) -> None:
    """Judge kernels: they give what their fusion means, but for their rounding."""
    found = derived(xs)
    tally.calls += 1
    if [(g.dtype, g.shape) for g in found] != [(x.dtype, x.shape) for x in xs]:
        tally.problems.append(f"{what}: gradients of another form")
        return
    within(tally, what, found, derived.meaning(xs), UNITS[computed], rounded)


def within(
    tally: Tally,
    what: str,
    found: Sequence[Any],
    meaning: Meaning,
    unit: float,
    rounded: float = 0.0,
) -> None:
    """Judge by what noise does to each output, with more of it where that is near."""
    wanted = meaning()
    far = spread(meaning, wanted, unit)
    for k, (one, other) in enumerate(zip(found, wanted, strict=True)):
        size = 1 + float(np.abs(np.asarray(other).astype(complex)).max(initial=0))
        room = 4 * (unit + rounded) * size
        off = gap(one, other)
        if off > 8 * far[k] + room:
            far = spread(meaning, wanted, 2 * unit, MORE_RUNS)
        if not far[k] <= UNSTEADY * size:
            tally.unjudged += 1
        elif not off <= 8 * far[k] + room:
            text = f"{what}, argument {k}: off by {off:.3g}, noise {far[k]:.3g}"
            tally.problems.append(f"{text}, size {size:.3g}")


def _check_complex(tally: Tally, program: Program, backend: str) -> None:
    function = program.complex_function(np)
    derived = Derived(function, len(program.shapes), backend)
    for turn in range(TURNS):
        zs = program.complex_arguments(turn)
        if turn == 0:
            meant = derived.meaning(zs)()
            parts = [part for z in zs for part in (z.real, z.imag)]

            def slopes(step: float, given: Sequence[Any] = parts) -> list[Any]:
                found = differences(lambda *p: function(*_joined(p)), *given, step=step)
                return [a.conj() for a in _joined(found)]

            tally.judge_slopes("c128 and differences", meant, slopes, 2e-4)
            if find_spec("jax"):
                _beside_others(tally, "c128", meant, program, zs)
        _near(tally, "c128 kernels", derived, zs, "float64")


def _joined(parts: Sequence[Any]) -> list[Any]:
    return [a + 1j * c for a, c in zip(parts[::2], parts[1::2], strict=True)]


def _check_twice(tally: Tally, program: Program, backend: str) -> None:
    """Check the gradient of a gradient along some weights, by differences of those."""
    everywhere = tuple(range(len(program.shapes)))
    slopes = nfuser.grad(program.function(np), argnums=everywhere)
    xs = program.arguments()
    weights = [np.sin(2 * x + 1) for x in xs]

    def along(xs: Any, weights: Any) -> Any:
        pairs = zip(slopes(*xs), weights, strict=True)
        return sum((g * w).sum() for g, w in pairs)

    again = nfuser.grad(fused_on(along, backend))
    meant = Meaning(again, (xs, weights))()
    sides = [
        Meaning(slopes, [x + s * w for x, w in zip(xs, weights, strict=True)])()
        for s in (STEP, -STEP)
    ]
    wanted = [(a - c) / (2 * STEP) for a, c in zip(*sides, strict=True)]
    tally.judge("second gradient and differences", meant, wanted, 1e-3)
    found = called_on(again, backend)(xs, weights)
    tally.judge("second gradient's kernels", found, meant, 1e-9, call=True)


def _check_tangents(tally: Tally, program: Program, backend: str) -> None:
    """Check that tangents pair with gradients."""
    function = program.function(np)
    xs = program.arguments()
    tangents = [np.cos(3 * x + 1) for x in xs]

    def pushed(xs: Any, tangents: Any) -> Any:
        return nfuser.jvp(function, xs, tangents)[1]

    called = called_on(fused_on(pushed, backend), backend)
    found = called(tuple(xs), tuple(tangents))
    slopes = Derived(function, len(xs), backend).meaning(xs)()
    wanted = sum(float((g * t).sum()) for g, t in zip(slopes, tangents, strict=True))
    tally.judge("tangents", [found], [wanted], 1e-8, call=True)


def of_jax(
    program: Program, xs: Sequence[Any], kind: str = "function", *, whole: bool = True
) -> list[Any]:
    """Return the gradients that JAX computes, compiled whole or op by op."""
    import jax

    everywhere = tuple(range(len(xs)))
    with jax.enable_x64(True):
        theirs = jax.grad(getattr(program, kind)(jax.numpy), everywhere)
        theirs = jax.jit(theirs) if whole else theirs
        return [np.asarray(g) for g in theirs(*map(jax.numpy.asarray, xs))]
