# SPDX-License-Identifier: Apache-2.0
"""Programs run on one rank and on many; random ones, too."""

from __future__ import annotations

import re
from functools import cache
from math import prod
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser
import nfuser.execution.host.ir.statements as st
from nfuser.compiler.ir.scalars.scalar import Const
from nfuser.execution.host.mesh.lower_shardings import lower_shardings
from nfuser.execution.host.mesh.sharding import REPLICATED, Sharding
from nfuser.execution.host.mesh.virtual_ranks import VirtualRanks, spread, whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.tensor import TensorView

    Layout = Sharding | Sequence[Sharding]

RANKS = 4
DATA = np.random.default_rng(0)


def array(*shape: int) -> Any:
    """Return numbers that add up without rounding."""
    return DATA.integers(-3, 4, shape).astype(np.float32) / 4


def text(program: nfuser.HostProgram) -> str:
    """Return a program's text without lines of the user."""
    return re.sub(r"  # \S+:\d+$", "", str(program), flags=re.MULTILINE)


class Case:
    """A program, how its tensors lie, and its inputs as one rank would have them."""

    def __init__(
        self,
        hc: nfuser.HostIrContainer,
        shardings: Mapping[TensorView, Layout],
        arrays: list[Any],
        mesh: int | tuple[int, ...] = RANKS,
    ) -> None:
        self.program = hc.program()
        self.shardings = shardings
        self.arrays = arrays
        self.mesh = (mesh,) if isinstance(mesh, int) else mesh
        self.lowered = lower_shardings(self.program, shardings, mesh)

    def exchanges(self) -> list[st.Communicate]:
        """Return what the ranks exchange, in order."""
        found = st.walk(self.lowered.body)
        return [s for s in found if isinstance(s, st.Communicate)]

    def collectives(self) -> list[str]:
        """Return the kinds of these."""
        return [s.kind for s in self.exchanges()]

    def check(self, tolerance: float = 1e-5) -> list[list[Any]]:
        """Run on one rank and on all, and compare; return what each rank has."""
        single = nfuser.HostIrEvaluator(self.program).run(self.arrays)
        default = (REPLICATED,) * len(self.mesh)
        parts = [
            spread(x, self.shardings.get(_tensor(given), default), self.mesh)
            for given, x in zip(self.program.inputs, self.arrays, strict=True)
        ]
        evaluator = nfuser.HostIrEvaluator(self.lowered)
        ranks = VirtualRanks(prod(self.mesh))
        with np.errstate(invalid="ignore"):
            made = ranks.run(
                lambda r: evaluator.run([p[r.rank] for p in parts], communicator=r)
            )
        for number, want in enumerate(single):
            got = [outputs[number] for outputs in made]
            lies = self.shardings.get(self.program.outputs[number])
            if lies is None:
                lies = default if len(self.mesh) > 1 else _guessed(got[0], want)
            found = whole(got, lies, self.mesh)
            np.testing.assert_allclose(found, want, rtol=tolerance, atol=tolerance)
        guarded = any(isinstance(s, st.IfThenElse) for s in self.lowered.body)
        counts = {kind: self.collectives().count(kind) for kind in self.collectives()}
        assert guarded or ranks.counts == [counts] * ranks.size
        return made


def _tensor(given: Any) -> Any:
    return given.value


def _guessed(part: Any, want: Any) -> Sharding:
    smaller = [k for k, n in enumerate(part.shape) if n != want.shape[k]]
    return Sharding(axis=smaller[0]) if smaller else REPLICATED


# -- random programs ---------------------------------------------------------

TOLERANCE = 1e-9  # for f64
_MESHES = ((4,), (2, 2), (2, 3), (3, 1, 2))
_SIZES = (12, 24)  # each has equal parts on all of these meshes


@cache
def _fusions() -> list[Fusion]:
    """Return what needs rows, columns, or one element for one of its results."""
    made: list[Fusion] = []
    for axis in (0, 1, None):
        with nfuser.FusionDefinition() as fd:
            x = fd.define_tensor(shape=[-1, -1], dtype=nfuser.DataType.Double)
            y = fd.ops.sin(x)
            fd.add_output(y if axis is None else fd.ops.cumsum(y, axis))
        made.append(fd.fusion)
    with nfuser.FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, -1], dtype=nfuser.DataType.Double)
        fd.add_output(fd.ops.sum(fd.ops.sin(x), 0))
    return [*made, fd.fusion]


class _Writer:
    """Writes a program of which some tensors shall lie in random ways."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.mesh = self.dice.choice(_MESHES)
        self.hc = nfuser.HostIrContainer(f"random{seed}")
        self.arrays: list[Any] = []
        self.shardings: dict[TensorView, Layout] = {}
        self.pool: list[TensorView] = []
        self.extents: dict[TensorView, tuple[int, ...]] = {}

    def case(self) -> Case:
        for _ in range(self.dice.randint(2, 3)):
            self._input()
        for _ in range(self.dice.randint(3, 9)):
            self._statement()
        for output in {*self.pool[-2:], self.dice.choice(self.pool)}:
            if output not in self.shardings:
                self.shardings[output] = self._layout(self.extents[output])
            self.hc.add_output(output)
        return Case(self.hc, self.shardings, self.arrays, self.mesh)

    def _input(self) -> None:
        shape = tuple(self.dice.choice(_SIZES) for _ in range(self.dice.randint(1, 3)))
        given = [n if self.dice.random() < 0.5 else -1 for n in shape]
        tensor = self.hc.define_tensor(given, np.float64)
        self.arrays.append(self.numbers.standard_normal(shape))
        self._add(tensor, shape)
        layout = list(self._layout(shape))
        for dim in range(len(layout)):
            if self.dice.random() < 0.1:
                layout[dim] = Sharding(partial=self.dice.choice(["sum", "max"]))
                break  # a sum of largest parts is none of the two
        self.shardings[tensor] = tuple(layout)

    def _add(self, tensor: TensorView, shape: tuple[int, ...]) -> None:
        self.pool.append(tensor)
        self.extents[tensor] = shape
        if self.dice.random() < 0.25:
            self.shardings[tensor] = self._layout(shape)

    def _layout(self, shape: tuple[int, ...]) -> tuple[Sharding, ...]:
        axes = [k for k, n in enumerate(shape) if n in _SIZES]
        found: list[Sharding] = []
        for size in self.mesh:
            chance = self.dice.random()
            if chance < 0.5 and axes:
                found.append(Sharding(axis=self.dice.choice(axes)))
            elif chance < 0.65:
                found.append(Sharding(owner=self.dice.randrange(size)))
            else:
                found.append(REPLICATED)
        return tuple(found)

    def _statement(self) -> None:
        x = self.dice.choice(self.pool)
        shape = self.extents[x]
        kinds = [self._unary, self._unary, self._binary, self._binary, self._matmul]
        kinds += [self._reduce, self._move, self._move] if shape else []
        kinds += [self._launch] if len(shape) == 2 else []
        self.dice.choice(kinds)(x, shape)

    def _unary(self, x: TensorView, shape: tuple[int, ...]) -> None:
        name = self.dice.choice(["tanh", "negative", "sin", "set"])
        self._add(self.hc.set(x) if name == "set" else self.hc.unary(name, x), shape)

    def _binary(self, x: TensorView, shape: tuple[int, ...]) -> None:
        name = self.dice.choice(["add", "subtract", "multiply", "maximum", "divide"])
        others = [t for t in self.pool if _meet(shape, self.extents[t]) is not None]
        if name == "divide" or self.dice.random() < 0.3:
            number = self.dice.choice([2, 0.5, *_numbers(x)])
            self._add(self.hc.binary(name, x, number), shape)
            return
        y = self.dice.choice(others)
        met = _meet(shape, self.extents[y])
        assert met is not None
        self._add(self.hc.binary(name, x, y), met)

    def _launch(self, x: TensorView, shape: tuple[int, ...]) -> None:
        fusion = self.dice.choice(_fusions())
        made = self.hc.launch(fusion, x)
        self._add(made, shape if made.ndim == 2 else shape[1:])

    def _matmul(self, x: TensorView, shape: tuple[int, ...]) -> None:
        for y in self.dice.sample(self.pool, len(self.pool)):
            other = self.extents[y]
            if shape and len(other) == 2 and shape[-1] == other[0]:
                made = self.hc.binary("divide", self.hc.matmul(x, y), other[0])
                self._add(made, (*shape[:-1], other[1]))
                return

    def _reduce(self, x: TensorView, shape: tuple[int, ...]) -> None:
        axis = self.dice.randrange(len(shape))
        name = self.dice.choice(["sum", "sum", "max", "min"])
        self._add(self.hc.reduce(name, x, axis), shape[:axis] + shape[axis + 1 :])

    def _move(self, x: TensorView, shape: tuple[int, ...]) -> None:
        axis = self.dice.randrange(len(shape))
        kind = self.dice.choice(["permute", "stretch", "flat", "select", "slice"])
        if kind == "permute":
            order = self.dice.sample(range(len(shape)), len(shape))
            moved = tuple(shape[k] for k in order)
            self._add(self.hc.permute(x, order), moved)
        elif kind == "stretch":
            extents = [*x.shape[:axis], 1, *x.shape[axis:]]
            made = self.hc.reshape(x, extents)
            self._add(made, (*shape[:axis], 1, *shape[axis:]))
        elif kind == "flat":
            extent = x.shape[0]
            for n in x.shape[1:]:
                extent = extent * n
            self._add(self.hc.reshape(x, (extent,)), (prod(shape),))
        elif kind == "select":
            made = self.hc.select(x, axis, 0)
            self._add(made, shape[:axis] + shape[axis + 1 :])
        elif shape[axis] == 24:
            starts, stops = [0] * len(shape), list[Any](x.shape)
            starts[axis] = self.dice.choice([0, 5])
            stops[axis] = starts[axis] + 12
            made = self.hc.slice(x, starts, stops)
            self._add(made, (*shape[:axis], 12, *shape[axis + 1 :]))


def _numbers(x: TensorView) -> list[Any]:
    return [n for n in x.shape if not isinstance(n, Const)]


def _meet(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
    try:
        return np.broadcast_shapes(a, b) if a == b or len(a) + len(b) < 7 else None
    except ValueError:
        return None


def random_case(seed: int) -> Case:
    """Return a program, the same for each seed."""
    return _Writer(seed).case()
