# SPDX-License-Identifier: Apache-2.0
"""Random programs that assign: views, parts, masks, overlaps; against plain NumPy.

``python -m tests.fuzz.assign_programs --programs 300`` runs as many; each is a function
in NumPy's words that is run fused and plain, for arrays of several shapes, in both
memory orders. What it returns is compared, and what its arguments hold then.
"""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nfuser.errors import NfuserError
from tests.fuzz.comparing import is_refusal
from tests.fuzz.given import integers, kinds
from tests.fuzz.on_device import BACKENDS, fused_for

SHAPES = ((6, 7), (5, 33), (17, 5), (1, 6), (4, 1), (0, 3), (64, 65))
DTYPES = ("f8", "f8", "f4", "i8", "c16")
OPERATORS = ("=", "=", "=", "+=", "-=", "*=")


@dataclass
class Program:
    """The lines of a function, grown while NumPy runs them."""

    rng: random.Random
    lines: list[str] = field(default_factory=list)
    arrays: dict[str, Any] = field(default_factory=dict)
    features: Counter[str] = field(default_factory=Counter)

    @property
    def text(self) -> str:
        """The function."""
        made = [n for n in self.arrays if n not in ("a", "b")] or ["b"]
        returned = (
            ", ".join((*made, "a")) if self.rng.random() < 0.7 else ", ".join(made)
        )
        body = "\n".join(f"    {line}" for line in self.lines)
        return f"def program(a, b):\n{body}\n    return ({returned},)\n"


def generate(seed: int) -> tuple[str, Counter[str]]:
    """Return the text of a program, and which features it has."""
    rng = random.Random(seed)
    made = Program(rng)
    x = np.arange(42.0).reshape(6, 7) % 5
    made.arrays = {"a": x.copy(), "b": x[::-1] * 2}
    for _ in range(rng.randint(2, 7)):
        step = rng.choices(_STEPS, (2, 2, 7, 1, 1, 1, 4))[0]
        lines, feature = step(made)
        for line in lines:
            trial = dict(made.arrays)
            try:
                with np.errstate(all="ignore"):
                    exec(line, {"np": np}, trial)  # noqa: S102 (programs are text)
            except (ValueError, IndexError, TypeError):
                break
            made.arrays = trial
            made.lines.append(line)
            made.features[feature] += 1
    if not made.lines:
        made.lines.append("a[1:] = b[1:]")
    return made.text, made.features


def _new_name(made: Program, letter: str) -> str:
    return f"{letter}{len(made.lines)}"


def _local(made: Program) -> tuple[list[str], str]:
    rng = made.rng
    x = rng.choice(list(made.arrays))
    how = rng.choice(
        (
            f"np.zeros_like({x})",
            f"{x} * 2",
            f"{x}.copy()",
            f"np.ones_like({x})",
            f"np.maximum({x}, 1)" if made.arrays[x].dtype.kind != "c" else f"{x} + 1",
            f"{x}.T + 1",
        )
    )
    return [f"{_new_name(made, 'z')} = {how}"], "local"


_PARTS = [
    ":",
    "1:",
    ":-1",
    "1:-1",
    "::2",
    "1::2",
    "::-1",
    ":2",
    "0",
    "-1",
    "2:",
    "-2:",
    "::3",
]


def _key(rng: random.Random, ndim: int) -> str:
    parts = [rng.choice(_PARTS) for _ in range(rng.randint(1, ndim) if ndim else 0)]
    if not parts or rng.random() < 0.1:
        parts.append("...")
    if rng.random() < 0.08:
        parts.insert(0, "None")
    return ", ".join(parts)


def _view(made: Program) -> tuple[list[str], str]:
    rng = made.rng
    x = rng.choice([n for n, v in made.arrays.items() if v.ndim])
    how = rng.choice((f"{x}[{_key(rng, made.arrays[x].ndim)}]", f"{x}.T"))
    name = _new_name(made, "v")
    return [f"{name} = {how}", f"{name} = {name} + 0"][
        : 1 + (rng.random() < 0.1)
    ], "view"


def _value(made: Program, shape: tuple[int, ...], whole: str) -> str:
    """Return an expression whose shape stretches to ``shape``."""
    rng = made.rng
    found: list[str] = [str(rng.randint(-3, 3)), f"{rng.randint(1, 5)}.0"]
    for _ in range(12):
        name = whole if rng.random() < 0.4 else rng.choice(list(made.arrays))
        held = made.arrays[name]
        if not held.ndim:
            continue
        text = name if rng.random() < 0.2 else f"{name}[{_key(rng, held.ndim)}]"
        if rng.random() < 0.1:
            text = f"{text}.T"
        try:
            own = eval(text, {"np": np}, dict(made.arrays)).shape
            if np.broadcast_shapes(own, shape) == shape:
                found += [text] * 4
        except (ValueError, IndexError, TypeError):
            continue
    first, second = rng.choice(found), rng.choice(found)
    form = rng.random()
    if form < 0.4:
        return first
    if form < 0.8:
        return f"{first} {rng.choice('+-*')} {second}"
    if form < 0.9:
        return f"np.where({first} == {second}, {first}, {rng.choice(found)})"
    return f"{first} + {rng.choice(list(made.arrays))}.sum()"


def _assign(made: Program) -> tuple[list[str], str]:
    rng = made.rng
    x = rng.choice([n for n, v in made.arrays.items() if v.ndim] or ["a"])
    key = _key(rng, made.arrays[x].ndim)
    try:
        shape = eval(f"{x}[{key}]", {"np": np}, dict(made.arrays)).shape
    except IndexError:
        return [], "assign"
    op = rng.choice(OPERATORS)
    value = _value(made, shape, x)
    if op != "=" and rng.random() < 0.2:
        return [f"{x} {op} {_value(made, made.arrays[x].shape, x)}"], "update"
    return [f"{x}[{key}] {op} {value}"], "assign " + op


def _mask(made: Program) -> tuple[list[str], str]:
    rng = made.rng
    x = rng.choice([n for n, v in made.arrays.items() if v.ndim] or ["a"])
    y = rng.choice(list(made.arrays))
    same = made.arrays[y].shape == made.arrays[x].shape
    test = f"{y if same else x} == {rng.randint(0, 3)}"
    op = rng.choice(("=", "+="))
    if op == "+=":
        return [f"{x}[...] = np.where({test}, {x} + 1, {x})"], "choice"
    return [f"{x}[{test}] = {rng.randint(-3, 3)}"], "mask"


def _fold(made: Program) -> tuple[list[str], str]:
    x = made.rng.choice(list(made.arrays))
    return [f"{_new_name(made, 's')} = {x}.sum()"], "fold"


def _element(made: Program) -> tuple[list[str], str]:
    """Read a number, which later assignments leave as it is."""
    arrays = [n for n, v in made.arrays.items() if v.ndim]
    x = made.rng.choice(arrays or ["a"])
    places = (made.rng.choice(("0", "-1")) for _ in range(made.arrays[x].ndim))
    return [f"{_new_name(made, 'e')} = {x}[{', '.join(places)}]"], "element"


def _indices(rng: random.Random, shape: tuple[int, ...]) -> str:
    """Return an index array whose numbers are right for every shape of a call."""
    count = 1
    for n in shape:
        count *= n
    listed = [rng.choice((0, -1)) for _ in range(count)]
    return f"np.array({listed}).reshape({shape})"


def _scatter(made: Program) -> tuple[list[str], str]:
    """Assign by index arrays, whose numbers may stand more than once in them."""
    rng = made.rng
    x = rng.choice([n for n, v in made.arrays.items() if v.ndim == 2] or ["a"])
    held = made.arrays[x]
    if held.dtype.kind == "c" or held.ndim != 2:
        return [], "scatter"
    one, two = (_indices(rng, (3,)) for _ in range(2))
    column = _indices(rng, (2, 1))
    pair, mesh = f"{one}, {two}", f"np.ix_({one}, {two})"
    rows = f"slice(None), {two}"
    key = rng.choice((one, pair, f"{column}, {two}", rows, f"0, {two}", mesh))
    shape = eval(f"{x}[{key}]", {"np": np}, dict(made.arrays)).shape
    value = str(rng.randint(-3, 3))
    if len(shape) == 1 and rng.random() < 0.5:
        value = f"np.array([1, 2, {value}])"
    if rng.random() < 0.5:
        verb = rng.choice(("add", "subtract", "maximum", "minimum", "multiply"))
        listed = key if key.startswith("np.ix_") else f"({key})"
        return [f"np.{verb}.at({x}, {listed}, {value})"], "at"
    return [f"{x}[{key}] {rng.choice(OPERATORS)} {value}"], "scatter"


_STEPS = (_local, _view, _assign, _mask, _fold, _element, _scatter)


def _arrays(
    rng: random.Random, shape: tuple[int, int], kind: random.Random
) -> list[Any]:
    found: list[Any] = []
    for _ in range(2):
        dtype = kind.choice(DTYPES)
        x = integers(rng, 4, shape).astype(dtype)
        if dtype == "c16":
            x = x + 1j * x[::-1]
        layout = kind.random()
        if layout < 0.2:
            x = np.asfortranarray(x)
        elif layout < 0.35:
            wide = np.zeros((shape[0] * 2, shape[1] + 3), x.dtype)
            wide[::2, 2:-1] = x
            x = wide[::2, 2:-1]
        elif layout < 0.45:
            x = np.ascontiguousarray(x[::-1])[::-1]
        found.append(x)
    return found


def _copied(x: Any) -> Any:
    """Return a copy that lies in memory as ``x`` does."""
    base = x if x.base is None else x.base
    if base is x or not isinstance(base, np.ndarray):
        return x.copy("K")
    offset = x.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    own = base.copy("K")
    return (
        np.ndarray(x.shape, x.dtype, own.data, offset, x.strides)
        if own.flags.c_contiguous
        else x.copy("K")
    )


def _outcome(function: Any, arrays: list[Any]) -> tuple[str, Any]:
    try:
        with np.errstate(all="ignore"):
            return "returned", function(*arrays)
    except (NfuserError, ValueError, IndexError, TypeError) as error:
        return "raised", error


def compare(
    text: str, seed: int, backend: str | None, shapes: int = 3
) -> tuple[int, int]:
    """Run one program; return how many calls agreed and how many were refused."""
    space: dict[str, Any] = {"np": np}
    exec(compile(text, f"<program {seed}>", "exec"), space)  # noqa: S102 (programs are text)
    plain = space["program"]
    fused = fused_for(backend, plain, text)
    rng = random.Random(seed)
    agreed = refused = 0
    for shape, kind in zip(rng.sample(SHAPES, shapes), kinds(rng), strict=False):
        given = _arrays(rng, shape, kind)
        lies = [(str(x.dtype), x.strides) for x in given]
        mine, theirs = [_copied(x) for x in given], [_copied(x) for x in given]
        how, wanted = _outcome(plain, theirs)
        done, found = _outcome(fused, mine)
        if how == "raised":
            if done != "raised":
                raise AssertionError(f"{wanted!r} was not raised for {shape}\n{text}")
            agreed += 1
            continue
        if done == "raised":
            if not is_refusal(found):
                raise found
            refused += 1
            REFUSALS[str(found).partition("\n")[0]] += 1
            continue
        for k, (a, c) in enumerate(
            zip((*wanted, *theirs), (*found, *mine), strict=True)
        ):
            _same(
                a,
                c,
                f"value {k} for {shape} {lies}\n{text}",
            )
        for a, c in zip(wanted, found, strict=True):
            for x, y in zip(theirs, mine, strict=True):
                was = given[[id(z) for z in theirs].index(id(x))]
                is_written = not np.array_equal(was, x, equal_nan=True)
                if (c is y and a is not x) or (is_written and (a is x) != (c is y)):
                    raise AssertionError(f"identity\n{text}")
        agreed += 1
    return agreed, refused


REFUSALS: Counter[str] = Counter()


def _same(wanted: Any, found: Any, what: str) -> None:
    a, c = np.asarray(wanted), np.asarray(found)
    if a.dtype != c.dtype or a.shape != c.shape:
        raise AssertionError(
            f"{c.dtype}{c.shape} in place of {a.dtype}{a.shape}: {what}"
        )
    scale = 1e-5 if a.dtype.char in "fF" else 1e-12
    most = np.abs(a).max() if a.size else 0
    if a.dtype.kind in "fc" and not np.isfinite(most):
        return
    if not np.allclose(a, c, rtol=scale, atol=scale * most, equal_nan=True):
        raise AssertionError(f"{c}\nin place of\n{a}\n{what}")


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    """Run as many programs as asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--backend", choices=BACKENDS, default="cpu")
    given = parser.parse_args()
    agreed = refused = wrong = 0
    features: Counter[str] = Counter()
    for seed in range(given.first, given.first + given.programs):
        text, found = generate(seed)
        features += found
        try:
            one, other = compare(text, seed, given.backend)
            agreed, refused = agreed + one, refused + other
        except Exception as error:  # noqa: BLE001
            wrong += 1
            _say(f"program {seed}: {type(error).__name__}: {error}")
            if not isinstance(error, AssertionError):
                _say(text)
    _say(f"{agreed} calls agreed, {refused} refused, {wrong} programs wrong")
    _say(f"{dict(features)} {dict(REFUSALS)}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
