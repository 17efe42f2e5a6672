# SPDX-License-Identifier: Apache-2.0
"""A random program that grows line by line, while NumPy runs it."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from typing import TypeAlias

    Lines: TypeAlias = tuple[list[str], str]  # of a step, and its feature
    Step: TypeAlias = Callable[["Program"], Lines]

SHAPES = {
    1: ((7,), (33,), (6,), (100,), (9,), (1,), (0,)),
    2: ((6, 7), (5, 33), (17, 5), (6, 6), (9, 4), (64, 65), (4, 1), (0, 3), (70, 70)),
    3: ((4, 5, 6), (6, 6, 17), (7, 4, 5), (5, 9, 4), (9, 8, 8), (3, 1, 2), (5, 5, 5)),
    4: ((4, 5, 3, 6), (5, 4, 6, 3), (4, 4, 4, 4), (3, 6, 4, 9), (3, 1, 4, 3)),
}
_USUAL = {1: (33, 9), 2: (5, 33, 9, 4), 3: (9, 8, 8, 5, 9, 4), 4: (3, 6, 4, 9)}
"""Shapes of those, one after another, for which programs seldom fail."""
_MAY_FAIL = 0.06  # so often, nevertheless, of statements that do for such a shape

_PARTS = (
    *(":", "1:", ":-1", "1:-1", "::2", "1::2", "::-1", ":2", "0", "-1", "-2:"),
    *("::3", ":-2:2", "2::-1", ":1", ":3", "-1:"),
)
_HEAD = """\
from nfuser import lax


def shifted(x, by):
    x += by
    return x


def halve(x):
    x *= 0.5


def kept(x):
    y = x.copy()
    y[0] = 1
    return x


def once(x):
    y = x.copy()
    y[1:] += x[:-1]
    return y


def within(x):
    return x[1:-1]


def moved(x, k):
    before = x[k] * 1.0
    row = x[k]
    row += 1
    return row, before


def stepped(now, before):
    new = now.copy()
    new[1:-1] = 0.5 * (now[2:] + now[:-2]) - before[1:-1] * 0.25
    return new, now


def early(x, by):
    if by > 1:
        x[0] = by
        return x * 2
    elif by == 0:
        return x - 1
    x[-1] += by
    return x * 0.5


def sought(x, most):
    for k in range(3):
        if x[k].sum() > most:
            return x[k] * 0.5
        x[k] += 1
    return x[0] * most


class BOX:
    u = G

    def turn(by):
        BOX.u[1:-1] += 0.5 * (BOX.u[2:] - BOX.u[:-2]) + by


KEPT, CELLS = {"u": G}, [G]


"""


_HELPERS: dict[str, Any] = {"np": np, "G": np.ones(9)}
exec(_HEAD, _HELPERS)  # noqa: S102 (programs are text)


def _begun(shape: tuple[int, ...]) -> dict[str, Any]:
    """Return what a program is given, beside an array from outside."""
    x = np.arange(float(np.prod(shape))).reshape(shape) % 5 - 1
    return {"a": x.copy(), "b": x[::-1] * 2, "n": 3, "t": 0.5, "G": _HELPERS["G"]}


def _run(code: Any, space: dict[str, Any]) -> dict[str, Any] | None:
    """Return what names stand for after some lines; None where NumPy refuses them."""
    own = {**_HELPERS, **space}
    try:
        with np.errstate(all="ignore"):
            exec(code, own)  # noqa: S102
    except (
        ValueError,
        IndexError,
        TypeError,
        NameError,
        AttributeError,
        OverflowError,
    ):
        return None
    return {
        n: x
        for n, x in own.items()
        if not n.startswith("_") and (n == "G" or n not in _HELPERS)
    }


@dataclass
class Program:
    """The lines of a function, grown while NumPy runs them."""

    rng: random.Random
    rank: int
    lines: list[str] = field(default_factory=list)
    space: dict[str, Any] = field(default_factory=dict)
    features: set[str] = field(default_factory=set)
    count: int = 0
    others: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def begun(cls, rng: random.Random, rank: int) -> Program:
        """Return a program that does nothing yet."""
        sizes = _USUAL[rank]
        usual = (sizes[k : k + rank] for k in range(0, len(sizes), rank))
        space, *others = (_begun(shape) for shape in (SHAPES[rank][0], *usual))
        return cls(rng, rank, space=space, others=others)

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
        numbers = [n for n, x in self.space.items() if isinstance(x, np.generic)]
        made += rng.sample(numbers, min(len(numbers), 4))
        if rng.random() < 0.5:
            made.append("a")
        body = "\n".join(f"    {line}" for line in self.lines)
        end = f"    return ({', '.join(made)},)\n"
        return f"{_HEAD}def program(a, b, n, t):\n{body}\n{end}"

    def grow(self, step: Step) -> None:
        """Add the lines of a step, if NumPy takes them."""
        lines, feature = step(self)
        if not lines:
            return
        code = compile("\n".join(lines), "<step>", "exec")
        own = _run(code, self.space)
        others = [_run(code, space) for space in self.others]
        if own is None or (None in others and self.rng.random() > _MAY_FAIL):
            return
        self.space = own
        self.others = [space for space in others if space is not None]
        self.lines += lines
        self.features.add(feature)

    def takes(self, lines: list[str]) -> bool:
        """Tell whether NumPy takes some lines."""
        return _run(compile("\n".join(lines), "<step>", "exec"), self.space) is not None

    # -- words ---------------------------------------------------------------

    def name(self, letter: str) -> str:
        """Return a name of its own."""
        self.count += 1
        return f"{letter}{self.count}"

    def any(self) -> str:
        """Return the name of an array, but not of that from outside."""
        return self.rng.choice([n for n in self.arrays if n != "G"])

    def alike(self, name: str) -> str:
        """Return the name of an array of the same shape."""
        shape = self.space[name].shape
        return self.rng.choice([n for n in self.arrays if self.space[n].shape == shape])

    def part(self, name: str) -> str:
        """Return a view of an array by an index."""
        return f"{name}[{self.key(self.space[name].ndim)}]"

    def key(self, ndim: int) -> str:
        """Return a key of slices and integers."""
        rng = self.rng
        parts = [rng.choice(_PARTS) for _ in range(rng.randint(1, ndim))]
        if rng.random() < 0.1:
            parts.insert(rng.randint(0, len(parts)), "...")
        if rng.random() < 0.05:
            parts.insert(0, "None")
        return ", ".join(parts)

    def shape_of(self, text: str) -> tuple[int, ...] | None:
        """Return the shape of an expression; None where NumPy refuses it."""
        try:
            return np.shape(eval(text, {"np": np}, dict(self.space)))
        except (IndexError, ValueError, TypeError):
            return None

    def value(self, shape: tuple[int, ...], whole: str) -> str:
        """Return an expression that stretches to ``shape`` for any sizes."""
        rng = self.rng
        found = [str(rng.randint(-3, 3)), "t", f"{rng.randint(1, 5)}.0"]
        for _ in range(14):
            name = whole if rng.random() < 0.45 else self.any()
            text = name if rng.random() < 0.2 else self.part(name)
            own = self.shape_of(text)
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
            f"np.abs({one}) - {self.any()}.sum() * 0.01",
            f"np.maximum({one}, -{two})",
        )
        return rng.choice(forms)

    def store(self) -> str:
        """Return a line that assigns to a part, or an empty one."""
        rng = self.rng
        x = self.any()
        if rng.random() < 0.2:
            shape = self.space[x].shape
            small = rng.choice(("0.5", "t", f"0.5 * ({self.value(shape, x)})"))
            return f"{x} {rng.choice(('+=', '-=', '*='))} {small}"
        target = self.part(x)
        shape = self.shape_of(target)
        if shape is None:
            return ""
        op = rng.choice(("=", "=", "=", "+=", "-="))
        return f"{target} {op} {self.value(shape, x)}"
