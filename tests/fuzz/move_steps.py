# SPDX-License-Identifier: Apache-2.0
"""Drafts of steps that put elements elsewhere, alone and with a residual use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.fuzz.numbers import (
    Number,
    constant,
    drafted,
    extent,
    part_of,
    scalars,
    some,
)
from tests.fuzz.reshape_steps import reshape

if TYPE_CHECKING:
    from tests.fuzz.state import Draft, Node, State

_MOST_RANK = 6


def _axis(s: State, x: Node) -> int:
    return int(s.rng.integers(0, len(x.dims)))


def _either(s: State, axis: int, x: Node) -> int:
    """Count an axis from the end, now and then."""
    return axis - len(x.dims) if s.chance(0.3) else axis


def _resized(s: State, x: Node, axis: int, sizes: tuple[int, ...]) -> tuple[str, ...]:
    return (*x.dims[:axis], s.dim(sizes), *x.dims[axis + 1 :])


def _with_axes(s: State) -> Node | None:
    return s.pick(lambda node: bool(node.dims))


def cut(s: State) -> Draft | None:
    """Slice one or two axes, from and to a size, a number, a half."""
    x = _with_axes(s)
    if x is None:
        return None
    texts = [":"] * len(x.dims)
    dims: list[str] = list(x.dims)
    for _ in range(int(s.choose((1, 1, 2)))):
        axis = _axis(s, x)
        size = s.sizes(x.dims[axis])
        first, last = _bound(s, extent(s, x, axis)), _bound(s, extent(s, x, axis))
        step = int(s.choose((1, 1, 1, 1, 2, 3, -1, -2)))
        ranges = [
            range(*slice(a, b, step).indices(n))
            for a, b, n in zip(_values(s, first), _values(s, last), size, strict=True)
        ]
        if not any(map(len, ranges)) and s.chance(0.9):
            continue
        dims[axis] = s.dim(tuple(map(len, ranges)))
        shown = "" if step == 1 else f":{step}"
        texts[axis] = f"{_text(first)}:{_text(last)}{shown}"
    if all(text == ":" for text in texts):
        return None
    if len(texts) > 1 and set(texts[:-1]) == {":"} and s.chance(0.6):
        texts = ["...", texts[-1]]
    return drafted(f"${x.name}[{', '.join(texts)}]", tuple(dims))


def _values(s: State, bound: Number | None) -> tuple[int | None, ...]:
    return (None,) * len(s.calls) if bound is None else bound.values


def _text(bound: Number | None) -> str:
    return "" if bound is None else bound.text


def _bound(s: State, size: Number) -> Number | None:
    if s.chance(0.35):
        return None
    if s.chance(0.5):
        return part_of(s, size)
    return some(s, lambda v, k: abs(v) <= 2 * size.values[k], (0, 1, 2, 3, 5, -1, -2))


def pick_one(s: State) -> Draft | None:
    """Index an axis with an integer."""
    x = _with_axes(s)
    if x is None:
        return None
    axis = _axis(s, x)
    size = s.sizes(x.dims[axis])
    index = some(s, lambda v, k: -size[k] <= v < size[k], (0, -1, 1, 2))
    if index is None:
        return None
    places = [":"] * axis + [index.text]
    dims = x.dims[:axis] + x.dims[axis + 1 :]
    return drafted(f"${x.name}[{', '.join(places)}]", dims)


_FILLS = {
    "float": ("1.0", "-0.5", "np.nan", "3"),
    "int": ("1", "7"),
    "bool": ("True",),
    "complex": ("2.0", "0.5"),
}


def pad(s: State) -> Draft | None:
    """Add elements at the ends of axes, or drop some."""
    x = _with_axes(s)
    if x is None:
        return None
    zero = constant(s, 0)
    pairs = [(zero, zero)] * len(x.dims)
    dims = list(x.dims)
    for _ in range(int(s.choose((1, 1, 2)))):
        axis = _axis(s, x)
        size = s.sizes(x.dims[axis])
        pair = (_width(s, size), _width(s, size))
        sums = [sum(v) for v in zip(size, *(w.values for w in pair), strict=True)]
        if min(sums) < 0 or max(sums) > 3 * max(size) + 8:
            continue
        pairs[axis] = pair
        dims[axis] = s.dim(tuple(sums))
    every = [w for pair in pairs for w in pair]
    if all(set(w.values) == {0} for w in every):
        return None
    drops = any(min(w.values) < 0 for w in every)
    spelled = ", ".join(f"({a.text}, {b.text})" for a, b in pairs)
    fill = f", constant_values={s.choose(_FILLS[x.kind])}" if s.chance(0.4) else ""
    text = f"{'xp' if drops else 'np'}.pad(${x.name}, ({spelled},){fill})"
    return drafted(text, tuple(dims))


def _width(s: State, size: tuple[int, ...]) -> Number:
    least = -1 if s.chance(0.25) else 0
    found = some(
        s, lambda v, k: least * size[k] <= v <= 2 * size[k] + 3, (0, 0, 1, 2, 3, -1, -2)
    )
    return constant(s, 0) if found is None else found


def _agree(s: State, x: Node, y: Node, axis: int) -> bool:
    """Tell whether all axes but one have the same sizes."""
    return len(x.dims) == len(y.dims) and all(
        k == axis or s.sizes(a) == s.sizes(b)
        for k, (a, b) in enumerate(zip(x.dims, y.dims, strict=True))
    )


def join(s: State) -> Draft | None:
    """Put arrays one after another."""
    x = _with_axes(s)
    if x is None:
        return None
    axis = _axis(s, x)
    found = [y for y in s.pool if _agree(s, x, y, axis)]
    parts: list[str] = [x.name]
    sizes = s.sizes(x.dims[axis])
    for _ in range(int(s.choose((1, 1, 2, 3)))):
        y = s.choose(found)
        parts.append(y.name)
        sizes = tuple(map(sum, zip(sizes, s.sizes(y.dims[axis]), strict=True)))
    parts = [parts[int(k)] for k in s.rng.permutation(len(parts))]
    listed = ", ".join(f"${name}" if s.chance(0.8) else f"-${name}" for name in parts)
    if any(y.kind == "bool" for y in found):
        listed = ", ".join(f"${name}" for name in parts)
    name = s.choose(("np.concatenate", "np.concatenate", "xp.concat"))
    text = f"{name}([{listed}], axis={_either(s, axis, x)})"
    return drafted(text, _resized(s, x, axis, sizes))


def stack(s: State) -> Draft | None:
    """Put arrays side by side along a new axis."""
    x = s.pick(lambda node: len(node.dims) < _MOST_RANK)
    if x is None:
        return None
    shape = tuple(map(s.sizes, x.dims))
    found = [y for y in s.pool if tuple(map(s.sizes, y.dims)) == shape]
    parts: list[str] = [s.choose(found).name for _ in range(int(s.choose((1, 1, 2))))]
    place = int(s.rng.integers(0, len(x.dims) + 1))
    listed = ", ".join(f"${name}" for name in [*parts, x.name])
    size = s.dim((len(parts) + 1,) * len(s.calls))
    dims = (*x.dims[:place], size, *x.dims[place:])
    return drafted(f"np.stack([{listed}], axis={place})", dims)


def roll(s: State) -> Draft | None:
    """Roll along an axis, two axes, or all elements."""
    x = _with_axes(s)
    if x is None:
        return None
    shift = _shift(s, x)
    if s.chance(0.15):
        return drafted(f"np.roll(${x.name}, {shift})", x.dims)
    axis = _axis(s, x)
    if s.chance(0.15):
        shifts = f"({shift}, {_shift(s, x)})"
        text = f"np.roll(${x.name}, {shifts}, axis=({axis}, {_axis(s, x)}))"
        return drafted(text, x.dims)
    text = f"np.roll(${x.name}, {shift}, axis={_either(s, axis, x)})"
    return drafted(text, x.dims)


def _shift(s: State, x: Node) -> str:
    if s.chance(0.3):
        return part_of(s, extent(s, x, _axis(s, x))).text
    found = some(s, lambda v, k: True, (1, 2, 3, -1, -5, 0, 100))
    return "1" if found is None else found.text


def multiply(s: State) -> Draft | None:
    """Repeat elements, or lay copies side by side."""
    x = _with_axes(s)
    if x is None:
        return None
    found = some(s, lambda v, k: 0 <= v <= 4, (1, 2, 2, 3, 0 if s.chance(0.1) else 2))
    if found is None:
        return None
    axis = _axis(s, x)
    sizes = (extent(s, x, axis) * found).values
    if s.chance(0.5):
        text = f"np.repeat(${x.name}, {found.text}, axis={_either(s, axis, x)})"
        return drafted(text, _resized(s, x, axis, sizes))
    counts = ["1"] * len(x.dims)
    counts[axis] = found.text
    counts = counts[axis:] if s.chance(0.5) else counts
    text = f"np.tile(${x.name}, ({', '.join(counts)},))"
    return drafted(text, _resized(s, x, axis, sizes))


def take(s: State) -> Draft | None:
    """Gather along an axis with integers that are computed or listed."""
    x = _with_axes(s)
    if x is None:
        return None
    axis = _axis(s, x)
    size = s.sizes(x.dims[axis])
    indices = [y for y in s.pool if y.kind == "int" and len(y.dims) <= 2]
    if 0 in size or not indices:
        return None
    y = s.choose(indices)
    within = f"${y.name}.astype(np.int64) % ${x.name}.shape[{axis}]"
    if s.chance(0.4):
        within = f"({within}) - ${x.name}.shape[{axis}]"
    if _agree(s, x, y, axis) and s.chance(0.7):
        text = f"np.take_along_axis(${x.name}, {within}, axis={axis})"
        return drafted(text, _resized(s, x, axis, s.sizes(y.dims[axis])))
    dims = (*x.dims[:axis], *y.dims, *x.dims[axis + 1 :])
    if len(dims) > _MOST_RANK:
        return None
    text = f"np.take(${x.name}, {within}, axis={_either(s, axis, x)})"
    return drafted(text, dims)


def spread(s: State) -> Draft | None:
    """Stretch to a new first axis, or a 1 to a size."""
    x = s.pick(lambda node: len(node.dims) < _MOST_RANK)
    if x is None:
        return None
    size = some(s, lambda v, k: 0 <= v <= 20, (1, 2, 3, 5))
    if size is None:
        return None
    shape = [f"${x.name}.shape[{k}]" for k in range(len(x.dims))]
    ones = [k for k, d in enumerate(x.dims) if d == "1"]
    dims = list(x.dims)
    if ones and s.chance(0.6):
        place = s.choose(ones)
        shape[place], dims[place] = size.text, s.dim(size.values)
    else:
        shape, dims = [size.text, *shape], [s.dim(size.values), *dims]
    text = f"np.broadcast_to(${x.name}, ({', '.join(shape)},))"
    return drafted(text, tuple(dims))


def residual(s: State) -> Draft | None:
    """Read an array in place and elsewhere, as rotations and stencils do."""
    x = s.pick(lambda node: bool(node.dims) and node.kind in ("float", "int"))
    if x is None:
        return None
    axis = _axis(s, x)
    size = extent(s, x, axis)
    name, lead = f"${x.name}", ":, " * axis
    k = part_of(s, size).text
    turned = f"np.concatenate(({name}[{lead}{k}:], {name}[{lead}:{k}]), axis={axis})"
    against = f"np.concatenate((-{name}[{lead}{k}:], {name}[{lead}:{k}]), axis={axis})"
    texts = [
        f"{name} + {turned}",
        f"{name} * 0.5 + {against} * 2",
        f"{name} - np.roll({name}, {k}, axis={axis})",
    ]
    if (after := _shifted(s, x, axis)) is not None:
        texts += [f"{name} + {after}", f"{name} - {after}"]
    factors = [y for y in s.pool if y.dims == x.dims and y.kind in ("float", "int")]
    y, z = s.choose(factors).name, s.choose(factors).name
    texts += [f"{name} * ${y} + {against} * ${z}"]
    return drafted(s.choose(texts), x.dims)


def _shifted(s: State, x: Node, axis: int) -> str | None:
    """Return ``x`` moved along an axis with zeros coming in."""
    amounts = [constant(s, 1), constant(s, 2), constant(s, -1), *scalars(s)]
    size = s.sizes(x.dims[axis])
    amounts = [
        a
        for a in amounts
        if all(abs(v) <= n + 2 for v, n in zip(a.values, size, strict=True))
    ]
    if not amounts:
        return None
    by = s.choose(amounts).text
    pairs = ["(0, 0)"] * len(x.dims)
    pairs[axis] = f"({by}, -{by})" if s.chance(0.5) else f"(-{by}, {by})"
    pairs[axis] = pairs[axis].replace("--", "")
    return f"xp.pad(${x.name}, ({', '.join(pairs)},))"


def misfit(s: State) -> Draft | None:
    """Ask for a movement that NumPy refuses in some calls, and perhaps not in all."""
    x, y = _with_axes(s), _with_axes(s)
    if x is None or y is None:
        return None
    axis = _axis(s, x)
    texts = (
        f"${x.name}.reshape(${y.name}.shape)",
        f"${x.name}.reshape(${x.name}.shape[0] + 1, -1)",
        f"${x.name}.reshape(-1, ${y.name}.shape[0])",
        f"np.squeeze(${x.name}, axis={axis})",
        f"np.concatenate((${x.name}, ${y.name}), axis={axis})",
        f"np.broadcast_to(${x.name}, ${y.name}.shape)",
    )
    made = drafted(s.choose(texts), ())
    return type(made)(made.text, made.uses, (), raises=True)


_MOVES: tuple[Any, ...] = (
    *(reshape, reshape, cut, pad, join, stack, roll),
    *(multiply, take, spread, residual, pick_one),
)


def movement(s: State) -> Draft | None:
    """Put elements elsewhere."""
    return s.choose(_MOVES)(s)
