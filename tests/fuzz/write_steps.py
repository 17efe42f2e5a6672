# SPDX-License-Identifier: Apache-2.0
"""The statements of random programs that write, each of a feature that is counted."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownParameterType=false

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    Step: TypeAlias = Callable[["Program"], tuple[list[str], str]]

SHAPES = {
    1: ((7,), (33,), (6,), (100,), (9,), (1,), (0,)),
    2: ((6, 7), (5, 33), (17, 5), (6, 6), (9, 4), (64, 65), (4, 1), (0, 3)),
    3: ((4, 5, 6), (6, 6, 17), (7, 4, 5), (5, 9, 4), (9, 8, 8), (3, 1, 2)),
}
_PARTS = (
    *(":", "1:", ":-1", "1:-1", "::2", "1::2", "::-1", ":2", "0", "-1", "-2:"),
    *("::3", ":-2:2", "2::-1"),
)
_NEAR = ("1:", ":-1", "1:-1", "2:", "2:-1", ":", "0", "-1", "1", ":2", "1:3", ":4:2")
_HEAD = """\
def shifted(x, by):
    x += by
    return x


def halve(x):
    x *= 0.5


"""


@dataclass
class Program:
    """The lines of a function, grown while NumPy runs them."""

    rng: random.Random
    rank: int
    lines: list[str] = field(default_factory=list)
    space: dict[str, Any] = field(default_factory=dict)
    features: set[str] = field(default_factory=set)
    count: int = 0

    @classmethod
    def begun(cls, rng: random.Random, rank: int) -> Program:
        """Return a program that does nothing yet."""
        shape = SHAPES[rank][0]
        x = np.arange(float(np.prod(shape))).reshape(shape) % 5 - 1
        space = {"a": x.copy(), "b": x[::-1] * 2, "n": 3, "t": 0.5, "G": np.ones(9)}
        return cls(rng, rank, space=space)

    @property
    def arrays(self) -> list[str]:
        """The names of arrays."""
        return [
            n for n, x in self.space.items() if isinstance(x, np.ndarray) and x.ndim
        ]

    def text(self) -> str:
        """Return the program."""
        made = [n for n in self.arrays if n not in ("a", "b", "G")] or ["b"]
        rng = self.rng
        made = rng.sample(made, min(len(made), rng.choice((3, 6))))
        if rng.random() < 0.5:
            made.append("a")
        body = "\n".join(f"    {line}" for line in self.lines)
        end = f"    return ({', '.join(made)},)\n"
        return f"{_HEAD}def program(a, b, n, t):\n{body}\n{end}"


def generate(seed: int) -> tuple[str, set[str], int]:
    """Return the text of a program, its features, and how many axes it is for."""
    rng = random.Random(seed)
    rank = rng.choice((1, 2, 2, 3))
    made = Program.begun(rng, rank)
    for _ in range(rng.randint(2, 8)):
        grow(made, rng.choices(STEPS, WEIGHTS)[0])
    made.features.add(f"rank {rank}")
    if not made.lines:
        made.lines.append("a[1:] = b[1:]")
    return made.text(), made.features, rank


def grow(made: Program, step: Step) -> None:
    """Add the lines of a step, if NumPy takes them."""
    lines, feature = step(made)
    if not lines:
        return
    trial = {
        n: x.copy() if isinstance(x, np.ndarray) else x for n, x in made.space.items()
    }
    text = "\n".join(lines)
    try:
        with np.errstate(all="ignore"):
            exec(_HEAD, trial)  # noqa: S102 (programs are text)
            own = dict(made.space)
            exec(text, {"np": np, **{k: trial[k] for k in ("shifted", "halve")}}, own)  # noqa: S102
    except (ValueError, IndexError, TypeError, UnboundLocalError, NameError):
        return
    made.space = {n: x for n, x in own.items() if not n.startswith("_")}
    made.lines += lines
    made.features.add(feature)


def _name(made: Program, letter: str) -> str:
    made.count += 1
    return f"{letter}{made.count}"


def _key(rng: random.Random, ndim: int) -> str:
    parts = [rng.choice(_PARTS) for _ in range(rng.randint(1, ndim))]
    if rng.random() < 0.1:
        parts.insert(rng.randint(0, len(parts)), "...")
    if rng.random() < 0.05:
        parts.insert(0, "None")
    return ", ".join(parts)


def _any(made: Program) -> str:
    return made.rng.choice([n for n in made.arrays if n != "G"])


def _part(made: Program, name: str) -> str:
    return f"{name}[{_key(made.rng, made.space[name].ndim)}]"


def _shape(made: Program, text: str) -> tuple[int, ...] | None:
    try:
        return np.shape(eval(text, {"np": np}, dict(made.space)))
    except (IndexError, ValueError, TypeError):
        return None


def _value(made: Program, shape: tuple[int, ...], whole: str) -> str:
    """Return an expression that stretches to ``shape`` for any sizes."""
    rng = made.rng
    found = [str(rng.randint(-3, 3)), "t", f"{rng.randint(1, 5)}.0"]
    for _ in range(14):
        name = whole if rng.random() < 0.45 else _any(made)
        text = name if rng.random() < 0.2 else _part(made, name)
        own = _shape(made, text)
        if own is None or len(own) > len(shape):
            continue
        try:
            fits = np.broadcast_shapes(own, shape) == shape
        except ValueError:
            continue
        found += [text] * 4 if fits else []
    one, two, three = (rng.choice(found) for _ in range(3))
    forms = (
        one,
        f"{one} {rng.choice('+-')} {two}",
        f"0.5 * ({one} + {two})",
        f"{one} * 0.25 - {two}",
        f"np.where({one} > {two}, {two}, {three})",
        f"np.minimum({one}, {two}) + {three}",
        f"np.abs({one}) - {_any(made)}.sum() * 0.01",
        f"np.maximum({one}, -{two})",
    )
    return rng.choice(forms)


def _store(made: Program) -> str:
    """Return a line that assigns to a part, or an empty one."""
    rng = made.rng
    x = _any(made)
    if rng.random() < 0.2:
        return f"{x} {rng.choice(('+=', '-=', '*='))} {_small(made, x)}"
    target = _part(made, x)
    shape = _shape(made, target)
    if shape is None:
        return ""
    op = rng.choice(("=", "=", "=", "+=", "-="))
    return f"{target} {op} {_value(made, shape, x)}"


def _small(made: Program, x: str) -> str:
    shape = made.space[x].shape
    return made.rng.choice(("0.5", "t", f"0.5 * ({_value(made, shape, x)})"))


def _assign(made: Program) -> tuple[list[str], str]:
    line = _store(made)
    return [line] if line else [], "assign"


def _local(made: Program) -> tuple[list[str], str]:
    x = _any(made)
    forms = (
        f"np.zeros_like({x})",
        f"{x} * 0.5",
        f"{x}.copy()",
        f"np.ones({x}.shape)",
        f"np.nan_to_num(np.empty_like({x})) * 0",
        f"np.full({x}.shape, t)",
        f"{x}.T + 1",
    )
    return [f"{_name(made, 'z')} = {made.rng.choice(forms)}"], "local"


def _near(made: Program) -> tuple[list[str], str]:
    """Write parts of an array that nothing keeps; read what lies there, or beside."""
    rng, x = made.rng, _any(made)
    held = "_" + _name(made, "h")
    first = rng.choice((f"np.zeros_like({x})", f"{x} * 0.5", f"{x}.copy()"))
    lines = [f"{held} = {first}"]
    ndim = made.space[x].ndim

    def part() -> str:
        return ", ".join(rng.choice(_NEAR) for _ in range(rng.randint(1, ndim)))

    for _ in range(rng.randint(1, 3)):
        key = part()
        shape = _shape(made, f"{x}[{key}]")
        if shape is None:
            return [], "near"
        op = rng.choice(("=", "=", "+="))
        lines.append(f"{held}[{key}] {op} {_value(made, shape, x)}")
    own = rng.choice(("{} * 0.5", "{} + t", "{}.copy()", "{}.sum(axis=0)"))
    for _ in range(rng.randint(1, 2)):
        read = own.format(f"{held}[{part()}]")
        lines.append(f"{_name(made, 'y')} = {read}")
    return lines, "near"


def _view(made: Program) -> tuple[list[str], str]:
    rng, x = made.rng, _any(made)
    forms = (
        *(_part(made, x), f"{x}.T", f"{x}[::-1]", f"{x}[...]", f"{_part(made, x)}.T"),
        f"np.moveaxis({x}, 0, -1)",
    )
    return [f"{_name(made, 'v')} = {rng.choice(forms)}"], "view"


def _mask(made: Program) -> tuple[list[str], str]:
    """Assign under a mask, one value or those of the same mask."""
    rng, x = made.rng, _any(made)
    shape = made.space[x].shape
    others = [n for n in made.arrays if made.space[n].shape == shape]
    y = rng.choice(others)
    m = _name(made, "m")
    test = rng.choice((f"{y} > {rng.randint(-1, 2)}", f"{x} + {y} < 1", f"{x} == {y}"))
    if rng.random() < 0.3 and len(shape) > 1:
        test = f"{y}[..., 0] > t" if rng.random() < 0.5 else f"{y}[0] < 1"
        key = m if "..." in test else f"..., {m}"
        if "..." not in test:
            key = f":, {m}" if len(shape) == 2 else f"..., {m}"
    elif rng.random() < 0.3 and len(shape) > 2:  # beside an integer of the key
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
    forms = (
        f"{x}[{key}] = {rng.randint(-2, 2)}",
        f"{x}[{key}] = {x}[{key}] * 0.5 + {y}[{key}]",
        f"{x}[{key}] -= {y}[{key}]",
        f"{x}[{key}] *= t",
        f"{x}[{key}] = np.abs({y}[{key}]) - {x}[{key}].sum() * 0.1",
    )
    return [f"{m} = {test}", rng.choice(forms)], "mask"


def _fold(made: Program) -> tuple[list[str], str]:
    x = _any(made)
    how = made.rng.choice(("sum()", "mean()", "max(initial=-9)", "sum(axis=0)"))
    return [f"{_name(made, 's')} = {x}.{how}"], "fold"


def _element(made: Program) -> tuple[list[str], str]:
    rng, x = made.rng, _any(made)
    places = ", ".join(rng.choice(("0", "-1")) for _ in made.space[x].shape)
    name = _name(made, "e")
    return [f"{name} = {x}[{places}]", f"{x}[{places}] = t + {name}"], "element"


def _loop(made: Program) -> tuple[list[str], str]:
    """A loop of few turns, of a number that is open, or of very many."""
    rng = made.rng
    count = rng.choice(("3", "n", "n + 1", "70"))
    body = [line for line in (_store(made) for _ in range(rng.randint(1, 3))) if line]
    if not body:
        return [], "loop"
    if rng.random() < 0.4:
        x = _any(made)
        old = _name(made, "o")
        shape = made.space[x].shape
        made.space[old] = made.space[x].copy()
        body = [
            f"{old} = {x}.copy()",
            *body,
            f"{x}[...] = {old} * 0.5 + {_value(made, shape, x)}",
        ]
        del made.space[old]
    if rng.random() < 0.25:
        x = _any(made)
        body.append(f"{x}[{_name(made, 'k')[:0]}i % 2] = i * t")
    body.append(f"halve({_any(made)})")
    turns = f"for i in range({count}):"
    if rng.random() < 0.2:
        turns = f"for i in range({count}, 0, -1):"
    return [turns, *(f"    {line}" for line in body)], f"loop {count}"


def _while(made: Program) -> tuple[list[str], str]:
    x, line = _any(made), _store(made)
    if not line:
        return [], "while"
    k = _name(made, "w")
    body = [f"    {line}", f"    {x} *= 0.5", f"    {k} += 1"]
    return [f"{k} = 0", f"while np.abs({x}).sum() > 3 and {k} < 9:", *body], "while"


def _branch(made: Program) -> tuple[list[str], str]:
    x, one, two = _any(made), _store(made), _store(made)
    if not one or not two:
        return [], "branch"
    test = made.rng.choice((f"{x}.sum() > 1", "n > 2", f"{x}.max(initial=0) < t"))
    return [f"if {test}:", f"    {one}", "else:", f"    {two}"], "branch"


def _call(made: Program) -> tuple[list[str], str]:
    x = _any(made)
    target = x if made.rng.random() < 0.5 else _part(made, x)
    if not _shape(made, target):
        return [], "call"
    return [made.rng.choice((f"halve({target})", f"shifted({target}, t)"))], "call"


def _function(made: Program) -> tuple[list[str], str]:
    rng, x = made.rng, _any(made)
    value = _value(made, made.space[x].shape, x)
    forms = (
        f"np.copyto({x}, {value})",
        f"np.copyto({x}, {value}, where={x} > 0)",
        f"{x}.fill(t)",
        f"np.putmask({x}, {x} > 1, {rng.randint(-2, 2)})",
        f"np.add({x}, {value}, out={x})",
        f"np.add.at({x}, [0, -1, 0], t)",
    )
    return [rng.choice(forms)], "function"


def _outside(made: Program) -> tuple[list[str], str]:
    """Write into an array from outside."""
    x = _any(made)
    forms = (
        "G[0] += 1",
        "G[1:-1] = G[2:] + t",
        f"G[2] += {x}.sum() * 0.01",
        "G[::2] *= 0.5",
    )
    return [made.rng.choice(forms)], "outside"


def _swap(made: Program) -> tuple[list[str], str]:
    x = _any(made)
    key = made.rng.choice((("0", "-1"), ("::2", "::-2"), (":1", "-1:")))
    one, two = (f"{x}[{k}]" for k in key)
    copied = "" if made.space[x].ndim == 1 and key[0] == "0" else ".copy()"
    return [f"{one}, {two} = {two}{copied}, {one}{copied}"], "swap"


def _scatter(made: Program) -> tuple[list[str], str]:
    rng, x = made.rng, _any(made)
    listed = [rng.choice((0, -1)) for _ in range(3)]
    key, value = f"np.array({listed})", "t"
    if rng.random() < 0.3:  # so many that native loops obey the index
        count = rng.choice((9000, 17_000))
        key, value = f"np.repeat({listed}, {count})", f"np.arange({3 * count}) * t"
        if rng.random() < 0.5:
            key = f"np.tile({listed}, {count})"
        if made.space[x].ndim > 1:
            places = (rng.choice((0, -1)) for _ in made.space[x].shape[1:])
            key = f"{key}, {', '.join(map(str, places))}"
        if rng.random() < 0.5:
            verb = rng.choice(("add", "maximum", "minimum"))
            return [f"np.{verb}.at({x}, ({key}), {value})"], "scatter"
    return [f"{x}[{key}] {rng.choice(('=', '+='))} {value}"], "scatter"


def _product(made: Program) -> tuple[list[str], str]:
    """Multiply a matrix, mostly a computed one, with a row or a column."""
    rng = made.rng
    wide = [n for n in made.arrays if made.space[n].ndim > 1]
    if not wide:
        x = _any(made)
        return [f"{_name(made, 'p')} = {x} @ ({x} - t)"], "product"
    x = rng.choice(wide)
    place = (0,) * (made.space[x].ndim - 2)
    row = f"{x}[{', '.join(map(str, (*place, -1)))}]"
    column = f"{x}[{', '.join(map(str, (*place, ':', 0)))}]"
    matrix = rng.choice((x, f"({x} * 0.5 - t)", f"np.maximum({x}, t)"))
    forms = [
        f"{matrix} @ {row}",
        f"{matrix} @ ({row} + t)",
        f"({matrix} @ {row}[:, None])[..., 0]",
        f"{column} @ {matrix}",
        f"({column}[None] @ {matrix})[..., 0, :]",
    ]
    return [f"{_name(made, 'p')} = {rng.choice(forms)}"], "product"


def _failing(made: Program) -> tuple[list[str], str]:
    """Fail in the middle, where what came before must have been done."""
    x = _any(made)
    forms = (f"{x}[np.array([99])] = 1", f"np.add.at({x}, np.array([0, 77]), 1)")
    line = made.rng.choice(forms)
    made.lines.append(line)
    made.features.add("fails")
    return [], "fails"


STEPS = (
    *(_assign, _local, _view, _mask, _fold, _element, _loop, _while, _branch),
    *(_call, _function, _outside, _swap, _scatter, _failing, _product, _near),
)
WEIGHTS = (8, 3, 3, 4, 2, 2, 5, 1, 2, 2, 2, 2, 1, 1, 0.3, 2.5, 2.5)


def writing_steps() -> tuple[list[Step], list[float]]:
    """Return the steps that fail never, those that write first, and how often each."""
    first = [_assign, _element]
    pairs = dict(zip(STEPS, WEIGHTS, strict=True))
    rest = [s for s in STEPS if s not in first and s is not _failing]
    return [*first, *rest], [pairs[s] for s in (*first, *rest)]
