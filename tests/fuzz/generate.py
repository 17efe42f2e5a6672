# SPDX-License-Identifier: Apache-2.0
"""Random programs from a seed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tests.fuzz import move_steps, shape_steps, steps
from tests.fuzz.arrays import FLOAT_VALUES, INTEGER_VALUES, LAYOUTS
from tests.fuzz.program import Call, Input, Program, Step
from tests.fuzz.state import COMPLEX, FLOATS, INTEGERS, Draft, Node, State
from tests.oracle.number_types import is_inexact, precision

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.fuzz.steps import Maker
    from tests.oracle import Value

    Makers = Sequence[tuple[float, Maker]]

SIZES = (0, 1, 2, 3, 5, 7, 8, 16, 17, 33, 64, 100, 257, 1000)
_SIZE_WEIGHTS = np.array([0.2, 1, 1.5, 1.5, 1, 1, 1, 1, 1.2, 1, 0.7, 0.6, 0.5, 0.4])
_MAKERS: Makers = (
    (5, steps.unary_float),
    (3, steps.unary_any),
    (8, steps.binary),
    (1, steps.power),
    (2, steps.comparison),
    (1.5, steps.logic),
    (2, steps.where),
    (0.7, steps.clip),
    (2, steps.cast),
    (4, shape_steps.reduction),
    (1, shape_steps.position),
    (1, shape_steps.scan),
    (1.5, shape_steps.composite),
    (4, shape_steps.view),
    (2.5, move_steps.movement),
    (0.12, shape_steps.refused),
)


TALL_SHARE = 0.2
"""How many programs have an axis of thousands of elements, where that is asked for."""
_TALL = (2_000, 100_000)
_NARROW = (1, 2, 3, 5, 8, 17, 33)


def generate(seed: int, index: int, limit: int = 20_000, tall: int = 0) -> Program:
    """Return program ``index`` of a seed; arrays have at most ``limit`` elements.

    If ``tall`` is given, some programs have one long axis, and that many elements.
    """
    rng = np.random.default_rng([seed, index])
    is_tall = np.random.default_rng([seed, index, 2]).random() < TALL_SHARE
    while True:
        state = _start_tall(rng, tall) if tall and is_tall else _start(rng, limit)
        wanted = int(rng.choice([1, 2, 3, 4, 5, 6, 8, 10, 12]))
        raised = grow(state, wanted, _MAKERS)
        if state.steps:
            return finish(state, raised, state.calls)


def _start(rng: np.random.Generator, limit: int) -> State:
    rank = int(rng.choice([0, 1, 2, 3, 4, 5], p=[0.04, 0.2, 0.34, 0.22, 0.12, 0.08]))
    return _started(rng, limit, rank, _call)


def _start_tall(rng: np.random.Generator, limit: int) -> State:
    rank = int(rng.choice([1, 2, 3], p=[0.3, 0.5, 0.2]))
    long = int(rng.integers(rank))  # the same axis in all calls

    def call(
        rng: np.random.Generator, rank: int, scalars: dict[str, type], limit: int
    ) -> Call:
        most = min(_TALL[1], limit)
        size = int(_TALL[0] * (most / _TALL[0]) ** rng.random())
        if rng.random() < 0.3:  # where vectors, parts and pieces end
            size = min((size // 1024 + 1) * 1024 + int(rng.integers(-1, 2)), most)
        drawn = [1] * rank
        drawn[long] = size
        for k in range(rank):
            if k != long:
                fitting = [n for n in _NARROW if n * math.prod(drawn) <= limit]
                drawn[k] = int(rng.choice(fitting))
        return _called(rng, drawn, scalars)

    return _started(rng, limit, rank, call)


def _started(
    rng: np.random.Generator, limit: int, rank: int, call: Callable[..., Call]
) -> State:
    family = _family(rng)
    inputs = [
        _input(rng, f"x{k}", rank, family) for k in range(int(rng.integers(1, 5)))
    ]
    scalars = {
        f"s{k}": (int, float)[int(rng.integers(0, 2))]
        for k in range(int(rng.choice([0, 1, 2], p=[0.65, 0.25, 0.1])))
    }
    count = int(rng.choice([1, 2, 3], p=[0.25, 0.45, 0.3]))
    calls = [call(rng, rank, scalars, limit) for _ in range(count)]
    state = State(rng, inputs, calls, scalars, limit)
    state.load()
    return state


def _family(rng: np.random.Generator) -> tuple[str, ...]:
    """Return the dtypes that a program's inputs have; two or three meet."""
    families = (FLOATS, FLOATS, ("float32",), INTEGERS, COMPLEX, ("bool",))
    weights = [0.25, 0.1, 0.35, 0.2, 0.07, 0.03]
    first = families[int(rng.choice(len(families), p=weights))]
    main = str(rng.choice(first))
    others = [str(rng.choice([*FLOATS, *INTEGERS, "bool"])) for _ in range(2)]
    return (main, main, main, main, *others)


def _input(
    rng: np.random.Generator, name: str, rank: int, family: tuple[str, ...]
) -> Input:
    dtype = str(rng.choice(family))
    dims = [f"n{k}" for k in range(rank)]
    for k in range(rank):
        if rng.random() < 0.15:
            dims[k] = "1" if rng.random() < 0.5 else f"m{k}"
    if rank and rng.random() < 0.2:
        dims = dims[int(rng.integers(0, rank + 1)) :]
    kinds = FLOAT_VALUES if "float" in dtype else INTEGER_VALUES
    weights = [0.62, 0.1, 0.12, 0.08, 0.04, 0.04]
    if "float" not in dtype:
        weights = [0.4, 0.2, 0.2, 0.2]
    values = str(rng.choice(kinds, p=weights))
    if dtype in COMPLEX:
        values = "normal" if rng.random() < 0.8 else "small"
    layout = "contiguous" if rng.random() < 0.5 else str(rng.choice(LAYOUTS))
    return Input(name, dtype, tuple(dims), values, layout, int(rng.integers(0, 2**31)))


def _call(
    rng: np.random.Generator, rank: int, scalars: dict[str, type], limit: int
) -> Call:
    while True:
        p = _SIZE_WEIGHTS / _SIZE_WEIGHTS.sum()
        drawn = [int(n) for n in rng.choice(SIZES, rank, p=p)]
        if np.prod(drawn, dtype=float) <= limit:
            break
    return _called(rng, drawn, scalars)


def _called(
    rng: np.random.Generator, drawn: list[int], scalars: dict[str, type]
) -> Call:
    sizes = {f"n{k}": n for k, n in enumerate(drawn)}
    sizes |= {f"m{k}": (n if rng.random() < 0.5 else 1) for k, n in enumerate(drawn)}
    numbers: dict[str, int | float | str] = {}
    for name, kind in scalars.items():
        if kind is int:
            numbers[name] = int(rng.choice([0, 1, 2, 3, 7, 50, 100]))
        else:
            numbers[name] = float(rng.choice([0.5, -1.25, 2.0, 0.1, 3.75, 0.0, 1e-4]))
    return Call(sizes, numbers)


def grow(state: State, wanted: int, makers: Makers) -> bool:
    """Add ``wanted`` steps, or as many as fit; tell whether the last one raises."""
    weights = np.array([weight for weight, _ in makers])
    for _ in range(wanted * 6):
        if len(state.steps) == wanted:
            break
        chosen = int(state.rng.choice(len(makers), p=weights / weights.sum()))
        draft = makers[chosen][1](state)
        if draft is not None and _take(state, draft):
            return True
    return False


def _take(state: State, draft: Draft) -> bool:
    """Add a step if it is any good; tell whether it raises."""
    if any(_count(state, draft, k) > state.limit for k in range(len(state.calls))):
        return False  # before the oracle spends a minute on it
    step = Step(f"t{len(state.steps)}", draft.text, draft.uses)
    try:
        values = state.evaluate(draft)
    except (ValueError, TypeError, OverflowError, IndexError) as error:
        empty = "zero-size" in str(error) or "empty" in str(error)
        if draft.raises or (empty and state.chance(0.3)):
            state.steps.append(step)
            state.pool.append(Node(step.name, draft.dims, ()))
            return True
        return False
    if draft.raises or not all(_is_good(state, v) for v in values):
        return False
    shapes = zip(*map(state.sizes, draft.dims), strict=True)
    assert not draft.dims or [v.shape for v in values] == list(shapes), step.line()
    state.steps.append(step)
    state.pool.append(Node(step.name, draft.dims, tuple(values)))
    return False


def _count(state: State, draft: Draft, k: int) -> int:
    return math.prod(state.sizes(dim)[k] for dim in draft.dims)


def _is_good(state: State, value: Value) -> bool:
    """Tell whether a value says enough about a kernel to be worth keeping."""
    if value.size > state.limit or len(value.shape) > 6:
        return False
    if np.count_nonzero(value.doubt) > 0.004 * value.size:
        return False
    if not is_inexact(value.dtype) or not value.size:
        return True
    finite = np.isfinite(value.ref)
    if np.mean(finite) < 0.3 and state.chance(0.85):
        return False
    size = np.abs(np.where(finite, value.ref, 1))
    p = precision(value.dtype)
    vague = finite & (value.err > 1e-2 * size) & (value.err > 1e6 * p.floor)
    return bool(np.mean(vague) < 0.1)


def finish(state: State, raised: bool, calls: Sequence[Call]) -> Program:
    """Choose outputs: names that nothing uses, and one or two others."""
    used = {name for step in state.steps for name in step.uses}
    made = [step.name for step in state.steps]
    ends = [name for name in made if name not in used]
    outputs = ends[-2:] if not raised else [made[-1]]
    if len(outputs) < 3 and state.chance(0.3):
        extra = state.choose(made)
        outputs += [extra] if extra not in outputs else []
    return Program(
        tuple(state.inputs),
        tuple(state.scalars),
        tuple(state.steps),
        tuple(outputs),
        tuple(calls),
    )
