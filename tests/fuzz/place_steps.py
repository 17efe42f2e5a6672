# SPDX-License-Identifier: Apache-2.0
"""Statements of random programs that write by index arrays, and by way of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fuzz.growing import Lines, Program


def _index(made: Program, x: str, axis: int) -> str:
    """Return an index array that is right for an axis of any size but 0."""
    rng, size = made.rng, f"{x}.shape[{axis}]"
    listed = [rng.choice((0, -1)) for _ in range(3)]
    forms = (
        *(f"np.array({listed})", f"np.array({listed})", f"np.arange({size}) // 2"),
        *(
            f"np.arange({size})[::-1]",
            f"np.arange({size}) - 1",
            f"-np.arange({size}) // 2",
        ),
    )
    return rng.choice(forms)


def _key(made: Program, x: str, whole: str = ":") -> str:
    """Return a key with an index array, or with two; ``whole`` is of other axes."""
    rng, ndim = made.rng, made.space[x].ndim
    axis = rng.randrange(ndim)
    lead = [whole] * axis
    one = _index(made, x, axis)
    if axis + 1 < ndim and rng.random() < 0.5:
        listed = one if one.startswith("np.array") else "np.array([-1, 0, 0])"
        return ", ".join([*lead, listed, "np.array([0, -1, 0])"])
    if axis and rng.random() < 0.2:
        return ", ".join(["0", *lead[1:], one])
    return ", ".join([*lead, one])


def scatter(made: Program) -> Lines:
    """Write where an index array says: one value, values, or parts of an array."""
    rng, x = made.rng, made.any()
    if rng.random() < 0.3:
        return _many(made, x), "scatter"
    key = _key(made, x, "slice(None)")
    shape = made.shape_of(f"{x}[{key}]")
    if shape is None:
        return [], "scatter"
    value = made.value(shape, x) if rng.random() < 0.7 else "t"
    if len(shape) > 1 and rng.random() < 0.3:  # one for all along some axis
        y = made.any()
        values = (f"{y}[:3, ..., :1]", f"{y}[..., :1]", f"{y}[:1]", f"{x}[:3, :1]")
        values = (*values, f"{y}[:3, 0][:, None]", "np.arange(3.0)[:, None] * t")
        own = rng.choice(values)
        value = own if made.shape_of(f"{x}[{key}] + {own}") == shape else value
    elif made.shape_of(x) == shape and rng.random() < 0.5:
        value = rng.choice((x, made.alike(x), f"{x}[::-1]"))
    if rng.random() < 0.5:
        verb = rng.choice(("add", "subtract", "maximum", "minimum"))
        return [f"np.{verb}.at({x}, ({key}), {value})"], "scatter"
    return [f"{x}[{key}] {rng.choice(('=', '+='))} {value}"], "scatter"


def _many(made: Program, x: str) -> list[str]:
    """Write so many values that native loops obey the index."""
    rng = made.rng
    listed = [rng.choice((0, -1)) for _ in range(3)]
    count = rng.choice((9000, 17_000))
    key, value = f"np.repeat({listed}, {count})", f"np.arange({3 * count}) * t"
    if rng.random() < 0.5:
        key = f"np.tile({listed}, {count})"
    if made.space[x].ndim > 1:
        places = (rng.choice((0, -1)) for _ in made.space[x].shape[1:])
        key = f"{key}, {', '.join(map(str, places))}"
    if rng.random() < 0.5:
        verb = rng.choice(("add", "maximum", "minimum"))
        return [f"np.{verb}.at({x}, ({key}), {value})"]
    return [f"{x}[{key}] {rng.choice(('=', '+='))} {value}"]


def gather(made: Program) -> Lines:
    """Read where an index array says."""
    rng, x = made.rng, made.any()
    forms = ("{}[{}]", "{}[{}] * 0.5 + t", "{}[{}].copy()", "{}[{}].sum(axis=0)")
    read = rng.choice(forms).format(x, _key(made, x))
    if rng.random() < 0.2:
        axis = rng.randrange(made.space[x].ndim)
        read = f"np.take({x}, {_index(made, x, axis)}, axis={axis}) + t"
    return [f"{made.name('g')} = {read}"], "gather"


def product(made: Program) -> Lines:
    """Multiply matrices, computed or not: with a row, a column, or each other."""
    rng = made.rng
    wide = [n for n in made.arrays if made.space[n].ndim > 1]
    if not wide:
        x = made.any()
        return [f"{made.name('p')} = {x} @ ({x} - t)"], "product"
    x = rng.choice(wide)
    y = made.alike(x)
    place = (0,) * (made.space[x].ndim - 2)
    row = f"{x}[{', '.join(map(str, (*place, -1)))}]"
    column = f"{x}[{', '.join(map(str, (*place, ':', 0)))}]"
    matrix = rng.choice((x, f"({x} * 0.5 - t)", f"np.maximum({x}, t)"))
    forms = [
        f"{matrix} @ {row}",
        f"{matrix} @ ({row} + t)",
        f"({matrix} @ {row}[:, None])[..., 0]",
        f"{column} @ {matrix}",
        f"({column} - t) @ {matrix}",
        f"{x}.swapaxes(-1, -2) @ {column}",
        f"({column}[None] @ {matrix})[..., 0, :]",
        f"{x} @ {y}.swapaxes(-1, -2)",
        f"{x}.swapaxes(-1, -2) @ {y}",
    ]
    if rng.random() < 0.2:  # values that nothing reads any more make room for others
        square, held = f"{x} @ {y}.swapaxes(-1, -2)", "_s"
        lines = [f"{held} = {square}"]
        lines += [f"{held} = np.clip({held} - t, -1, 1) @ ({square})"] * rng.choice(
            (2, 3, 4)
        )
        return [*lines, f"{made.name('p')} = {held} * 0.5"], "product"
    return [f"{made.name('p')} = {rng.choice(forms)}"], "product"


def alike(made: Program) -> Lines:
    """Compute the same of arrays of different sizes."""
    rng, x = made.rng, made.any()
    forms = ("{0} * {0}[..., :1]", "{0} * 0.5", "np.abs({0}) + t", "{0} - {0}[:1]")
    form = rng.choice(forms)
    parts = [x, f"{x}[1:]", f"{x}[::2]", f"{x}[..., 1:]", f"{made.any()}[:-2]"]
    chosen = rng.sample(parts, rng.randint(2, 3))
    return [f"{made.name('y')} = {form.format(part)}" for part in chosen], "alike"


def between(made: Program) -> Lines:
    """Change an array by way of one that was computed of it, read here and there."""
    rng, x = made.rng, made.any()
    y, held = made.alike(x), f"_{made.name('u')}"
    first = rng.choice((f"{x} * 0.5", f"{x} * 0.5 + {y}", f"{x} - t", f"{x}[0] * 0.5"))
    turned = rng.choice((f"{held}[::-1]", f"{held}[..., ::-1]", f"{held}.T", held))
    forms = (
        f"{x}[...] = {turned} + {held}",
        f"{x}[...] = {held} - {turned} * 0.5",
        f"{x}[1:] = {x}[:-1] + {held}[1:]",
        f"{x}[1:] = {held}[:-1] - {held}[1:]",
        f"{x}[...] = {held} - {x}.sum(axis=0) * 0.01",
        f"{x}[::-1] = {held}",
    )
    lines = [f"{held} = {first}", rng.choice(forms)]
    if rng.random() < 0.5:
        lines.append(f"{made.name('y')} = {held} + {rng.choice((x, f'{x}[::-1]'))}")
    return lines, "between"


def doubled(made: Program) -> Lines:
    """Fill an array of twice the rows by halves, or by turns, and read it so."""
    rng, x = made.rng, made.any()
    y, held = made.alike(x), f"_{made.name('w')}"
    size = f"{x}.shape[0]"
    keys = ("::2", "1::2", f":{size}", f"{size}:")
    begin = (
        f"np.zeros((2 * {size},) + {x}.shape[1:])",
        f"np.concatenate(({x}, {y}))",
        f"np.repeat({y}, 2, axis=0)",
    )
    lines = [f"{held} = {rng.choice(begin)}"]
    for _ in range(rng.randint(1, 2)):
        value = rng.choice((x, y, f"{x} * 0.5", f"{y} - {x}", f"{held}[::2] + t"))
        lines.append(f"{held}[{rng.choice(keys)}] = {value}")
    for _ in range(rng.randint(1, 2)):
        own = rng.choice(("{} * 0.5", "{} + t", "{}.copy()"))
        lines.append(f"{made.name('y')} = {own.format(f'{held}[{rng.choice(keys)}]')}")
    return lines, "doubled"


def failing(made: Program) -> Lines:
    """Fail in the middle, where what came before must have been done."""
    x = made.any()
    forms = (
        f"{x}[np.array([99])] = 1",
        f"np.add.at({x}, np.array([0, 777]), 1)",
        f"{x}[np.arange({x}.shape[0] + 1)] = t",
        f"{x}[np.arange({x}.shape[0]) - {x}.shape[0] - 1] = t",
        f"{x}[0] += np.bincount(np.arange({x}.size) % 4 - 1)[0]",
        f"{x}[0] += np.bincount(np.array([0, 2, -n]), minlength=5)[0]",
        f"np.put({x}, [{x}.size, 0], t)",
    )
    made.lines.append(made.rng.choice(forms))
    made.features.add("fails")
    return [], "fails"
