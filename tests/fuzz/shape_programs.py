# SPDX-License-Identifier: Apache-2.0
"""Random chains of movements, called with sizes that come, go and come back."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from tests.fuzz import move_steps, shape_steps, steps
from tests.fuzz.generate import finish, grow
from tests.fuzz.program import Call, Input
from tests.fuzz.reshape_steps import reshape
from tests.fuzz.state import FLOATS, INTEGERS, State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.fuzz.generate import Makers
    from tests.fuzz.program import Program

SYMBOLS = ("n0", "n1", "n2", "n3")
SIZES = (0, 1, 2, 3, 4, 5, 6, 8, 17, 64)
_SIZE_WEIGHTS = np.array([0.25, 1, 1.3, 1.3, 1, 1, 0.8, 1, 0.8, 0.4])
ORDERS = ("A", "AA", "AB", "ABA", "ABAB", "ABACB", "AABBA", "ABCBA")
_ORDER_WEIGHTS = (0.06, 0.06, 0.1, 0.2, 0.13, 0.2, 0.1, 0.15)
_MAKERS: Makers = (
    (6, reshape),
    (3, move_steps.residual),
    (2.5, move_steps.cut),
    (2, move_steps.pad),
    (2, move_steps.join),
    (1, move_steps.stack),
    (1.5, move_steps.roll),
    (1.2, move_steps.multiply),
    (1.5, move_steps.take),
    (1, move_steps.spread),
    (0.5, move_steps.pick_one),
    (3, shape_steps.view),
    (2, shape_steps.reduction),
    (0.5, shape_steps.composite),
    (0.4, shape_steps.position),
    (3, steps.binary),
    (0.8, steps.unary_any),
    (0.8, steps.where),
    (0.5, steps.comparison),
    (0.4, steps.cast),
    (0.15, move_steps.misfit),
)


def generate_shapes(seed: int, index: int, limit: int) -> Program:
    """Return program ``index`` of a seed; arrays have at most ``limit`` elements."""
    rng = np.random.default_rng([seed, index, 1])
    while True:
        state = _start(rng, limit)
        if state is None:
            continue
        raised = grow(state, int(rng.choice([1, 2, 3, 3, 4, 5, 6, 8])), _MAKERS)
        if state.steps:
            order = str(rng.choice(ORDERS, p=_ORDER_WEIGHTS))
            calls = [state.calls["ABC".index(c) % len(state.calls)] for c in order]
            return finish(state, raised, calls)


def _start(rng: np.random.Generator, limit: int) -> State | None:
    inputs = [_input(rng, f"x{k}") for k in range(int(rng.integers(1, 4)))]
    scalars: dict[str, type] = {
        f"s{k}": int for k in range(int(rng.choice([0, 1, 2], p=[0.4, 0.4, 0.2])))
    }
    meant = {name: str(rng.choice(_MEANINGS)) for name in scalars}
    calls: list[Call] = []
    while len(calls) < int(rng.choice([1, 2, 3])):
        sizes = _sizes(rng, calls[-1] if calls else None)
        call = Call(sizes, {name: _number(rng, meant[name]) for name in scalars})
        if any(prod(map(call.size, x.dims)) > limit for x in inputs):
            return None
        if call not in calls:
            calls.append(call)
    state = State(rng, inputs, calls, scalars, limit, haste=0.75)
    state.load()
    return state


def _input(rng: np.random.Generator, name: str) -> Input:
    families = (("float32",), FLOATS, INTEGERS, ("complex64",), ("bool",))
    family = families[int(rng.choice(5, p=[0.5, 0.2, 0.22, 0.05, 0.03]))]
    rank = int(rng.choice([0, 1, 2, 3, 4], p=[0.02, 0.28, 0.4, 0.22, 0.08]))
    dims = tuple(_dim(rng) for _ in range(rank))
    values = str(rng.choice(["normal", "small", "positive"], p=[0.6, 0.3, 0.1]))
    layouts = ("contiguous", "permuted", "reversed", "stepped", "offset", "stretched")
    layout = str(rng.choice(layouts, p=[0.7, 0.1, 0.05, 0.05, 0.05, 0.05]))
    seed = int(rng.integers(0, 2**31))
    return Input(name, str(rng.choice(family)), dims, values, layout, seed)


def _dim(rng: np.random.Generator) -> str:
    a, b = sorted(_symbol(rng) for _ in range(2))
    kinds = [a, f"{a}*{b}", f"2*{a}", f"4*{a}", f"{a}+{b}", "1", "6", "m" + a[1:]]
    return str(rng.choice(kinds, p=[0.5, 0.24, 0.07, 0.03, 0.04, 0.04, 0.02, 0.06]))


def _symbol(rng: np.random.Generator) -> str:
    return str(rng.choice(SYMBOLS, p=[0.4, 0.3, 0.2, 0.1]))


def _sizes(rng: np.random.Generator, before: Call | None) -> dict[str, int]:
    """Draw sizes, or keep those of another call but for one."""
    p = _SIZE_WEIGHTS / _SIZE_WEIGHTS.sum()
    numbers = map(int, rng.choice(SIZES, 4, p=p))
    drawn: dict[str, int] = dict(zip(SYMBOLS, numbers, strict=True))
    if before is not None and rng.random() < 0.5:
        changed = _symbol(rng)
        drawn = {**{n: before.sizes[n] for n in SYMBOLS}, changed: drawn[changed]}
    ones = {"m" + n[1:]: (v if rng.random() < 0.5 else 1) for n, v in drawn.items()}
    return drawn | ones


_MEANINGS = ("infer", "infer", "size", "size", "shift", "shift", "count")


def _number(rng: np.random.Generator, meaning: str) -> int | str:
    """Return what a run-time number of a kind is in one call."""
    choices: Sequence[int | str]
    if meaning == "infer":
        choices = (-1, -1, -1, "n0", "n1")
    elif meaning == "size":
        choices = ("n0",) if rng.random() < 0.8 else ("n0", "n1", "n0*n1")
    elif meaning == "shift":
        choices = (0, 1, 2, 3, -1, -2, 5, 7)
    else:
        choices = (1, 2, 3, 2)
    return choices[int(rng.integers(0, len(choices)))]
