# SPDX-License-Identifier: Apache-2.0
"""Drafts of reshapes: axes that merge, split, both; through ones; with -1."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from tests.fuzz.numbers import (
    Number,
    Sizes,
    constant,
    drafted,
    extent,
    scalars,
    sizes_near,
)

if TYPE_CHECKING:
    from tests.fuzz.state import Draft, Node, State

_MOST_RANK = 6


def reshape(s: State) -> Draft | None:
    """Give the elements other axes."""
    x = s.pick()
    if x is None:
        return None
    if s.chance(0.12):
        return _flat(s, x)
    if s.chance(0.2) and (made := _as_another(s, x)):
        return made
    axes = [extent(s, x, k) for k in range(len(x.dims))]
    for _ in range(int(s.rng.integers(1, 4))):
        axes = s.choose((_merged, _merged, _split, _split, _split, _ones))(s, axes)
    if len(axes) > _MOST_RANK:
        return None
    dims = tuple(s.dim(axis.values) for axis in axes)
    return drafted(_spelled(s, x, _inferred(s, axes)), dims)


def _total(s: State, x: Node) -> Sizes:
    return tuple(map(prod, zip(*map(s.sizes, x.dims), strict=True)))


def _flat(s: State, x: Node) -> Draft | None:
    if not x.dims:
        return None
    texts = ("${}.reshape(-1)", "np.ravel(${})", "${}.ravel()", "np.reshape(${}, -1)")
    return drafted(s.choose(texts).format(x.name), (s.dim(_total(s, x)),))


def _as_another(s: State, x: Node) -> Draft | None:
    def fits(y: Node) -> bool:
        same = bool(x.dims and y.dims) and _total(s, x) == _total(s, y)
        return same and x.dims != y.dims

    y = s.pick(fits)
    if y is None:
        return None
    texts = ("${0}.reshape(${1}.shape)", "np.reshape(${0}, ${1}.shape)")
    return drafted(s.choose(texts).format(x.name, y.name), y.dims)


def _merged(s: State, axes: list[Number]) -> list[Number]:
    if len(axes) < 2:
        return axes
    first = int(s.rng.integers(0, len(axes) - 1))
    last = min(len(axes), first + int(s.choose((2, 2, 2, 3, 6))))
    whole = axes[first]
    for axis in axes[first + 1 : last]:
        whole = whole * axis
    return [*axes[:first], whole, *axes[last:]]


def _split(s: State, axes: list[Number]) -> list[Number]:
    if not axes:
        return [constant(s, 1)]
    place = int(s.rng.integers(0, len(axes)))
    parts = _factors(s, axes[place])
    if parts is None:
        return axes
    first, second = parts if s.chance(0.5) else parts[::-1]
    return [*axes[:place], first, second, *axes[place + 1 :]]


def _factors(s: State, whole: Number) -> tuple[Number, Number] | None:
    """Return two numbers whose product is ``whole`` in every call."""
    found = [n for n in sizes_near(s) if set(n.values) != {1}]
    found += [constant(s, n) for n in (2, 2, 3, 4, 5, 8)]
    pairs = [
        (a, b)
        for a in found
        for b in found
        if (a * b).values == whole.values and a.text != b.text
    ]
    if pairs and s.chance(0.6):
        return s.choose(pairs)
    divisors = [
        n
        for n in found
        if min(n.values) > 0 and ((whole // n) * n).values == whole.values
    ]
    if not divisors:
        return None
    chosen = s.choose(divisors)
    return chosen, whole // chosen


def _ones(s: State, axes: list[Number]) -> list[Number]:
    if s.chance(0.4):
        kept = [axis for axis in axes if set(axis.values) != {1}]
        return kept if s.chance(0.8) else axes
    place = int(s.rng.integers(0, len(axes) + 1))
    return [*axes[:place], constant(s, 1), *axes[place:]]


def _inferred(s: State, axes: list[Number]) -> list[Number]:
    """Spell a size -1, or as a run-time number that is -1 or right."""
    if not axes or s.chance(0.35):
        return axes
    place = int(s.rng.integers(0, len(axes)))
    size = axes[place].values
    rest = [
        prod(axis.values[k] for axis in [*axes[:place], *axes[place + 1 :]])
        for k in range(len(size))
    ]
    spelled = [
        n
        for n in (*scalars(s), constant(s, -1))
        if all(
            v in (m, -1) and (r or v == m)
            for v, m, r in zip(n.values, size, rest, strict=True)
        )
    ]
    if not spelled:
        return axes
    chosen = spelled[0] if s.chance(0.6) else spelled[-1]
    return [*axes[:place], chosen, *axes[place + 1 :]]


def _spelled(s: State, x: Node, axes: list[Number]) -> str:
    texts = [axis.text.removeprefix("(").removesuffix(")") for axis in axes]
    texts = [
        t if t.count("(") == t.count(")") and "(" not in t else axis.text
        for t, axis in zip(texts, axes, strict=True)
    ]
    texts = [_as_literal(s, t, axis) for t, axis in zip(texts, axes, strict=True)]
    shape = ", ".join(texts)
    if texts and s.chance(0.5):
        return f"${x.name}.reshape({shape})"
    shape = f"({shape},)" if len(texts) == 1 else f"({shape})"
    return f"{s.choose(('np', 'np', 'xp'))}.reshape(${x.name}, {shape})"


def _as_literal(s: State, text: str, axis: Number) -> str:
    """Write a size that is the same in all calls as a literal, now and then."""
    alike = len(set(axis.values)) == 1
    return str(axis.values[0]) if alike and s.chance(0.4) else text
