# SPDX-License-Identifier: Apache-2.0
"""Statements of random programs that write: forms of Python, dtypes, numbers, moves.

The tables are of patterns as in ``word_steps``. Beside its words, ``{N}`` is an integer
that is computed of a number of the call, and ``{m}`` of the size of an axis.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.fuzz.dtype_steps import TYPED
from tests.fuzz.word_steps import words

if TYPE_CHECKING:
    from tests.fuzz.growing import Lines, Program, Step


def _patterns(text: str) -> tuple[str, ...]:
    """Return patterns that empty lines part."""
    return tuple(text.strip().split("\n\n"))


_INTEGERS = (
    *("n // 2", "n % 3", "n ** 2", "n - 5", "abs(n - 3)", "-n", "n << 1", "n & 1"),
    *("n | 4", "n ^ 1", "n >> 1", "~n", "divmod(n, 2)[0]", "divmod(n + 7, 3)[1]"),
    *("7 // (n + 1)", "7 % (n + 1)", "max(n, 2)", "min(n, 3)", "int(n / 2)", "5 - n"),
    *("n * 2 - 1", "int(n > 2)", "n + (n == 2)", "int(n * 0.5 + 1)", "2 ** n", "+n"),
    *("pow(n, 2) % 5", "(n != 3) + 1", "(n >= 1) * 2", "n if n < 3 else 3", "-n // 2"),
    *("(n - 3) // 2", "(n - 3) % 4", "int(t * 4)", "n and 2", "n or 4", "9 - n * n"),
)
_LENGTHS = (
    *("{0}.shape[0]", "len({0})", "{0}.shape[-1]", "{0}.size", "{0}.ndim"),
    *("{0}.shape[0] // 2", "{0}.shape[-1] % 3", "(len({0}) - 1) // 2", "len({0}) - n"),
    *("min(len({0}), n)", "max({0}.shape)", "-(len({0}) // 2)", "len({0}[1:])"),
    *("len({0}[::2])", "{0}[1:-1].shape[0]", "sum({0}.shape)", "len({0}) * 2 // 3"),
)
_COUNTED = _patterns("""
{x}[:{N}] += t

{x}[{N}:] *= 0.5

{x}[{m} // 2:] *= 0.5

{x}[:{m}] = {c}

{x}[-({N}):] = {y}[-({N}):] * 0.5

{x}[{N}:{m}] -= t

{x}[{N}::2] = {c}

{x}[({N}) % (len({x}) or 1)] = t

{x}[({m}) % (len({x}) or 1)] += {y}[0]

{x}[({N}) % 3] = {y}[({m}) % 2] + 1

{x}[...] = {x} * 0.5 + {N}

{e} = {x}[:({N}) % 3 + 1] * ({m})

{e} = {y}[({N}) % 3:] - t
{x}[({N}) % 3:] = {e}

{e} = np.full({x}.shape, {N} + t)
{e}[{k}] = {m}

{e} = np.zeros((abs({N}) % 5 + 1, 3))
{e}[({N}) % 2 - 1] = {N}

for i in range({N}):
    {x}[i % 3] += t

for i in range({N}, 6):
    {x}[i % 3] -= i

for i in range(abs({N}) % 9, {c}, -1):
    {x}[i % 2] = {y}[0] + i

for i in range({m} // 2):
    {x}[i], {x}[-1 - i] = {x}[-1 - i].copy(), {x}[i].copy()

for i in range(0, {m} - 1, 2):
    {x}[i % (len({x}) or 1)] = {y}[(i + 1) % (len({x}) or 1)] * 0.5

if {N} > {c}:
    {x} -= 1
elif {m} >= 4:
    {x}[0] = {N}
else:
    {x}[-1] = t

if {N} == {c} or {m} <= 5:
    {x} *= 0.5

if not {N} or not {m} > 6:
    {x}[0] = {y}[-1]

{w} = {N}
while {w} < 5:
    {w} += 2
    {x}[0] += {w}

{w}, {h} = {N}, {m}
for i in range(n):
    {w}, {h} = {h} % 7, {w} + i
    {x}[{w} % 3] += {h}

{x}[{N} if {c} < {N} < 3 else 0] = {y}[0]
""")
FORMS = _patterns("""
if ({p} := {x}.sum()) > {c}:
    {x}[0] = {p}

{w} = 0
while True:
    {w} += 1
    {x}[{w} % 3] += t
    if {w} > n or {x}[0].sum() > 40:
        break

{w} = 0
while {w} < n + 3:
    {w} += 1
    if {w} % 2 == 0:
        continue
    {x}[{w} % 3] = {y}[0] + {w}

{w} = n
while {w}:
    {w} -= 1
    {x}[{w} % 2] += {w}
else:
    {x}[0] = t

{e}, *_f = {x}[0] * 2, {y}[0] + 1, t
{x}[-1] = {e}

_q, (_r, _s) = {x}[0], ({y}[0], n)
{x}[-1] = _q + _r * _s

{e} = sum([{x}[k] * k for k in range(3) if k != 1])

{e} = np.array([{x}[k].sum() for k in range(3)])
{e}[0] = t

{e} = max({x}[0].sum(), {x}[-1].sum())

_f = lambda q, by=2: q * by - {y}[0]
{x}[0] = _f({x}[-1])
{e} = _f({x}[1], t)

def _f(q, by=t):
    q[0] += by
    return q * 2
{e} = _f({x})

def _f(q):
    for i in range(3):
        q[i % 2] += i
        if i == n:
            return q * 0.5
    return q + 1
{e} = _f({x})

def _f(q, k):
    if k > 2:
        q[0] = t
        return q * 2
    q[-1] -= 1
    return q * 0.5
{e} = _f({x}, n)
{x} += 1

def _f(q, k):
    if k == 1:
        return
    q *= 0.5
    if k > 2:
        return
    q[0] = k
_f({x}, n)

{e} = early({x}, n) + t

{e} = early({x}, {y}[0].sum())

{e} = sought({x}, {c})

{e} = sought({x}[::-1], n) + {y}[0]

for i in range({r}):
    {e} = early({x}, i)
{x}[0] = t

for i in range({r}):
    {x}[i % 3] = sought({y}, i) * 0.5

{o}: object = {x} * 0.5
{x}[0] = {o}[-1]

assert {x}.shape[0] >= 0, "rows"
{x} += 1

with np.errstate(divide="ignore", invalid="ignore"):
    {x}[...] = {x} / 2

{_o} = {x}.copy()
{x} -= 1
{e} = {_o} - {x}
del {_o}

if n > {c}:
    pass
else:
    {x}[0] = t

{e} = {x} if n > 2 else {y} if n > 1 else {x} + 1
{x}[0] = t
{f} = {e} * 2

if n > 1 and {x}.sum() > {c} or t < 0:
    {x}[0] = 1
else:
    {x} -= t

if not ({x}.sum() > {c} and {y}.sum() > 0):
    {x}[-1] = {y}[0]

for _k in (2, 0, 1):
    {x}[_k] += _k

for _k, _h in [(0, 1), (1, 2), (2, 0)]:
    {x}[_k] = {y}[_h] * 0.5

for _k, _h in {{0: 1, 1: -1}}.items():
    {x}[_k] = {y}[_h] + _k

for i, (_p, _q) in enumerate(zip({x}, {y})):
    _p -= _q * i

for i, _p in enumerate({x}[1:], 1):
    {y}[i] = _p + i

for _p in {x}[::-1]:
    _p *= 0.5

for _p in reversed({x}[:3]):
    {y}[0] += _p

for _p, _q, _r in zip({x}, {y}[::-1], range(9)):
    _p[...] = _q * 0.5 + _r

for _p in {x}.T:
    _p += t

for i in range(2):
    for _p in {x}:
        _p[...] = _p * 0.5 + i

for i in range({r}):
    if i == 1:
        continue
    elif i > 4:
        break
    {x}[i % 3] = {y}[i % 2] + i
else:
    {x}[0] = t

{_w} = None
for i in range({r}):
    if {_w} is None:
        {_w} = {x}[0] * 1.0
    {_w} = {_w} * 0.5 + i
{e} = {_w} if {_w} is not None else {x}[0]

{_o} = []
for i in range(3):
    {_o}.append({x}[i] * 2)
    {x}[i] = t
{e} = np.stack({_o})

{_o} = {{}}
for i in range(3):
    {_o}[i] = {x}[i]
    {x}[0] += 1
{e} = {_o}[0] + {_o}[2]

{e} = f = {x}[0] * 2
f += 1
{x}[-1] = {e}

{x}[0], {x}[1], {x}[2] = {x}[1].copy(), {x}[2].copy(), {x}[0].copy()

{x}[0] = {x}[-1] = t

{x}[{k}] = {x}[{k}] if n > 2 else {c}

{w} = True
for i in range({r}):
    if {w}:
        {x}[i % 3] += 1
    {w} = not {w}

{w} = {x}[0].sum() > {c}
for i in range({r}):
    if {w}:
        {x}[i % 3] += 1
        {w} = i > 2

{e} = {x}.copy()
for i in range({r}):
    {e} = {e} + 1 if i % 2 else {e} * 0.5

for i in range({r}):
    {x}[i % 3] += 1 if i > 1 else -t if n > 2 else {c}

for i in range({r}):
    {w} = i * t
    if {x}[0].sum() > {w}:
        {x}[0] -= 1
    {y}[i % 2] = {w}
""")
MOVED = _patterns("""
{e} = np.pad({x}, 1)

{e} = np.pad({x}, 1, mode="edge")

{e} = np.pad({x}, (1, 2), mode="wrap")

{e} = np.pad({x}, ((2, 0),) + ((0, 1),) * ({x}.ndim - 1), mode="reflect")

{e} = np.pad({x}, 2, mode="symmetric")

{e} = np.pad({x}, (0, 3), constant_values=t)

{e} = np.roll({x}, 2)

{e} = np.roll({x}, (1, -1), axis=(0, -1))

{e} = np.roll({x}, -1, axis=-1)

{e} = np.roll({x}, n, axis=0)

{e} = np.repeat({x}, 2)

{e} = np.repeat({x}, 3, axis=-1)

{e} = np.tile({x}, 2)

{e} = np.tile({x}, (2, 1))

{e} = np.take({x}, {i})

{e} = np.take({x}, {j}, axis=-1, mode="wrap")

{e} = np.take({x}, [0, 9, -3], axis=0, mode="clip")

{e} = {x}.take({i}, axis=0)

{e} = np.take_along_axis({x}, np.argsort({y}, axis=0, kind="stable"), axis=0)

{e} = {x}.flatten()

{e} = {x}.ravel("F") * 2

{e} = {x}.reshape(-1, order="F") * 1.0

{e} = {x}.reshape(1, -1)[0] + t

{e} = {x}.reshape({x}.shape[0], -1).T * 2

{e} = {x}.reshape(*{x}.shape[::-1]) * 1.0

{e} = np.append({x}, {y}, axis=0)

{e} = np.append({x}, t)

{e} = np.concatenate([{x}, {y}[:1], {x}[::-1]])

{e} = np.concatenate(({x}, {y}), axis=-1)

{e} = np.stack(({x}, {y}), axis=1)

{e} = np.vstack(({x}, {y}))

{e} = np.hstack(({x}, {y}))

{e} = np.dstack(({x}, {y}))

{e} = np.column_stack(({x}, {y}))

{e} = np.block([[{x}, {y}], [{y}, {x}]])

{e}, _o = np.split({x}[:4], 2)

_o, {e}, _p = np.array_split({x}, 3)

{e} = np.linspace(0, t, {x}.shape[0])

{e} = np.eye({x}.shape[0])

{e} = np.tri(4) * t

{e} = np.tril({x} if {x}.ndim > 1 else {x}[:, None] + t)

{e} = np.triu({x}[..., None] * {x}[0], 1)

{e} = np.flip({x}) * 1.0

{e} = np.flip({x}, -1) + 0

{e} = np.rot90({x}) * 1.0

{e} = np.diff({x}, axis=0)

{e} = np.cumsum({x})

{e} = np.cumprod({x} * 0.1, axis=-1)

{e} = np.broadcast_to({x}[:1], {x}.shape) + t

{e} = np.broadcast_to({x}[0], (3,) + {x}[0].shape).copy()

{e} = np.outer({x}[0], {y}[0])

{e} = np.expand_dims({x}, (0, -1)) * 2

{e} = np.meshgrid(np.arange(3.0), np.arange(n + 2.0))[0] + t

{e} = {x}.astype(np.float32)

{e} = np.atleast_2d({x}) * 2

{e} = np.ediff1d({x}) * 1.0

{e} = np.gradient({x}, axis=0)

{e} = np.convolve({x}.ravel()[:9], [0.5, t, 1.0], "same")

{e} = np.unwrap({x}) * 0 + {x}

{e} = np.trapezoid({x}, axis=0) + {x}

{e} = np.einsum("i...,i...->...", {x}, {y}) + t

{e} = np.tensordot({x}, {y}, axes=([0], [0])) * 0.1

{e} = np.interp([0.5, 1.5], [0.0, 1.0, 2.0], {x}.ravel()[:3])

{e} = np.sort({x}, axis=0)[::-1] * 1.0

{e} = np.argmax({x}, axis=0)

{e} = np.argsort({x}, axis=-1, kind="stable")

{e} = np.searchsorted([-1.0, 0.5, 2.0], {x})

{e} = np.count_nonzero({x} > {c}, axis=0)

{e} = np.ptp({x}, axis=0)

{e} = np.median({x}, axis=0) * 1.0

{e} = np.average({x}, axis=0, weights={y} * 0 + 2)
""")
_FOLDED = _patterns("""
{e} = {x}.sum(axis=0)
{f} = {x}.sum(axis=-1)

{e} = {x} - {x}.mean(axis=-1, keepdims=True)
{f} = {x}.max(axis=0, initial=-9)

{e} = np.exp({x} * 0.1 - {x}.max(axis=-1, keepdims=True, initial=-9))
{f} = {e} / {e}.sum(axis=-1, keepdims=True)

{e} = np.cumsum({x}, axis=0)
{x}[0] = {e}[-1] * 0.5
{f} = np.cumsum({x}, axis=-1) - {e}

{e} = ({x}[:, None] - {x}[None]).sum(axis=0)

{e} = np.abs({x}[0][..., None] - {x}[-1]).max(axis=-1, initial=0)

{e} = {x}.T.sum(axis=0)
{f} = {x}.sum() - {e}

{e} = ({x} * {y}).sum(axis=0)
{x} -= {e} * 0.1
{f} = {x}.var(axis=0)

{e} = {x}.sum(axis=-1)
{x}[..., 0] = {e}
{f} = {x}.sum(axis=-1) - {e}

{e} = {x}.reshape({x}.shape[0], -1).sum(axis=0)
{f} = {x}.reshape(-1, {x}.shape[-1]).max(axis=1, initial=-9)

{e} = ({x} > {c}).any(axis=0)
{x}[0] = {e}
{f} = ({x} > {c}).all()

{e} = {x}.argmax(axis=-1) * 1.0
{x} += {e}.sum()

{e} = np.minimum.accumulate({x}, axis=0)
{x}[1:] -= {e}[:-1]

{e} = np.add.reduce({x}[::-1], axis=-1) + np.add.reduce({x}, axis=-1)

{e} = {x}.prod(axis=0) * 0.1
{x}[::2] = {e}

{e} = {x}.cumsum(axis=-1)[..., ::-1]
{x}[...] = {e} - {x}
{f} = {e}[..., 0] * 1.0

{e} = np.linalg.norm({x})
{x} /= {e} + 1

{e} = {x}.sum(axis=(0, -1)) if {x}.ndim > 1 else {x}.sum()
{x}[0] -= {e}
""")
_AFTER = _patterns("""
{e}[...] = {e} * 0.5
{x}[0] = t

{e}[0] = {x}.sum() * 0.5

{x} += 1
{f} = {e} * 2

{x}[{k}] = {c}
{f} = {e} - 1

{e}[1:] -= {e}[:-1]

{e}[::-1] = {e}

{e} += 1
{f} = {x} * 2

{f} = {e}[..., 0] * 1.0
{e}[..., 0] = {c}

pass
""")
TABLES = {"counted": _COUNTED, "forms": FORMS, "typed": TYPED, "folded": _FOLDED}


def _filled(made: Program, pattern: str) -> list[str]:
    """Return the lines of a pattern, its words replaced."""
    rng = made.rng
    x = made.any()
    pattern = re.sub(r"\{N\}", lambda _: f"({rng.choice(_INTEGERS)})", pattern)
    size = rng.choice(_LENGTHS).replace("{0}", "{x}")
    pattern = pattern.replace("{m}", f"({size})").replace("{x}", x)
    if "{y}" in pattern:
        pattern = pattern.replace("{y}", made.alike(x))
    return words(made, pattern)


def _step(feature: str, patterns: tuple[str, ...]) -> Step:
    def step(made: Program) -> Lines:
        """Add what a pattern says, of several that are tried."""
        for _ in range(_TRIES):
            lines = _filled(made, made.rng.choice(patterns))
            if made.takes(lines):
                return lines, feature
        return [], feature

    step.__name__ = feature
    return step


def moved(made: Program) -> Lines:
    """Move elements elsewhere, and write what was read, or what it was read of."""
    rng = made.rng
    for _ in range(_TRIES):
        pattern = f"{rng.choice(MOVED)}\n{rng.choice(_AFTER)}"
        lines = _filled(made, pattern)
        if made.takes(lines):
            return lines, "moved"
    return [], "moved"


_TRIES = 5
FORM_STEPS: dict[str, Step] = {
    **{name: _step(name, rows) for name, rows in TABLES.items()},
    "moved": moved,
}
"""The steps of the tables, by their features."""
