# SPDX-License-Identifier: Apache-2.0
"""Statements of random programs that write, out of tables of patterns.

In a pattern, ``{x}`` is an array, ``{y}`` one of its shape and ``{z}`` any; ``{e}`` is
a new name, ``{_e}`` one that is not kept, ``{k}`` a key of slices, ``{i}`` and ``{j}``
are lists of three indices, ``{at}`` of three places in one
row, ``{c}`` is a small number, ``{v}`` a value that stretches to ``x``, ``{s}`` a
statement, ``{r}`` how many turns. Equal words are replaced alike.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fuzz.growing import Lines, Program, Step


def _patterns(text: str) -> tuple[str, ...]:
    """Return patterns that empty lines part."""
    return tuple(text.strip().split("\n\n"))


FUNCTIONS = (
    "np.copyto({x}, {v})",
    "np.copyto({x}, {v}, where={y} > {c})",
    "np.copyto({x}[{k}], {x}[{k}][::-1])",
    "np.put({x}, {at}, t)",
    "np.put({x}, {at}, {y}.ravel()[:3])",
    "{e} = np.take({x}, {at}) * 2",
    "np.put({x}, [2, 0, -1], [t, 1.0, 2.0])",
    "{x}.put([1, 0], t)",
    "np.place({x}, {y} > {c}, t)",
    "np.putmask({x}, {y} < {c}, {c2})",
    "np.putmask({x}, {y} < {c}, {x} * 0.5)",
    "np.fill_diagonal({x}, t)",
    "np.fill_diagonal({x}[:4, :4], {c})",
    "np.put_along_axis({x}, np.zeros_like({x}, int)[:1], {c}, axis=0)",
    "np.put_along_axis({x}, np.argsort({x}, axis=-1, kind='stable'), {y}, axis=-1)",
    "{x}.fill(t)",
    "{x}[{k}].fill({c})",
    "{x}.sort()",
    "{x}.sort(axis=0)",
    "{x}[{k}].sort(axis=-1)",
    "{x}[::-1].sort(axis=0)",
    "{x}.partition(1, axis=0)\n{x}.sort(axis=0)",
    "np.add({x}, {v}, out={x})",
    "np.multiply({x}, t, out={x}[...])",
    "np.subtract({x}, {y}, out={x}, where={y} > {c})",
    "np.maximum({x}[1:], {x}[:-1], out={x}[1:])",
    "np.minimum({x}[:-1], {y}[1:], out={x}[1:])",
    "np.sqrt(np.abs({x}), out={x}, where={y} > {c})",
    "{e} = np.add({x}, {y}, where={y} > {c}, out=np.zeros_like({x}))",
    "{e} = np.add({x}, {y}, out={x}) * 0.5",
    "{e} = np.sum({x}, axis=0, where={y} > {c})",
    "{e} = {x}.max(axis=0, where={y} > {c}, initial=-9)",
    "{e} = np.bincount(np.arange({x}.size) % 4, {x}.ravel(), minlength=5) * 1.0",
    "{e} = np.bincount(np.arange({x}.size) * 7 % 5, minlength=6)",
    "{e} = np.histogram(np.arange({x}.size) * 0.37, 4, (0, 3), weights={x}.ravel())[0]",
    "{e} = np.histogram(np.arange({x}.size) * 0.5 - 1, {r}, (-1, 2))[0] + 0.5",
    "{e} = np.histogram(np.round({x}), 3, (-1, 2))[0] * 1.0",
    "{e} = np.digitize(np.round({x}), np.arange(-1.0, 3.0)) * t",
    "np.add.at({x}, {i}, t)",
    "np.multiply.at({x}, {i}, {c})",
    "np.subtract.at({x}, ({i}, ...), {y}[:3])",
    "np.maximum.at({x}[{k}], {i}, {c})",
    "np.add.at({x}, {i}, {y}[:3, :1] + t)",
    "np.add.at({x}, {i}, {y}[:3, ..., :1])",
    "{x}[{i}] = {y}[:3, :1] * 2",
    "np.subtract.at({x}, {i}, np.arange(3.0).reshape({y}[:3, :1, ..., :1].shape))",
    "{x}[np.ix_(*(({i},) + ({j},) * ({x}.ndim - 1)))] += t",
    "{x}[np.ix_({i}, {j})] = {y}[np.ix_({j}, {i})]",
    "{e} = {x}[np.ix_({i}, {j})] * 2",
    "{e} = np.where((-1 < {x}) & ({y} <= {c}), {x}, t)",
    "{e} = np.array([t, {c}, n]) * {x}[0].sum()\n{e}[1] = {x}.sum()",
    "{e} = np.take({x}, {i}, axis=0)\n{x}[0] += 1",
    "{e} = np.take_along_axis({x}, np.zeros_like({x}, int)[:2] - 1, axis=0)",
    "{e} = np.roll({x}, 1, axis=0)\n{x}[1:] = {e}[:-1]",
    "{e} = np.diagonal({x}) + t\n{x}[0] = 1",
    "{e} = np.select([{x} > 1, {y} < 0], [{x} * 2, t], {y})",
    "{e} = np.full({x}.shape, t)\n{e}[{k}] += {x}[{k}]",
    "{e} = np.arange(6.0)\n{e}[::2] += {x}.sum()\n{e}[1] = n",
)
SELDOM = _patterns("""
np.place({x}, {y} > {c}, t)

np.place({x}[{k}], {x}[{k}] < {c}, {c2})

np.putmask({x}[{k}], {x}[{k}] < {c}, {c2})

np.putmask({x}, {y} > {c}, {x}[::-1] + t)

np.fill_diagonal({x}, {c})

np.fill_diagonal({x}[1:4, :3], t)

{e} = {x} * 0.5
np.fill_diagonal({e}.T, {x}.sum())

{e} = np.zeros((4, 4)) + {x}.sum()
np.fill_diagonal({e}, t)
{e}[1:] *= 0.5

{e} = {x}[:3].sum() * np.ones((3, 5))
np.fill_diagonal({e}[:, 1:], [t, {c}, n])
{e}[0] += 1

{e} = np.histogram({x} * 0.5, np.array([-2.0, 0, 1.5, 4]))[0] * 0.5

np.put_along_axis({x}, {y}.argmax(axis=-1, keepdims=True), t, axis=-1)

np.put_along_axis({x}, np.argmin({x}, axis=0, keepdims=True), {y}[:1], axis=0)

{x}.partition(1, axis=-1)
{e} = {x}[..., 1] * 1.0
{x}.sort()

{x}[::-1].partition(2, axis=0)
{e} = {x}[-3] + t
{x}.sort(axis=0)

{_m1} = {y} > {c}
{x}[{_m1}] = {y}[{_m1}] * 0.5 + {c2}

{_m1} = {x} < {c}
{x}[{_m1}] += {y}[{_m1}] * t
{e} = {_m1}.sum()

{_m1} = {y}[0] > {c}
{x}[1, {_m1}] = t

{_m1} = {x}[:, 0] > {c}
{x}[{_m1}, 1:] = {c2}
{e} = np.where({_m1}, {x}[:, 0], 0)

{_m1} = {x}[:, -1] > {y}[:, 0]
{x}[{_m1}, 0] += {y}[{_m1}, 0] * t

for _row in reversed({x}):
    _row *= 0.5
    _row[0] = t

{e} = {x}[0] * 0
for _row in reversed({y}):
    {e} = {e} * 0.5 + _row

for i, _row in enumerate(reversed({x})):
    _row += i

{_o} = []
for _row in {x}:
    {_o}.append(_row * 0.5)
{e} = np.stack({_o}) + {x}

{_o} = [{x}[0] * 1.0]
for i in range({r}):
    {_o}.append({_o}[-1] * 0.5 + i)
{e} = {_o}[-1] - {_o}[0]
""")
NUMBERS = _patterns("""
{e} = {n}
{s}
{f} = {n} + {e}

{e} = {n}
{x} += 1
{f} = {n}

{e} = {n}
{x}[...] = {y}[::-1] * 2
{f} = {e} - {n}

{_r} = {x}[-1]
{e} = {n}
{x} *= 2
{f} = {n}
{_r} += 1
{g} = {n} + {e}

{e} = {n}
{_e} = {n}
{x}.fill(t)
{f} = {_e} * 2 - {e}

{e}, {f} = {n}, {m}
{x}[...] = {x}[::-1] + {e}
{g} = {e} * {f} + {n}

{e} = {n} * 0.5 + {m}
{s}
{x}[0] = {e}

{_e} = {n}
{x}[0] = {m}
{x}[-1] = {_e}
{f} = {_e}

{e} = {n}
if {e} > {c}:
    {x} -= {e}
{f} = {n} - {e}

{e} = {n}
for i in range({r}):
    {x}[i % 3] += {e}
    {e} = {n}

{_w} = {x}[{k}]
{e} = {_w} + 0
{x} += t
{f} = {_w} - {e}

{e} = float({c}) + {n}
{x}[0] = t
{e} += {n}
""")
NUMBER_OF = (
    *("[0][0]", "[-1][-1]", "[..., 0][0]", "[1:][0]", "[::-1][0]", ".T[0]", "[0]"),
    *("[1][1:][0]", "[:2][1]", "[::2][-1]", ".ravel()[2]", ".reshape(-1)[1]", "[1]"),
    *("[..., ::-1][0]", "[-1][::-1][0]", "[0, 1]", "[-1, ..., 0]", "[0][..., 1]"),
    *(".T[-1][0]", "[0][0][0]", ".T[1][0][-1]", "[1, 0][1]", "[:, 1][0]", "[-1][0, 1]"),
    *("[2, -1, 0]", ".ravel()[-2]", ".diagonal()[0]", ".sum(axis=0)[0]", ".copy()[0]"),
    *("[0][0][0][0]", "[1, 0, ..., -1]", "[0, ..., 1][0]", "[()][1]", "[0][()][0]"),
)
CARRIED = _patterns("""
{c1}, {d} = {x} * 1.0, {y} + t
for i in range({r}):
    _q = {c1}.copy()
    _q[1:-1] = ({c1}[2:] + {c1}[:-2]) * 0.5 + {d}[1:-1] * 0.25
    {c1}, {d} = _q, {c1}

{c1} = {x}.copy()
{d} = {c1}
for i in range({r}):
    _q = {c1}.copy()
    _q[0] += 1
    {x}[...] = _q * 0.5 - {c1}
    {d} = {c1} + i
    {c1} = {c1}

{c1} = {x} + t
{p}, {q} = {c1}[0].sum(), {c1}[-1].sum()
for i in range({r}):
    {p}, {q} = {q}, {p} * 0.5 + i
    {c1}[i % 3] += {p}

{c1} = {x} * 1.0
{d} = {c1}.sum()
for i in range({r}):
    {_o} = {c1}.sum()
    {c1} = {c1} * 0.5 + {y}[i % 3]
    {d} = {_o} - {d} * 0.25

{c1}, {d} = {x} * 1.0, {x} * 0.5
for i in range({r}):
    {_o} = {c1}.copy()
    {_o}[-1] = {d}[0]
    {c1}, {d} = {d}, ({c1} if n > 2 else {_o})

{c1} = {x}.copy()
for i in range({r}):
    {d} = {c1}[i % 3]
    {c1} = {c1} + {d}
    {e} = {d} * 0.5
{f} = {c1} * 2

{c1} = ({x} + 1, {y} * 0.5)
for i in range({r}):
    {c1} = ({c1}[1], {c1}[0] * 0.5 + i)
{d}, {e} = {c1}
{c1} = {d} + 1

{c1} = {x} + t
for _ in range({r}):
    {c1} = kept({c1}) * 0.5 + once({c1})

{c1}, {d} = {x} * 0.5, {x} + t
for _ in range({r}):
    {c1}, {d} = stepped({c1}, {d})

for i in range({r}):
    {_o} = {x}.copy()
    {_o}[1:] -= {x}[:-1]
    {x}[...] = {x} * 0.5 + {_o}[::-1]
    {y}[i % 2] = {_o}[0]
""")
HELPED = _patterns("""
{e} = kept({x}) + once({x})

{e} = once({x}[{k}])
{f} = kept({x}[{k}])

{_v} = within({x})
{_v} += 1
{e} = {_v} * 2

{_v} = within({x}[..., ::-1])
{x} += t
{e} = {_v} + 0

{e}, {f} = stepped({x}, {y})

{x}[...], {y}[...] = stepped({x}, {y})

{_v}, {e} = moved({x}, {k0})
{_v}[...] = {e}

{_v}, {e} = moved({x}[::-1], 1)
{s}
{f} = {_v} - {e}

{e} = shifted({x}.copy(), {c}) - {x}

for i in range({r}):
    {_v}, {_o} = moved({x}, i % 3)
    {_v}[...] = {_o} * 0.5 + t

halve({x}[{k}].T)
{e} = within({x})

if n > 2:
    {e} = within({x})
else:
    {e} = {x}[1:-1] * 2
{x} += 1
{f} = {e} + 0
""")
STATES = _patterns("""
BOX.u[0] += t

BOX.u[{k1}] = G[{k1}][::-1] * 0.5

KEPT['u'][1:] -= {x}.sum() * 0.01

{_u} = BOX.u
{_u}[2:] *= 0.5
{e} = {_u}[:3] + 1

CELLS[0][::2] = t
{e} = CELLS[0] * 2

BOX.turn(t)

for i in range({r}):
    BOX.turn(i)
    KEPT['u'][i % 3] += 1

{e} = G.copy()
G[...] = G[::-1] + 1
{f} = G - {e}

{_o} = {{'p': {x}, 'q': [{y}]}}
{_o}['p'][0] = t
{_o}['q'][0] += {_o}['p']

{_o} = [{x}, {x} * 2]
{_o}[1][...] = {_o}[0][::-1]
{e} = {_o}[0] - {_o}.pop()

{_o} = [{x}[k] for k in range(3)]
{_o}[1] += 1
{e} = sum({_o})

for _row in ({x}[0], {x}[-1]):
    {e} = _row * 2
{x}[0] = {e}

for {_o} in ({x}, {y}[1:]):
    {_o} *= 0.5
    {_o}[0] = {c}

for i, {_o} in enumerate([{x}, {y}]):
    {_o}[i] -= t
""")
ROWS = _patterns("""
for _row in {x}:
    _row += t

{e} = {x}[0] * 0
for _row in {x}:
    {e} = {e} * 0.5 + _row

for i, _row in enumerate({x}):
    {y}[i] = _row * 0.5 + i

for i, _row in enumerate({x}, {c}):
    {y}[i % 3] = _row * 0.5 + i

{e} = {x}[0] * 0
for i, (_row, _o) in enumerate(zip({x}, {y}[::-1]), start=1):
    {e} = {e} * 0.5 + _row * i - _o

for _p, _q in zip({x}, {y}):
    _p[...] = _q * 2 - _p

for _p, _q in zip({x}[1:], {x}):
    _p += _q * 0.5

for i in range(len({x}) - 1):
    {x}[i + 1] = {x}[i] * 0.5 + {y}[i]

for i in range(len({x}) - 1, 0, -1):
    {x}[i - 1] -= {x}[i] * 0.5

for i in range({x}.shape[-1]):
    {x}[..., i] = {x}[..., i - 1] * 0.5 + t

for i in range({x}.shape[0]):
    {x}[i] = {x}[-i - 1] + {y}[i]

{_q} = np.empty_like({x})
for i in range({x}.shape[0]):
    {_q}[i] = {x}[i] + {x}[i - 1]
for i in range({x}.shape[-1]):
    {x}[..., i] = {_q}[..., i - 1] * 0.5

for i in range({r}):
    {x}[i % 3:] += {y}[i % 2:{y}.shape[0] - i % 3 + i % 2]

for i in range({r}):
    for j in range(2):
        {x}[i % 3] += {y}[j] * 0.5 + i

for i in range({r}):
    for j in range(i):
        {x}[j % 3] -= {y}[i % 2] + j

for i in range({r}):
    {_o} = {x}[i % 2]
    {x}[(i + 1) % 3] = {_o} + 1
    {y}[0] = {_o}

for i in range({r}):
    {x}[:i] += 1

{e} = 0.0
for i in range({r}):
    {e} = {e} * 0.5 + {x}[i % 3].sum()
    {x}[0] = i
""")
_HELD = {"c": "hand", "o": "o"}
_AT = (  # places of an array in one row
    "np.arange(3) * {p} % {x}.size",
    "(np.arange(3) + {p}) % {x}.size - {x}.size",
    "[0, {x}.size // 2, -2]",
    "np.array([1, {p}, 4]) % {x}.size",
)


def words(made: Program, pattern: str) -> list[str]:
    """Return the lines of a pattern, its words replaced."""
    known: dict[str, str] = {}

    def word(found: re.Match[str]) -> str:
        name = found[1]
        if name not in known:
            known[name] = _word(made, name, known)
        return known[name]

    text = re.sub(r"(?<!\{)\{(\w+)\}(?!\})", word, pattern)
    return text.replace("{{", "{").replace("}}", "}").split("\n")


def _word(made: Program, name: str, known: dict[str, str]) -> str:
    rng = made.rng
    if name not in ("x", "y", "z"):
        known.setdefault("x", made.any())
    x = known.get("x", "")
    if name.startswith("_"):
        return made.name(name)
    makers: dict[str, Callable[[], str]] = {
        "x": made.any,
        "y": lambda: made.alike(known.setdefault("x", made.any())),
        "z": made.any,
        "c": lambda: str(rng.randint(-2, 3)),
        "c2": lambda: str(rng.randint(-2, 3)),
        "i": lambda: str([rng.choice((0, 1, 2, -1)) for _ in range(3)]),
        "at": lambda: rng.choice(_AT).format(x=x, p=rng.choice((1, 3, 5, 7))),
        "j": lambda: f"np.array({[rng.choice((0, 2, -2, -1)) for _ in range(3)]})",
        "k": lambda: made.key(made.space[x].ndim),
        "k0": lambda: rng.choice(("0", "1", "-1")),
        "k1": lambda: rng.choice(("1:-1", "::2", ":", "::-1", "3:")),
        "n": lambda: f"{x}{rng.choice(_numbers_of(made, x))}",
        "m": lambda: f"{x}{rng.choice(_numbers_of(made, x))}",
        "r": lambda: rng.choice(("n", "n", "n + 2", "n + 5", "3", "n * 2")),
        "s": lambda: made.store() or "pass",
        "v": lambda: made.value(made.space[x].shape, x),
    }
    return makers[name]() if name in makers else made.name(_HELD.get(name[0], name[0]))


def _numbers_of(made: Program, x: str) -> list[str]:
    """Return ways to read a number of an array."""
    return [way for way in NUMBER_OF if made.shape_of(f"{x}{way}") == ()] or [".sum()"]


def _step(feature: str, patterns: tuple[str, ...]) -> Step:
    def step(made: Program) -> Lines:
        """Add what a pattern says, of several that are tried."""
        for _ in range(_TRIES):
            lines = words(made, made.rng.choice(patterns))
            if made.takes(lines):
                return lines, feature
        return [], feature

    step.__name__ = feature
    return step


_TRIES = 5
TABLES = {
    "words": FUNCTIONS,
    "seldom": SELDOM,
    "numbers": NUMBERS,
    "handed": CARRIED,
    "helped": HELPED,
    "states": STATES,
    "rows": ROWS,
}
WORD_STEPS: dict[str, Step] = {name: _step(name, rows) for name, rows in TABLES.items()}
"""The steps of the tables, by their features."""
