# SPDX-License-Identifier: Apache-2.0
"""Random loops along an axis: recurrences, both ways, against plain NumPy.

``python -m tests.fuzz.sweep_programs --programs 300`` runs as many. Each turn writes
slices of arrays at its own place, and reads slices a few places away, before and
behind; what comes out is compared bit by bit, and what the arguments hold then.
"""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import argparse
import importlib.util
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser
from nfuser.errors import NfuserError
from tests.fuzz.comparing import is_refusal
from tests.fuzz.given import Given, integers, kinds
from tests.fuzz.seen import looked_at

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = (
    *((6, 3), (9, 1), (2, 17), (12, 70), (1, 5), (4, 300), (33, 4)),
    *((7, 7), (2, 2), (40, 40), (5, 5), (70, 70)),
)
LARGE = ((700, 300),)  # which take an interpreter too long, and others long
_SMALL = 0.8
ARRAYS = ("a", "b", "c", "y")
_RANGES = (
    "range(1, n)",
    "range(n)",
    "range(2, n - 1)",
    "range(n - 1, -1, -1)",
    "range(n - 2, -1, -1)",
    "range(n - 2, 0, -1)",
    "range(1, n, 2)",
    "range(n - 1, 0, -2)",
    "range(2, n, 1)",
    "range(m)",
    "reversed(range(0, n, 2))",
    "reversed(range(1, n - 1))",
)
_FAR = (  # places that are not some steps away, or more of them
    *("n - 1 - k", "k - m", "0", "-1", "-k", "k // 2", "k % 3", "-k - 1", "m", "m - k"),
    *(
        "k - 3",
        "k - 4",
        "k - 9",
        "min(k + 2, n - 1)",
        "max(k - m, 0)",
        "k % n",
        "2 * k - n",
    ),
    *("(k + m) % n", "k * m % n", "n // 2", "abs(k - 2)"),
)
SQUARE = "# of as many rows as columns"
_BESIDE = {"1:": ":-1", ":-1": "1:", "1:-1": ":-2"}  # as many elements, but others


def across(rank: int, axis: int) -> int:
    """Return another axis than that of a loop, of those that are longer than two."""
    return rank - 1 if axis < rank - 1 else max(rank - 2, 0)


class _Writer:
    """A random function of four arrays, of which the last is its own."""

    def __init__(self, seed: str) -> None:
        rng = self._rng = random.Random(seed)
        self.rank = rng.choice((1, 2, 2, 2, 3))
        self.axis = rng.randrange(self.rank)
        self.first = self.axis
        self.rest = self._rest()
        self.names: list[str] = []
        self.written = "y"
        self.is_wide = rng.random() < 0.08  # rows are parts of one row

    def _rest(self) -> list[str]:
        """Return the slices of the other axes, alike for most rows that are read."""
        cut = self._rng.random()
        choices = (":",) if cut < 0.4 else ("1:", ":-1", ":", "1:-1", "::2")
        return [self._rng.choice(choices) for _ in range(self.rank - 1)]

    def text(self) -> str:
        """Return the function."""
        rng = self._rng
        made = rng.choice(("np.zeros_like(a)", "a * 0.5", "b.copy()"))
        lines = ["def program(a, b, c, m):", f"    n = a.shape[{self.axis}]"]
        lines.append(f"    y = {made}")
        if rng.random() < 0.5:
            lines.append(f"    y{self._key('0')} = b{self._key('0')}")
        pad = "    "
        if rng.random() < 0.25:
            lines.append(f"{pad}for t in range(m):")
            pad += "    "
            if rng.random() < 0.5:
                lines.append(f"{pad}c{self._key('0')} = 0.25")
        for number in range(rng.choice((1, 1, 2, 2, 3))):
            if number and self.rank > 1 and rng.random() < 0.3:  # along another axis
                self.axis = across(self.rank, self.axis)
                if rng.random() < 0.5:
                    lines.insert(1, f"    {SQUARE}")
                else:
                    lines.append(f"{pad}n = a.shape[{self.axis}]")
            lines += self._loop(pad)
        if rng.random() < 0.2:
            squares = any(SQUARE in line for line in lines)
            parts = looked_at(rng, "a b c", self.rank, squares=squares)
            lines.insert(1, f"    {parts}")
        if rng.random() < 0.3:
            lines.append("    y = y * 0.5 + a")
        lines.append(f"    return {rng.choice(('y', 'y, a', 'b, y', 'y + b'))}")
        return "\n".join(lines) + "\n"

    def _loop(self, pad: str) -> list[str]:
        rng = self._rng
        lines = [f"{pad}for k in {rng.choice(_RANGES)}:"]
        self.names = []
        for number in range(rng.randint(1, 3)):
            if rng.random() < 0.3:
                lines.append(f"{pad}    t{number} = {self._value(2)}")
                self.names.append(f"t{number}")
            lines += (f"{pad}    {line}" for line in self._statement())
        return lines

    def _statement(self) -> list[str]:
        """Return an assignment, or an update: of a row, of a name of it, of a part."""
        rng = self._rng
        target = self._target()
        value, form = self._value(2), rng.random()
        if form < 0.6:
            return [f"{target} = {value}"]
        update = f"{rng.choice('+-*')}= {value}"
        if form < 0.85:
            return [f"{target} {update}"]
        if form < 0.92:
            return [f"row = {target}", f"row {update}"]
        if form < 0.95:
            test = rng.choice(("k > 2", "k % 2 == 1", "k == m", f"{self._leaf()} > 0"))
            test = test if self.rank == 1 or test[0] == "k" else "m > 1"
            return [f"if {test}:", f"    {target} {update}"]
        return [f"{target}[...] {update}"]

    def _key(self, place: str, *, beside: bool = False) -> str:
        return f"[{', '.join(self._keys(place, beside=beside))}]"

    def _keys(self, place: str, *, beside: bool) -> list[str]:
        rest = [_BESIDE.get(part, part) for part in self.rest] if beside else self.rest
        place = f"{place} : {place} + 1" if self.is_wide else place
        return [*rest[: self.axis], place, *rest[self.axis :]]

    def _at(self, gap: int) -> str:
        return "k" if not gap else f"k {'+' if gap > 0 else '-'} {abs(gap)}"

    def _target(self) -> str:
        rng = self._rng
        name = self.written = rng.choice(("a", "b", "y", "y"))
        place = self._at(rng.choice((0, 0, 0, 0, 0, 1)))
        place = rng.choice(_FAR) if rng.random() < 0.06 else place
        return name + self._key(place, beside=rng.random() < 0.08)

    def _value(self, depth: int) -> str:
        rng = self._rng
        if not depth or rng.random() < 0.2:
            return self._leaf()
        one, two = self._value(depth - 1), self._value(depth - 1)
        form = rng.random()
        if form < 0.1:
            return f"np.where({one} > {two}, {one}, {self._leaf()})"
        if form < 0.15:
            return f"np.sqrt(np.abs({one}))"
        if form < 0.2:
            fold = rng.choice(("np.abs({0})", "np.max({0})", "np.flip({0})", "-({0})"))
            return fold.format(one) if self.rank > 1 else f"min({one}, {two})"
        return f"({one} {rng.choice(('+', '-', '*', '*'))} {two})"

    def _leaf(self) -> str:
        rng = self._rng
        if rng.random() < 0.25:
            return rng.choice(("0.5", "0.25", "1.5", "k", "0.125"))
        if self.names and rng.random() < 0.3:
            return rng.choice(self.names)
        gap = rng.choice((-1, -1, -1, 0, 0, 1, -2))
        if self.rank == 2 and rng.random() < 0.08:  # across, which fits squares alone
            axis, self.axis = self.axis, 1 - self.axis
            crossed = rng.choice(ARRAYS) + self._key(self._at(gap))
            self.axis = axis
            return crossed
        beside = rng.random() < 0.25
        place = rng.choice(_FAR) if rng.random() < 0.1 else self._at(gap)
        name = self.written if rng.random() < 0.3 else rng.choice(ARRAYS)
        if self.rank == 2 and rng.random() < 0.05:
            keys = self._keys(place, beside=beside)
            return f"{name}.T[{', '.join(reversed(keys))}]"
        return name + self._key(place, beside=beside)


def generate(seed: int) -> tuple[str, int, int]:
    """Return the text of a program, how many axes its arrays have, and which it is.

    Of some programs the first is taken that NumPy runs for most sizes.
    """
    made = ("", 0, 0)
    for number in range(_TRIES):
        writer = _Writer(f"{seed} {number}")
        made = writer.text(), writer.rank, writer.first
        sizes = ((7, 7), (2, 2), (5, 5)) if SQUARE in made[0] else SIZES[:5]
        if sum(_runs(*made, size) for size in sizes) > len(sizes) // 2:
            break
    return made


_TRIES = 12
_RAISED = "out of range"


def _runs(text: str, rank: int, axis: int, sizes: tuple[int, int]) -> bool:
    space: dict[str, Any] = {"np": np}
    exec(text, space)  # noqa: S102 (programs are text)
    rng = random.Random(0)
    arrays = _arrays(rng, sizes, rank, axis, rng)
    return _outcome(space["program"], [*arrays, 2])[0] == "returned"


def _arrays(
    rng: random.Random,
    sizes: tuple[int, int],
    rank: int,
    axis: int,
    kind: random.Random,
) -> Any:
    n, m = sizes
    shape = [2, m][3 - rank :] if rank < 3 else [2, m]
    shape.insert(axis, n)
    dtypes = [kind.choice(("f8", "f8", "f8", "f4", "i8", "i4"))] * 3
    if kind.random() < 0.2:
        dtypes = [kind.choice(("f8", "f8", "f4", "i8")) for _ in range(3)]
    return [(integers(rng, 8, tuple(shape)) / 4).astype(dtype) for dtype in dtypes]


def loaded(text: str, folder: Path, name: str) -> Any:
    """Return the function of a program, which is written to a file of its own."""
    path = folder / f"{name}.py"
    path.write_text(f"import numpy as np\n\n\n{text}")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.program


def _outcome(function: Any, given: list[Any]) -> tuple[str, Any]:
    try:
        with np.errstate(all="ignore"):
            return "returned", function(*given)
    except (NfuserError, ArithmeticError, ValueError, IndexError, TypeError) as error:
        return "raised", error


def compare(
    seed: int,
    backend: str | None,
    folder: Path,
    shapes: int = 2,
    write: Callable[[int], tuple[str, int, int]] = generate,
) -> Counter[str]:
    """Run one program on arrays of several shapes; return what became of the calls."""
    text, rank, axis = write(seed)
    plain = loaded(text, folder, f"sweep{seed}")
    fused = nfuser.fuse(plain, backend=backend)
    rng = random.Random(seed)
    seen: Counter[str] = Counter()
    how = ""
    is_small = backend == "interpret" or rng.random() < _SMALL
    every = SIZES if is_small else (*SIZES, *LARGE)
    if SQUARE in text:
        every = tuple(sizes for sizes in every if sizes[0] == sizes[1])
    for sizes, kind in zip(rng.sample(every, len(every)), kinds(rng), strict=False):
        if sum(n for way, n in seen.items() if way != _RAISED) >= shapes:
            break
        given, turns = Given.of(kind, _arrays(rng, sizes, rank, axis, kind)), 0
        for _ in range(1 if backend == "interpret" else 3):
            turns = rng.randint(1, 3)
            what = f"seed {seed}, sizes {sizes}\n{text}"
            how = _call(plain, fused, given, turns, what)
            if how == _RAISED:
                break
            given.change(rng, 4)
        if how:
            seen[how] += 1
            continue
        kernels = fused.kernels(*given.copies()[1], turns)
        usual = ("chain", "sweep")
        found_kinds = (w for w in usual if any(w in str(k.schedule) for k in kernels))
        seen[next(found_kinds, "launches")] += 1
    return seen


def _call(plain: Any, fused: Any, given: Given, turns: int, what: str) -> str:
    """Compare one call; return why it could not be compared, if so."""
    (held, mine), (own, theirs) = (given.copies() for _ in range(2))
    how, wanted = _outcome(plain, [*theirs, turns])
    if how == "raised":  # an index out of range, which kernels do not look for
        return _RAISED
    done, found = _outcome(fused, [*mine, turns])
    if done == "raised":
        if not is_refusal(found):
            raise found
        REFUSALS[str(found).partition("\n")[0]] += 1
        return "refused"
    pairs = zip((*_listed(wanted), *own), (*_listed(found), *held), strict=True)
    for number, (one, other) in enumerate(pairs):
        np.testing.assert_array_equal(other, one, f"value {number}, {what}")
        assert other.dtype == one.dtype, what
    return ""


def _listed(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


REFUSALS: Counter[str] = Counter()


def main(
    write: Callable[[int], tuple[str, int, int]] = generate, about: str | None = __doc__
) -> int:
    """Run programs, and say what became of them."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--backend", choices=("cpu", "interpret"), default="cpu")
    given = parser.parse_args()
    backend = None if given.backend == "cpu" else given.backend
    seen: Counter[str] = Counter()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(given.seed, given.seed + given.programs):
            try:
                seen += compare(seed, backend, Path(folder), write=write)
            except Exception as error:  # noqa: BLE001 (all are counted)
                wrong += 1
                sys.stdout.write(f"seed {seed}: {type(error).__name__}: {error}\n")
    sys.stdout.write(f"{wrong} wrong; {dict(seen)}\n{REFUSALS.most_common(5)}\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
