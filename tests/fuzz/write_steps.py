# SPDX-License-Identifier: Apache-2.0
"""The statements of random programs that write, each of a feature that is counted."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import tests.fuzz.loop_steps as loops
import tests.fuzz.place_steps as places
from tests.fuzz.form_steps import FORM_STEPS
from tests.fuzz.growing import Program
from tests.fuzz.key_steps import KEY_STEPS
from tests.fuzz.turn_steps import TURN_STEPS
from tests.fuzz.word_steps import WORD_STEPS

if TYPE_CHECKING:
    from collections.abc import Collection

    from tests.fuzz.growing import Lines, Step

_NEAR = (
    ("1:", ":-1", "1:-1", "2:", "2:-1", ":", ":2", "1:3", ":4:2", ":3", "::2", "-3:"),
    ("0", "1", "-1", "2", "1", "-2"),
    ("3::-1", "2::-1", "1::-1", "-2::-1", "::-1", ":-3:-1", "-1:0:-1", "2:0:-1"),
)
"""Parts of an axis that go forwards, places of it, and parts that go backwards."""


def generate(seed: int, wanted: Collection[str] = ()) -> tuple[str, set[str], int]:
    """Return the text of a program, its features, and how many axes it is for.

    Features that are ``wanted`` are among them, if many tries bring them about.
    """
    rng = random.Random(seed)
    rank = rng.choice((1, 1, 2, 2, 2, 3, 3, 4))
    rank = next((int(f[-1]) for f in wanted if f.startswith("rank")), rank)
    made = Program.begun(rng, rank)
    for _ in range(rng.randint(2, 8)):
        made.grow(rng.choices(list(STEPS), list(STEPS.values()))[0])
    first = [f for f in wanted if f in STEP_OF]
    for feature in rng.sample(first, len(first)):
        for _ in range(_TRIES):
            if feature in made.features:
                break
            made.grow(STEP_OF[feature])
    made.features.add(f"rank {rank}")
    if are_shared(seed):
        made.features.add("shared")
    if not made.lines:
        made.lines.append("a[1:] = b[1:]")
    return made.text(), made.features, rank


_TRIES = 60


def are_shared(seed: int) -> bool:
    """Tell whether the arguments of a program lie in the memory of one array."""
    return random.Random(f"shared {seed}").random() < 0.03


def _assign(made: Program) -> Lines:
    line = made.store()
    return [line] if line else [], "assign"


def _local(made: Program) -> Lines:
    x = made.any()
    forms = (
        f"np.zeros_like({x})",
        f"{x} * 0.5",
        f"{x}.copy()",
        f"np.ones({x}.shape)",
        f"np.nan_to_num(np.empty_like({x})) * 0",
        f"np.full({x}.shape, t)",
        f"{x}.T + 1",
    )
    return [f"{made.name('z')} = {made.rng.choice(forms)}"], "local"


def _near(made: Program) -> Lines:
    """Write parts of an array that nothing keeps; read what lies there, or beside."""
    rng, x = made.rng, made.any()
    held = "_" + made.name("h")
    first = rng.choice((f"np.zeros_like({x})", f"{x} * 0.5", f"{x}.copy()"))
    lines = [f"{held} = {first}"]
    ndim = made.space[x].ndim

    def part() -> str:
        kinds = rng.choices(_NEAR, (3, 2, 2), k=rng.randint(1, ndim))
        return ", ".join(map(rng.choice, kinds))

    keys = [part() for _ in range(3)]
    for _ in range(rng.randint(2, 4)):
        key = rng.choice(keys)
        shape = made.shape_of(f"{x}[{key}]")
        if shape is None:
            return [], "near"
        op = rng.choice(("=", "=", "+="))
        lines.append(f"{held}[{key}] {op} {made.value(shape, x)}")
    own = rng.choice(("{} * 0.5", "{} + t", "{}.copy()", "{}.sum(axis=0)"))
    for _ in range(2):
        read = own.format(f"{held}[{rng.choice((part(), *keys, *keys))}]")
        lines.append(f"{made.name('y')} = {read}")
    return lines, "near"


def _view(made: Program) -> Lines:
    rng, x = made.rng, made.any()
    forms = (
        *(made.part(x), f"{x}.T", f"{x}[::-1]", f"{x}[...]", f"{made.part(x)}.T"),
        *(f"np.moveaxis({x}, 0, -1)", f"np.moveaxis({x}, -1, 0)"),
    )
    v = made.name("v")
    lines = [f"{v} = {rng.choice(forms)}"]
    if rng.random() < 0.4:
        lines.append(
            f"{v}[...] = {rng.choice((v, v, 't'))} - {made.any()}.sum() * 0.01"
        )
    elif rng.random() < 0.3:
        lines.append(f"{v}[::-1] {rng.choice(('=', '+='))} {v} * 0.5")
    return lines, "view"


def _mask(made: Program) -> Lines:
    """Assign under a mask, one value or those of the same mask."""
    rng, x = made.rng, made.any()
    shape = made.space[x].shape
    others = [n for n in made.arrays if made.space[n].shape == shape]
    y = rng.choice(others)
    m = made.name("m")
    test = rng.choice((f"{y} > {rng.randint(-1, 2)}", f"{x} + {y} < 1", f"{x} == {y}"))
    if rng.random() < 0.3 and len(shape) > 1:
        test = f"{y}[..., 0] > t" if rng.random() < 0.5 else f"{y}[0] < 1"
        key = m if "..." in test else f"..., {m}"
        if "..." not in test:
            key = f":, {m}" if len(shape) == 2 else f"..., {m}"
    elif rng.random() < 0.5 and len(shape) > 2:  # beside an integer of the key
        test, key = rng.choice(
            (
                (f"{y}[:, 0, 0] > t", f"{m}, :, -1"),
                (f"{y}[:, 0, 0] < 1", f"{m}, 0"),
                (f"{y}[0, :, 0] < 1", f"0, {m}"),
                (f"{y}[0, 0] > t", f"0, :, {m}"),
                (f"{y}[0, 0] > t", f"0, ..., {m}"),
            )
        )
    else:
        key = m
    chosen = made.shape_of(f"{x}[{key.replace(m, f'({test})')}]") or ()
    leads = key.startswith(m) or (", " in key and key.startswith("0"))
    row = made.value(chosen[1:] if leads else (), x)  # the same for all that is chosen
    forms = (
        f"{x}[{key}] = {rng.randint(-2, 2)}",
        f"{x}[{key}] = {row}",
        f"{x}[{key}] = {x}[{key}] * 0.5 + {y}[{key}]",
        f"{x}[{key}] -= {y}[{key}]",
        f"{x}[{key}] *= t",
        f"{x}[{key}] = np.abs({y}[{key}]) - {x}.sum() * 0.1",
    )
    return [f"{m} = {test}", rng.choice(forms)], "mask"


def _fold(made: Program) -> Lines:
    x = made.any()
    how = made.rng.choice(("sum()", "mean()", "max(initial=-9)", "sum(axis=0)"))
    return [f"{made.name('s')} = {x}.{how}"], "fold"


def _element(made: Program) -> Lines:
    rng, x = made.rng, made.any()
    places = ", ".join(rng.choice(("0", "-1")) for _ in made.space[x].shape)
    name = made.name("e")
    return [f"{name} = {x}[{places}]", f"{x}[{places}] = t + {name}"], "element"


def _call(made: Program) -> Lines:
    x = made.any()
    target = x if made.rng.random() < 0.5 else made.part(x)
    if not made.shape_of(target):
        return [], "call"
    return [made.rng.choice((f"halve({target})", f"shifted({target}, t)"))], "call"


def _function(made: Program) -> Lines:
    rng, x = made.rng, made.any()
    value = made.value(made.space[x].shape, x)
    forms = (
        f"np.copyto({x}, {value})",
        f"np.copyto({x}, {value}, where={x} > 0)",
        f"{x}.fill(t)",
        f"np.putmask({x}, {x} > 1, {rng.randint(-2, 2)})",
        f"np.add({x}, {value}, out={x})",
        f"np.add.at({x}, [0, -1, 0], t)",
    )
    return [rng.choice(forms)], "function"


def _outside(made: Program) -> Lines:
    """Write into an array from outside."""
    x = made.any()
    forms = (
        "G[0] += 1",
        "G[1:-1] = G[2:] + t",
        f"G[2] += {x}.sum() * 0.01",
        "G[::2] *= 0.5",
    )
    return [made.rng.choice(forms)], "outside"


def _swap(made: Program) -> Lines:
    x = made.any()
    key = made.rng.choice((("0", "-1"), ("::2", "::-2"), (":1", "-1:")))
    one, two = (f"{x}[{k}]" for k in key)
    copied = "" if made.space[x].ndim == 1 and key[0] == "0" else ".copy()"
    return [f"{one}, {two} = {two}{copied}, {one}{copied}"], "swap"


STEPS: dict[Step, float] = {
    _assign: 6,
    _local: 3,
    _view: 4,
    _mask: 5,
    _fold: 2,
    _element: 2,
    _call: 2,
    _function: 2,
    _outside: 1.5,
    _swap: 1.5,
    _near: 5,
    loops.loop: 5,
    loops.while_loop: 1,
    loops.branch: 2,
    loops.jump: 2,
    loops.carried: 2.5,
    loops.sweep: 2.5,
    loops.elements: 1.5,
    places.scatter: 4,
    places.gather: 2.5,
    places.product: 2.5,
    places.alike: 2,
    places.between: 3,
    places.doubled: 2.5,
    places.failing: 0.4,
    WORD_STEPS["words"]: 14,
    WORD_STEPS["seldom"]: 7,
    WORD_STEPS["numbers"]: 5,
    WORD_STEPS["handed"]: 3,
    WORD_STEPS["helped"]: 2.5,
    WORD_STEPS["states"]: 4.5,
    WORD_STEPS["rows"]: 6,
    KEY_STEPS["keys"]: 8,
    KEY_STEPS["own"]: 7,
    KEY_STEPS["views"]: 4,
    TURN_STEPS["handed_on"]: 8,
    TURN_STEPS["resting"]: 3,
    TURN_STEPS["with_lax"]: 1.5,
    TURN_STEPS["seen_rows"]: 6,
    FORM_STEPS["counted"]: 7,
    FORM_STEPS["forms"]: 9,
    FORM_STEPS["typed"]: 7,
    FORM_STEPS["folded"]: 4,
    FORM_STEPS["moved"]: 9,
}
"""What programs are made of, and how often."""

STEP_OF: dict[str, Step] = {
    **{step.__name__.strip("_"): step for step in STEPS},
    **dict.fromkeys(("loop 3", "loop n", "loop n + 1", "loop 70"), loops.loop),
    "loop by steps": loops.loop,
    "while": loops.while_loop,
    "chain": loops.sweep,
    "fails": places.failing,
}
"""The step that brings a feature about; of ranks and the like there is none."""
del STEP_OF["loop"], STEP_OF["while_loop"], STEP_OF["failing"]


def writing_steps() -> tuple[list[Step], list[float]]:
    """Return the steps that fail never, those that write first, and how often each."""
    first: list[Step] = [_assign, _element]
    rest = [s for s in STEPS if s not in first and s is not places.failing]
    return [*first, *rest], [STEPS[s] for s in (*first, *rest)]
