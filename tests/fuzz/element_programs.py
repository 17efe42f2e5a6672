# SPDX-License-Identifier: Apache-2.0
"""Random loops over single elements: tables, sweeps over grids, branches, recurrences.

``python -m tests.fuzz.element_programs --programs 300`` runs as many. Each turn reads
elements of arrays at places that loops count, or that other elements name, and writes
some; what comes out is compared bit by bit, and what the arguments hold then.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from typing import Any

import numpy as np

import nfuser
from nfuser.errors import NfuserError
from tests.fuzz.classic_programs import classic
from tests.fuzz.comparing import is_refusal
from tests.fuzz.given import Given, integers, kinds
from tests.fuzz.loaded import loaded

SIZES = ((6, 5), (9, 1), (2, 17), (12, 9), (1, 5), (4, 12))
LONG = ((3, 35),)  # of which loops may be thousands of statements
_SHORT = 0.8
_RANGES = (
    *("range(1, {0})", "range({0})", "range({0} - 1)", "range({0} - 2, -1, -1)"),
    *("range({0} - 1, 0, -1)", "range(1, {0} - 1)", "range(0, {0}, 2)"),
    *("reversed(range(0, {0}, 2))", "reversed(range({0}))", "range(1, {0}, 3)"),
)
_INNER = (  # bounded by the turn of the loop around
    *(
        "range(i)",
        "range(i + 1)",
        "range(min(i, m))",
        "range(i, n)",
        "range(i, -1, -1)",
    ),
    *("range(max(0, i - 2), i + 1)", "range(min(n, m))", "range(n - i)"),
    *("range(p[i])", "range(p[i], n)", "range(p[i - 1], p[i] + 1)"),
    *("range(p[i], p[i - 1] + 1)", "range(p[i] + 1, n)", "range(p[0], p[-1])"),
)
_FAR = (  # places that two loops count, which may be behind the first
    *(
        "i - j",
        "j - i",
        "n - 1 - i",
        "n - 1 - j",
        "i - j - 1",
        "2 * i - j",
        "i - 2 * j",
    ),
    *("(i + j) % n", "(i - j) % n", "(2 * i + j) % n", "i // 2", "i * j % n", "-1 - i"),
    *("n - i - j - 1", "i + j", "i + j - n", "(i - j) // 2", "-(i + j) // 2", "j - n"),
    *("max(i - j, 0)", "min(i + j, n - 1)", "abs(i - j)", "p[i] - 1", "p[j % n]"),
)
_PASSED = (  # numbers that change places, or go round
    "r, s = s, r",
    "r, s = s, r * 0.5 + {0}",
    "r, s = s * 0.5 + {0}, r",
    "q, r, s = r, s, q",
    "q, r, s = s, q, r * 0.5 + {0}",
    "q, r = r, q - s",
    "r, (q, s) = q, (s, r)",
    "q = r\n{1}r = s\n{1}s = q * 0.5 + {0}",
    "s = r\n{1}r = s - {0}",
    "k = (k + 1) % n\n{1}s = s * 0.5 + x[k]",
    "k, g = g, (k + j) % n\n{1}x[g] = x[k] * 0.5 + {0}",
    "k = i - k\n{1}s = s * 0.5 + x[k % n]",
)
_LEFT = (  # how a turn, or all of them, may end
    "if {0} > {1}:\n{2}    continue",
    "if {0} > {1}:\n{2}    s = s * 0.5 + 1\n{2}    continue",
    "if {0} > {1}:\n{2}    break",
    "if i % 2 == 0:\n{2}    if {0} > {1}:\n{2}        continue\n{2}    r = s * 0.5",
    "if j > 1:\n{2}    if j % 2 == 1:\n{2}        continue\n{2}    s = s * 0.5 - j",
    "if {0} > {1}:\n{2}    r = j * 1.0\n{2}elif i == 1:\n{2}    s = r + i",
    "if {0} > {1}:\n{2}    r = j * 1.0\n{2}else:\n{2}    q = s",
    "if {0} > {1}:\n{2}    q = s * 0.5",
    "while 2 < s < 99:\n{2}    s = s * 0.5 - 1",
    "for l in range(j):\n{2}    s = s * 0.5 + x[(l + i) % n]",
    "if i == j:\n{2}    r = s * 0.5\n{2}    break",
)
_OWN = (
    *("y = a.copy()", "y = np.zeros((n, m))", "y = b * 2", "y = a - b"),
    *("y = np.repeat(b, 2, axis=1)[:, 1::2]", "y = (a + b)[::-1]"),
    "y = np.concatenate((a, b, a))[n - 1 : 2 * n - 1]",
    *("y = np.zeros((n, m), int)", "y = a > b", "y = np.zeros((n, m), np.float32)"),
    *("y = np.zeros((m, n)).T", "y = np.full((n, m), 0.25)", "y = np.ones_like(b)"),
)
_LOOKED_AT = (
    *("x = x[::-1]", "a = a[::-1]", "b = b[:, ::-1]", "a = a[:, ::-1]", "b = b[::-1]"),
    *("x = np.repeat(x, 2)[::2]", "x = np.repeat(x, 3)[-1::-3]", "p = p[::-1]"),
    *("b = np.repeat(b, 2, axis=1)[:, ::-2]", "a = np.repeat(a, 2, axis=0)[1::2]"),
)


class _Writer:
    """A random function of two tables, a row, numbers that are indices, and sizes."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._numbers: list[str] = []
        self._depth = 0

    def text(self) -> str:
        """Return the function."""
        rng = self._rng
        self._lines = ["def program(a, b, x, p, n, m):"]
        self._put(
            0,
            rng.choice(
                ("s = 0.0", "s = x[0] * 0.5", "s = 1.5", "s = x.sum()", "s = a[0, 0]")
            ),
        )
        self._put(0, "q, r, k, g = s * 0.5 + 1, s - 2, 0, n - 1")
        self._put(0, rng.choice(_OWN))
        for line in rng.sample(_LOOKED_AT, rng.choice((0, 0, 0, 0, 1))):
            self._put(0, line)
        for _ in range(rng.choice((1, 1, 1, 2))):
            self._nest(0)
        results = ("y, s, r, q", "s, y[0], r, k", "y * s, a, q, g", "x, y.sum(), s, r")
        result = rng.choice(results)
        self._put(0, f"return {result}")
        return "\n".join(self._lines) + "\n"

    def _put(self, depth: int, line: str) -> None:
        self._lines.append("    " * (depth + 1) + line)

    def _nest(self, depth: int) -> None:
        rng = self._rng
        if rng.random() < 0.2:
            self._put(depth, f"for t in range({rng.randint(1, 3)}):")
            depth += 1
        self._put(depth, f"for i in {rng.choice(_RANGES).format('n')}:")
        self._numbers = ["s"]
        if rng.random() < 0.4:
            self._statements(depth + 1, "i", "i", rng.randint(1, 2))
            self._numbers = ["s"]
        inner = rng.choice(("m", "m", "n"))
        turns = rng.choice(_RANGES).format(inner)
        column = "j" if inner == "m" else "0"
        if rng.random() < 0.35:
            turns, column = rng.choice(_INNER), "j % m"
        self._put(depth + 1, f"for j in {turns}:")
        self._statements(depth + 2, "i", column, rng.randint(1, 3))
        self._numbers = ["s"]  # there may have been no turn
        if rng.random() < 0.3:
            self._statements(depth + 1, "i", "i", 1)

    def _statements(self, depth: int, row: str, column: str, count: int) -> None:
        at = row, column
        for number in range(count):
            form = self._rng.random()
            is_inside = row != column
            if is_inside and form < 0.14:
                passed = self._rng.choice(_PASSED)
                lead = "    " * (depth + 1)
                self._put(depth, passed.format(self._value(at, 1), lead))
            elif is_inside and form < 0.28:
                left = self._rng.choice(_LEFT)
                lead = "    " * (depth + 1)
                one, two = self._value(at, 1), self._leaf(at)
                self._put(depth, left.format(one, two, lead))
            elif form < 0.38:
                self._put(depth, f"v{number} = {self._value(at, 2)}")
                self._numbers.append(f"v{number}")
            elif form < 0.48:
                self._put(depth, f"s = s * 0.5 + {self._value(at, 1)}")
            elif form < 0.49:  # several at once
                lines = (
                    "x[p] += 1",
                    "x[p[:2]] = s",
                    "np.add.at(x, p, 0.5)",
                    "y[{0}] = s",
                )
                line = self._rng.choice((*lines, "y[{0}] = b[{0}]", "x[:2] = x[1:3]"))
                self._put(depth, line.format(row))
            elif form < 0.52:  # elements as they were before
                self._put(depth, "w = y.copy()")
                self._put(depth, f"{self._target(at)} = {self._value(at, 1)}")
                self._put(depth, self._rng.choice(("w[0, 0] = s", "s = s + w[0, 0]")))
                self._put(depth, "s = s * 0.5 + w[-1, 0]")
            elif form < 0.66:
                self._put(depth, f"if {self._value(at, 1)} > {self._value(at, 1)}:")
                self._put(depth + 1, f"{self._target(at)} = {self._value(at, 2)}")
                if self._rng.random() < 0.5:
                    self._put(depth, "else:")
                    self._put(depth + 1, f"{self._target(at)} = {self._value(at, 1)}")
            else:
                sign = self._rng.choice(("=", "=", "=", "+=", "-="))
                self._put(depth, f"{self._target(at)} {sign} {self._value(at, 2)}")

    def _target(self, at: tuple[str, str]) -> str:
        row, column = at
        if row == column:
            return self._rng.choice((f"x[{row}]", f"y[{row}, 0]", "x[0]"))
        if self._rng.random() < 0.1:
            return self._rng.choice(
                (
                    f"a.T[{column}, {row}]",
                    f"y[{row}][{column}]",
                    f"y[{row}, {column}, ...]",
                    f"y[::-1][{row}, {column}]",
                    f"a[{row}, {column} : {column} + 1]",
                    f"y[:, {column}][{row}]",
                    f"y[-1 - {row}, -1 - {column}]",
                )
            )
        places = (f"[{row}, {column}]",) * 4 + (f"[{row} - 1, {column}]", "[0, 0]")
        if self._rng.random() < 0.2:
            far = self._rng.choice(_FAR)
            return self._rng.choice(
                (f"x[{far}]", f"y[{far}, {column}]", f"a[{far}, 0]")
            )
        return self._rng.choice(("a", "y", "y")) + self._rng.choice(places)

    def _value(self, at: tuple[str, str], depth: int) -> str:
        rng = self._rng
        if not depth or rng.random() < 0.2:
            return self._leaf(at)
        one, two = self._value(at, depth - 1), self._value(at, depth - 1)
        if (form := rng.random()) < 0.1:
            return f"np.where({one} > {two}, {one}, {self._leaf(at)})"
        if form < 0.2:
            more = f", {rng.choice('qrs')}" if rng.random() < 0.4 else ""
            return f"{rng.choice(('min', 'max'))}({one}, {two}{more})"
        return f"({one} {rng.choice(('+', '-', '*', '+'))} {two})"

    def _leaf(self, at: tuple[str, str]) -> str:
        rng, (row, column) = self._rng, at
        if (form := rng.random()) < 0.2:
            return rng.choice(
                ("0.5", "0.25", "1.5", row, "2", "j" if row != column else row)
            )
        if form < 0.36:
            return rng.choice((*self._numbers, "r", "q", "s"))
        if form < 0.46 and row != column:
            far = rng.choice(_FAR)
            return rng.choice(
                (f"x[{far}]", f"x[{far}]", f"b[{far}, 0]", f"y[{far}, -1]")
            )
        if form < 0.58:
            return rng.choice((f"x[{row}]", "x[p[0]]", f"x[{row} - 1]", f"x[p[{row}]]"))
        if row == column:
            return f"{rng.choice('ab')}[{row}, 0]"
        if rng.random() < 0.1:
            x = rng.choice("aby")
            return rng.choice(
                (
                    f"{x}.T[{column}, {row}]",
                    f"{x}[{row}][{column}]",
                    f"{x}[::-1][{row}, {column}]",
                    f"{x}[{row}, ::-1][{column}]",
                    f"{x}[{row}].sum()",
                    f"{x}[{row}, [0, -1]].sum()",
                    "x[p].sum()",
                    f"{x}[{row}, :2].max()",
                    f"float({x}[{row}, {column}] > 0)",
                    f"({x}[{row}, {column}] > s) * 1.5",
                    f"int({x}[{row}, {column}])",
                    f"abs({x}[{row}, {column}])",
                    f"{x}[-1 - {row}, -1 - {column}]",
                    f"max({x}[{row}, 0], {x}[0, {column}], 0.5)",
                    f"({x}[{row}, {column}] if {row} > 1 else s)",
                )
            )
        gaps = (row, row, f"{row} - 1"), (column, column, f"{column} - 1")
        place = ", ".join(rng.choice(gap) for gap in gaps)
        return f"{rng.choice('aby')}[{place}]"


def generate(seed: int) -> str:
    """Return the text of a program."""
    rng = random.Random(f"classic {seed}")
    return classic(rng) if rng.random() < _CLASSIC else _Writer(seed).text()


_CLASSIC = 0.35  # so often, programs as others have written them


def _arrays(rng: random.Random, n: int, m: int, kind: random.Random) -> list[Any]:
    dtype = kind.choice(("f8", "f8", "f8", "i8", "f4"))
    shapes = ((n, m), (n, m), (n,))
    found = [(integers(rng, 8, shape) / 4).astype(dtype) for shape in shapes]
    least = rng.choice((0, 0, -n))
    found.append(np.asarray([rng.randrange(least, n) for _ in range(n)]))
    return found


def _outcome(function: Any, given: list[Any]) -> tuple[str, Any]:
    try:
        with np.errstate(all="ignore"):
            return "returned", function(*given)
    except (NfuserError, ArithmeticError, ValueError, IndexError, TypeError) as error:
        return "raised", error


def compare(seed: int, backend: str | None, shapes: int = 2) -> Counter[str]:
    """Run one program on arrays of several shapes; return what became of the calls."""
    text = generate(seed)
    rng = random.Random(seed)
    seen: Counter[str] = Counter()
    with loaded(text, f"<element program {seed}>", np=np) as space:
        plain = space["program"]
        fused = nfuser.fuse(plain, backend=backend)
        every = SIZES if rng.random() < _SHORT else (*SIZES[1:], *LONG)
        for sizes, kind in zip(rng.sample(every, len(every)), kinds(rng), strict=False):
            if sum(n for way, n in seen.items() if way != _RAISED) >= shapes:
                break
            *tables, places = _arrays(rng, *sizes, kind)
            given = Given.of(kind, tables)
            how = ""
            for _ in range(1 if backend == "interpret" else 3):
                what = f"seed {seed}, {sizes}\n{text}"
                how = _call(plain, fused, given, (places, *sizes), what)
                if how == _RAISED:
                    break
                given.change(rng, 4)
            if how == "serial":
                kernels = fused.kernels(*given.copies()[1], places, *sizes)
                is_serial = any("serial" in str(k.schedule) for k in kernels)
                how = "serial" if is_serial else "launches"
            seen[how] += 1
    return seen


def _call(
    plain: Any, fused: Any, given: Given, more: tuple[Any, ...], what: str
) -> str:
    (held, mine), (own, theirs) = (given.copies() for _ in range(2))
    how, wanted = _outcome(plain, [*theirs, *more])
    if how == "raised":  # an index out of range, which kernels do not look for
        return _RAISED
    done, found = _outcome(fused, [*mine, *more])
    if done == "raised":
        if not is_refusal(found):
            raise found
        REFUSALS[str(found).partition("\n")[0]] += 1
        return "refused"
    pairs = zip((*wanted, *own), (*found, *held), strict=True)
    for number, (one, other) in enumerate(pairs):
        _require_same(one, other, f"value {number}, {what}")
    return "serial"


def _require_same(wanted: Any, found: Any, what: str) -> None:
    """Refuse what differs: singles by more than what may be rounded otherwise."""
    wanted, found = np.asarray(wanted), np.asarray(found)
    if wanted.dtype.char == "f" or not wanted.ndim:
        np.testing.assert_allclose(found, wanted, 1e-4, 1e-4, err_msg=what)
    elif wanted.dtype.char == "d" and np.abs(wanted).max(initial=0) > _EXACT:
        np.testing.assert_allclose(found, wanted, 1e-13, err_msg=what)  # of a sum
    else:
        np.testing.assert_array_equal(found, wanted, what)


_RAISED = "out of range"
_EXACT = 2.0**36  # beyond it a sum of some sixteenths is rounded
REFUSALS: Counter[str] = Counter()


def main() -> int:
    """Run programs, and say what became of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--backend", choices=("cpu", "interpret"), default="cpu")
    given = parser.parse_args()
    seen: Counter[str] = Counter()
    wrong = 0
    for seed in range(given.first, given.first + given.programs):
        try:
            seen += compare(seed, given.backend)
        except Exception as error:  # noqa: BLE001 (all are counted)
            wrong += 1
            sys.stdout.write(f"seed {seed}: {type(error).__name__}: {error}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{wrong} wrong; {dict(seen)}\n{REFUSALS.most_common(5)}\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
