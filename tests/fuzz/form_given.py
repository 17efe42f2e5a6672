# SPDX-License-Identifier: Apache-2.0
"""What form programs are called with: sizes, dtypes, places in memory, overlaps.

The first calls are alike but for their values, so that later ones are served
natively; each of the others differs from them in one thing or two.
"""

# Arrays of any dtype have no static type.
# pyright: basic

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.fuzz.given import LAYOUTS

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator

_SIZES = (
    (1, 6),
    (5, 1),
    (3, 8),
    (7, 2),
    (6, 6),
    (4, 17),
    (40, 3),
    (0, 3),
    (4, 0),
    (2, 3),
)
_DTYPES = ("f4", "i8", "c16", "i4", "i1", "u1", "f2", "?", "i2", "c8", "u4")
_ODD = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1e30)
_ODD_T = (float("nan"), np.inf, 1, np.array(0.75))
_FIRST = (5, 7)
GIVEN: dict[str, Any] = {
    "A": np.arange(35.0).reshape(_FIRST) % 11 - 4,
    "B": np.arange(35.0).reshape(_FIRST) % 13 - 5,
    "X": np.arange(7.0) - 2.5,
    "Y": np.arange(5.0) * 1.5 - 2,
    "P": np.array([1, 0, 2, 1]),
    "M": np.arange(35).reshape(_FIRST) % 3 == 0,
    "D": {"u": np.arange(7.0) - 3, "v": np.arange(7.0) * 2, "n": 2},
    "L": [np.arange(7.0) + 1, 1.5, np.arange(3.0)],
    "K": 2,
    "T": 0.5,
}
_OVERLAPS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "b is a": lambda v: {"b": v["a"]},
    "b is a part of a, shifted": lambda v: {"a": v["a"][:-1], "b": v["a"][1:]},
    "a is a part of b, shifted": lambda v: {"a": v["a"][1:], "b": v["a"][:-1]},
    "b is a backwards": lambda v: {"b": v["a"][::-1]},
    "b is a beside a": lambda v: {"a": v["a"][:, :-1], "b": v["a"][:, 1:]},
    "between each other": lambda v: {"a": v["a"][::2], "b": v["a"][1::2]},
    "halves": lambda v: {
        "a": v["a"][: len(v["a"]) // 2],
        "b": v["a"][len(v["a"]) // 2 :],
    },
    "x is a row of a": lambda v: {"x": v["a"][0]},
    "x is the last row of a": lambda v: {"x": v["a"][-1]},
    "y is a column of a": lambda v: {"y": v["a"][:, 0]},
    "y is the last column of a": lambda v: {"y": v["a"][:, -1]},
    "x is a row of b": lambda v: {"x": v["b"][0]},
}


@dataclass
class Call:
    """Arguments of one call: what is held, and how it is seen."""

    names: list[str]
    values: dict[str, Any]
    views: dict[str, Callable[[Any], Any]]
    overlap: str | None = None
    about: str = ""
    is_wide: bool = False  # whether singles are among them
    may_read_beyond: bool = False

    def copies(self) -> tuple[list[Any], list[Any]]:
        """Return arrays that hold, and arguments; nobody has written into them."""
        held = {
            k: x.copy("K") if isinstance(x, np.ndarray) else copy.deepcopy(x)
            for k, x in self.values.items()
        }
        seen = {k: self.views.get(k, _same)(x) for k, x in held.items()}
        if self.overlap is not None:
            seen |= _OVERLAPS[self.overlap](seen)
        arrays = [x for x in held.values() if isinstance(x, np.ndarray)]
        return arrays, [seen[k] for k in self.names]


def _same(x: Any) -> Any:
    return x


def _numbers(rng: random.Random, shape: tuple[int, ...], dtype: str, how: str) -> Any:
    """Return different numbers, or such as stand there more than once, or odd ones."""
    drawn = np.random.RandomState(rng.getrandbits(32))
    count = int(np.prod(shape))
    x: Any = drawn.permutation(count) - count // 3 + 0.0
    if dtype in ("f8", "f4", "f2", "c16", "c8"):
        x = x / 4 + 0.125
    if how == "alike":
        x = drawn.randint(-2, 3, count) * 1.0
        x[x == 0] *= drawn.choice((1, -1), (x == 0).sum())
    if how == "odd" and dtype[0] in "fc" and count:
        places = drawn.randint(0, count, 1 + count // 5)
        x[places] = [rng.choice(_ODD) for _ in places]
    if dtype[0] == "u" or dtype == "i1":
        x = x % 100
    with np.errstate(all="ignore"):
        if dtype[0] == "c":
            x = x + 1j * drawn.permutation(count)
        return (x > 0 if dtype == "?" else x.astype(dtype)).reshape(shape)


def _made(
    rng: random.Random, sizes: tuple[int, int], dtypes: tuple[str, str], how: str
) -> dict[str, Any]:
    n, m = sizes
    first, second = dtypes
    found: dict[str, Any] = {
        "a": _numbers(rng, (n, m), first, how),
        "b": _numbers(rng, (n, m), second, how),
        "x": _numbers(rng, (m,), second, how),
        "y": _numbers(rng, (n,), first, how),
    }
    least = max(n, 1)
    found["p"] = np.array(
        [rng.randint(-least, least - 1) for _ in range(min(4, n))], int
    )
    found["m"] = np.array([rng.random() < 0.4 for _ in range(n * m)], bool).reshape(
        n, m
    )
    found["k"] = rng.randint(1, max(1, min(n, m, 4) - 1))
    u, v, w = (_numbers(rng, (m,), second, how) for _ in range(3))
    found["d"] = {"u": u, "v": v, "n": rng.randint(1, 3)}
    found["l"] = [w, 1.5, _numbers(rng, (3,), "f8", how)]
    found["t"] = rng.choice((0.5, -0.25, 1.5))
    return found


def calls(rng: random.Random, names: list[str]) -> Iterator[Call]:
    """Give the calls of one program."""
    arrays = [x for x in names if x in "abxypm"]
    sizes = rng.choice(((4, 6), (5, 3), (6, 4), (3, 5)))
    kinds = ("f8", "f8")
    usual = _made(rng, sizes, kinds, "different")
    for how in ("different", "alike", "odd", "different"):
        made = _made(rng, sizes, kinds, how) | {"k": usual["k"]}
        if how == "different":
            made["t"] = usual["t"]
        yield Call(names, made, {}, about=f"{sizes} {how} k={made['k']} t={made['t']}")
    changes = [_placed, _placed, _sized, _typed, _numbered]
    if {"a", "b"} <= {*names} or ("a" in names and {"x", "y"} & {*names}):
        changes += [_overlapping, _overlapping]
    for change in rng.sample(changes, 3):
        yield from [change(rng, names, arrays, sizes)] * rng.choice((1, 1, 3))
    made = _made(rng, sizes, kinds, "different") | {"k": usual["k"]}
    yield Call(names, made, {}, about=f"{sizes} again k={made['k']} t={made['t']}")


def _placed(
    rng: random.Random, names: list[str], arrays: list[str], sizes: tuple[int, int]
) -> Call:
    """Return a call with some arrays that lie otherwise."""
    made = _made(rng, sizes, ("f8", "f8"), "different")
    views: dict[str, Any] = {}
    ways = [*LAYOUTS, "placed", "placed"]
    lies: dict[str, str] = {}
    for name in arrays:
        if rng.random() < 0.6 or name == arrays[0]:
            lies[name] = way = rng.choice(ways)
            made[name], views[name] = LAYOUTS[way][1](rng, made[name])
    return Call(names, made, views, about=f"{sizes} {lies} k={made['k']}")


def _sized(
    rng: random.Random, names: list[str], arrays: list[str], sizes: tuple[int, int]
) -> Call:
    """Return a call of other sizes."""
    sizes = rng.choice(_SIZES)
    made = _made(rng, sizes, ("f8", "f8"), rng.choice(("different", "alike")))
    return Call(
        names, made, {}, about=f"{sizes} k={made['k']}", may_read_beyond=min(sizes) < 4
    )


def _typed(
    rng: random.Random, names: list[str], arrays: list[str], sizes: tuple[int, int]
) -> Call:
    """Return a call of other dtypes."""
    one = rng.choice(_DTYPES)
    other = rng.choice((one, "f8", rng.choice(_DTYPES)))
    made = _made(rng, sizes, (one, other), rng.choice(("different", "alike")))
    is_wide = bool({one, other} & {"f4", "f2", "c8"})
    return Call(
        names, made, {}, about=f"{sizes} {one} {other} k={made['k']}", is_wide=is_wide
    )


def _numbered(
    rng: random.Random, names: list[str], arrays: list[str], sizes: tuple[int, int]
) -> Call:
    """Return a call with other numbers, or other places."""
    made = _made(rng, sizes, ("f8", "f8"), "different")
    made["k"] = rng.choice((0, -1, 3, np.int64(2), True, 7, np.int32(1), 0))
    made["t"] = rng.choice(
        (
            2,
            np.float64(0.75),
            -0.0,
            np.float32(0.5),
            0,
            True,
            float("nan"),
            np.inf,
            1,
            np.array(0.75),
        )
    )
    if rng.random() < 0.5 and sizes[0]:
        made["p"] = rng.choice(
            (
                np.arange(sizes[0]),
                np.array([0, 0, 0]),
                np.array([-1, 0], np.int32),
                np.arange(sizes[0])[::-1],
                np.arange(2 * sizes[0])[::2] // 2,
                np.array([sizes[0] - 1, 0, 1], np.uint8),
                np.array([], int),
                np.array([0, sizes[0]]),
                np.array([1, -sizes[0] - 1, 0]),
            )
        )
    k, t, p = made["k"], made["t"], made["p"]
    return Call(
        names, made, {}, about=f"{sizes} k={k!r} t={t!r} p={p!r}", may_read_beyond=True
    )


def _overlapping(
    rng: random.Random, names: list[str], arrays: list[str], sizes: tuple[int, int]
) -> Call:
    """Return a call with arrays that share memory."""
    made = _made(rng, sizes, ("f8", "f8"), "different")
    fit = [
        x
        for x in _OVERLAPS
        if all(f"{y} " not in f"{x} " or y in names for y in "abxy")
    ]
    how = rng.choice(fit)
    if "beside" in how:
        made["x"] = made["x"][:-1]
    return Call(
        names,
        made,
        {},
        overlap=how,
        about=f"{sizes} {how} k={made['k']}",
        may_read_beyond=True,
    )
