# SPDX-License-Identifier: Apache-2.0
"""Integers that a program can spell: constants, sizes, run-time numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.fuzz.state import Draft

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fuzz.state import Node, State

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Number:
    """An integer as text, a ``$`` before each name, and what it is in each call."""

    text: str
    values: Sizes

    def __mul__(self, other: Number) -> Number:
        values = tuple(a * b for a, b in zip(self.values, other.values, strict=True))
        return Number(f"({self.text} * {other.text})", values)

    def __floordiv__(self, other: Number) -> Number:
        values = tuple(a // b for a, b in zip(self.values, other.values, strict=True))
        return Number(f"({self.text} // {other.text})", values)

    def __neg__(self) -> Number:
        return Number(f"-{self.text}", tuple(-n for n in self.values))


def drafted(text: str, dims: tuple[str, ...]) -> Draft:
    """Return a step whose names have a ``$`` before them."""
    uses = list(dict.fromkeys(re.findall(r"\$(\w+)", text)))
    numbered = re.sub(r"\$(\w+)", lambda m: f"{{{uses.index(m[1])}}}", text)
    return Draft(numbered, tuple(uses), dims)


def constant(s: State, value: int) -> Number:
    """Return a literal."""
    return Number(str(value), (value,) * len(s.calls))


def extent(s: State, x: Node, axis: int) -> Number:
    """Return the size of an axis."""
    return Number(f"${x.name}.shape[{axis}]", s.sizes(x.dims[axis]))


def scalars(s: State) -> list[Number]:
    """Return the run-time integers."""
    return [
        Number(f"${name}", tuple(int(call.number(name)) for call in s.calls))
        for name, kind in s.scalars.items()
        if kind is int
    ]


def sizes_near(s: State) -> list[Number]:
    """Return run-time integers and the sizes of a few arrays."""
    found = scalars(s)
    for x in s.pool[-6:]:
        found += [extent(s, x, axis) for axis in range(len(x.dims))]
    return found


def some(
    s: State, wanted: Callable[[int, int], bool], literals: Sizes
) -> Number | None:
    """Return a number with ``wanted(value, k)`` for every call ``k``."""
    found = [constant(s, n) for n in literals]
    if s.chance(0.65):
        found = sizes_near(s) if s.chance(0.5) else scalars(s)
        found += [-n for n in found]
    fitting = [n for n in found if all(wanted(v, k) for k, v in enumerate(n.values))]
    return s.choose(fitting) if fitting else None


def part_of(s: State, size: Number) -> Number:
    """Return a number between 0 and ``size``: a half, a constant, another size."""
    found = some(s, lambda v, k: 0 <= v <= size.values[k], (0, 1, 2, 3))
    if found is None or s.chance(0.4):
        return size // constant(s, s.choose((2, 2, 3)))
    return found
