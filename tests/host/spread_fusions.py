# SPDX-License-Identifier: Apache-2.0
"""Fusions cut where shardings change, run on virtual ranks; random ones, too."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from math import prod
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser
import nfuser.execution.host.ir.statements as st
from nfuser.compiler.ir.expr import Argument, results
from nfuser.compiler.rewrite.passes import rewrite
from nfuser.compiler.schedule.registry import find_scheduler
from nfuser.compiler.segment import REPLICATED, Sharding, Shardings, segment
from nfuser.execution.host.mesh.lower_segments import lower_segments
from nfuser.execution.host.mesh.virtual_ranks import VirtualRanks, whole
from nfuser.execution.host.mesh.virtual_ranks import spread as parts_of
from tests.hand_built import settle, traced

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.segment.sharding import Layout

    Function = Callable[..., Any]

MESHES = ((4,), (2, 2), (2, 3), (3, 1, 2))
SIZE = 12  # has equal parts on all of these


class FusedCase:
    """A function, how its arguments and results lie, and its program for a rank."""

    def __init__(
        self,
        function: Function,
        arrays: Sequence[Any],
        arguments: Mapping[int, Layout],
        outputs: Mapping[int, Layout] | None = None,
        mesh: tuple[int, ...] = (4,),
        dice: Random | None = None,
    ) -> None:
        shapes = [np.shape(x) for x in arrays]
        self.function, self.arrays, self.mesh = function, arrays, mesh
        self.fusion = rewrite(settle(traced(function, *arrays), *shapes)).fusion
        given = {a.slot: a.result for a in self.fusion.arguments}
        self.layouts = {given[k]: x for k, x in arguments.items() if k in given}
        for number, layout in (outputs or {}).items():
            self.layouts[self.fusion.outputs[number]] = layout
        if dice is not None:
            self.layouts |= self._inner(dice)
        shardings = Shardings(mesh, self.layouts)
        self.segmented = segment(self.fusion, find_scheduler, shardings=shardings)
        self.lowered = lower_segments(self.segmented)

    def _inner(self, dice: Random) -> dict[TensorView, Layout]:
        """Return how some of the tensors between shall lie."""
        inner = [
            t
            for e in self.fusion.exprs
            if not isinstance(e, Argument)
            for t in results(e)
            if t not in self.layouts and dice.random() < 0.1
        ]
        return {t: random_layout(dice, t.ndim, self.mesh, t.shape) for t in inner}

    def exchanges(self) -> list[str]:
        """Return the kinds of exchanges of a rank."""
        found = st.walk(self.lowered.body)
        return [s.kind for s in found if isinstance(s, st.Communicate)]

    def check(self, tolerance: float = 1e-5) -> None:
        """Run on all ranks, and compare with NumPy."""
        with np.errstate(all="ignore"):
            wanted = self.function(*self.arrays)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        default = (REPLICATED,) * len(self.mesh)
        own = [
            parts_of(
                self.arrays[a.slot], self.layouts.get(a.result, default), self.mesh
            )
            for a in self.fusion.arguments
        ]
        evaluator = nfuser.HostIrEvaluator(self.lowered)
        made = VirtualRanks(prod(self.mesh)).run(
            lambda r: evaluator.run([p[r.rank] for p in own], communicator=r)
        )
        spread = self.segmented.spread
        assert spread is not None
        for number, (output, want) in enumerate(
            zip(self.fusion.outputs, wanted, strict=True)
        ):
            gives = self.layouts.get(output, spread.gives[output])
            lies = tuple(REPLICATED if s.partial else s for s in gives)
            found = whole([outputs[number] for outputs in made], lies, self.mesh)
            np.testing.assert_allclose(found, want, rtol=tolerance, atol=tolerance)


def random_layout(
    dice: Random,
    ndim: int,
    mesh: tuple[int, ...],
    shape: Sequence[Any] | None = None,
) -> Layout:
    """Return how a tensor lies; of axes none that is 1, nor one twice if odd."""
    found: list[Sharding] = []
    axes = [k for k in range(ndim) if shape is None or _has_parts(shape[k])]
    for size in mesh:
        chance = dice.random()
        if chance < 0.5 and axes:
            found.append(Sharding(axis=dice.choice(axes)))
        elif chance < 0.6:
            found.append(Sharding(owner=dice.randrange(size)))
        else:
            found.append(REPLICATED)
    return tuple(found)


def _has_parts(extent: Any) -> bool:
    value = getattr(extent, "value", None)
    return value is None or value % SIZE == 0


def random_fused(seed: int) -> FusedCase:
    """Return a case, the same for each seed."""
    dice = Random(seed)
    mesh = dice.choice(MESHES)
    numbers = np.random.default_rng(seed)
    ranks = [dice.randint(1, 2) for _ in range(dice.randint(1, 3))]
    arrays = [numbers.standard_normal((SIZE,) * n) for n in ranks]
    pool = list(arrays)
    steps: list[Function] = []
    for _ in range(dice.randint(3, 9)):
        steps.append(_step(dice, pool))
        with np.errstate(all="ignore"):
            pool.append(np.asarray(steps[-1](pool)))

    def function(*given: Any) -> Any:
        pool = list(given)
        for step in steps:
            pool.append(step(pool))
        return tuple(pool[-2:])

    layouts = {k: random_layout(dice, n, mesh) for k, n in enumerate(ranks)}
    for slot, layout in layouts.items():
        if dice.random() < 0.15 and layout[0] == REPLICATED:
            kind = dice.choice(["sum", "max"])
            layouts[slot] = (Sharding(partial=kind), *(REPLICATED,) * (len(mesh) - 1))
    return FusedCase(function, arrays, layouts, None, mesh, dice)


def _step(dice: Random, pool: Sequence[Any]) -> Function:
    """Return what gives one more array of those in a pool like this one."""
    at = dice.randrange(len(pool))
    x = pool[at]
    axis = dice.randrange(x.ndim) if x.ndim else 0
    rest = (slice(None),) * axis
    with_x: list[Function] = [np.tanh, np.negative, lambda x: x / 12.0, lambda x: x * 2]
    if x.ndim:
        keeps = x.ndim == 2 and dice.random() < 0.7
        with_x += [_fold(name, axis, keeps) for name in ("sum", "max", "mean", "var")]
        with_x += [lambda x: np.tanh(x).cumsum(axis=axis), lambda x: x.T, np.copy]
        with_x.append(
            lambda x: np.concatenate(
                [x[(*rest, slice(4, None))], x[(*rest, slice(4))]], axis
            )
        )
    if x.ndim == 1:
        with_x += [lambda x: x[:, None] * x, lambda x: x.reshape(-1, 1)]
    if x.shape[-1:] == (SIZE,):
        with_x.append(lambda x: x + np.arange(SIZE))
    if x.shape == (SIZE, SIZE):
        with_x += [lambda x: x.reshape(SIZE * SIZE)[:SIZE]]
        with_x += [lambda x: x.reshape(x.shape[0], 3, 4).sum(axis=1 + axis)]
    others = [k for k, y in enumerate(pool) if _meet(x, y)]
    products = [
        k for k, y in enumerate(pool) if x.ndim == 2 and y.shape == x.shape[1:] * 2
    ]
    if dice.random() < 0.5:
        apply = dice.choice(with_x)
        return lambda pool: apply(pool[at])
    if products and dice.random() < 0.5:
        other = dice.choice(products)
        return lambda pool: np.tanh(pool[at] @ pool[other])
    other = dice.choice(others)
    both = dice.choice([np.add, np.subtract, np.maximum, lambda x, y: x * np.tanh(y)])
    return lambda pool: both(pool[at], pool[other])


def _fold(name: str, axis: int, keeps: bool) -> Function:
    return lambda x: getattr(x, name)(axis=axis, keepdims=keeps)


def _meet(x: Any, y: Any) -> bool:
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return False
    return True
