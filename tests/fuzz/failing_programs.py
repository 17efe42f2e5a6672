# SPDX-License-Identifier: Apache-2.0
"""Random programs that fail half-way, in loops or outside of them.

``python -m tests.fuzz.failing_programs --programs 300`` runs as many. An index out of
range, a singular matrix or one that has no root is met at a random place, after a
random turn: what NumPy raises is raised, and all arrays hold what NumPy leaves in them.
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

from nfuser.errors import HostError, NfuserError
from tests.fuzz.comparing import is_refusal
from tests.fuzz.given import Given, kinds
from tests.fuzz.growing import SHAPES, Program
from tests.fuzz.loaded import loaded
from tests.fuzz.on_device import BACKENDS, fused_for
from tests.fuzz.write_programs import outcome, require_same
from tests.fuzz.write_steps import writing_steps

_BEYOND = (0, -1, 777)


def generate(seed: int) -> tuple[str, int]:
    """Return the text of a program that fails, and how many axes it is for."""
    rng = random.Random(seed)
    rank = rng.choice((1, 2, 2, 3))
    made = Program.begun(rng, rank)
    steps, weights = writing_steps()
    before = rng.randint(1, 4)
    for number in range(before + rng.randint(1, 3)):
        if number == before:
            made.lines += _failing(made)
        made.grow(rng.choices(steps, weights)[0])
    text = made.text().replace("(a, b, n, t)", "(a, b, n, t, k)")
    return text, rank


def _failing(made: Program) -> list[str]:
    """Return a line that fails, or a loop with such a line among others."""
    rng = made.rng
    if rng.random() < 0.3:
        return [_line(made, "1")]
    lines: list[str] = []
    for _ in range(rng.randint(1, 4)):
        trial = Program(rng, made.rank, [], dict(made.space))
        trial.grow(rng.choice(writing_steps()[0][:2]))
        lines += [line for line in trial.lines if not line.startswith(" ")]
        made.count = max(made.count, trial.count)
    lines = [line for line in lines if " = " in line or "= " in line or "(" in line]
    at = rng.choice(("i", "i // 2", "(i > 3)", "i"))
    lines.insert(rng.randint(0, len(lines)), _line(made, at))
    turns = rng.choice(("n + 5", "70", "4 + n", "9"))
    body = [f"    {line}" for line in lines]
    if rng.random() < 0.25:
        body = ["    for j in range(n):", *(f"    {line}" for line in body)]
        body.insert(rng.choice((0, len(body))), f"    {_written(made)} *= 0.5")
    return [f"for i in range({turns}):", *body]


def _written(made: Program) -> str:
    return made.rng.choice([n for n in made.arrays if n != "G"])


def _line(made: Program, turn: str) -> str:
    x = _written(made)
    forms = (
        f"{x}[k * ({turn})] = t",
        f"{x}[k[:1] + {x}.shape[0] - 1 + ({turn})] = t",
        f"{x}[k * ({turn})] += 1",
        f"np.add.at({x}, k * ({turn}), 1)",
        f"{x}[0] += np.bincount(k[:1] - ({turn}), minlength=3)[0]",
        f"np.put({x}, k[::-1] * ({turn}), t)",  # NumPy would write what precedes
        f"np.linalg.inv(np.eye(2) * (1 - ({turn})))",
        f"np.linalg.cholesky(np.eye(2) * (0.5 - ({turn})))",
    )
    return made.rng.choice(forms)


@dataclass
class Tally:
    """What calls came to."""

    failed_alike: int = 0
    in_between: int = 0  # of these, after something was written
    told_before: int = 0
    returned: int = 0
    refused: Counter[str] = field(default_factory=Counter)


def compare(text: str, seed: int, rank: int, backend: str | None, tally: Tally) -> None:
    """Run one program for two shapes; raise where it leaves what NumPy does not."""
    outside = np.arange(9.0)
    with loaded(text, f"<failing program {seed}>", np=np, G=outside) as space:
        plain = space["program"]
        fused = fused_for(backend, plain, text, outside)
        rng = random.Random(seed)
        usual = [shape for shape in SHAPES[rank] if min(shape) >= 4]
        shapes = rng.sample(usual, 2)
        for shape, kind in zip(shapes, kinds(rng), strict=False):
            given = Given.random(
                rng, shape, kind, dtypes=("f8",), on_device=backend == "cuda"
            )
            n = rng.randint(1, 4)
            for _ in range(1 if backend == "interpret" else 4):
                numbers = [n, 0.5, np.array(_BEYOND)]
                _one_call(plain, fused, given, numbers, outside, tally, text)
                given.change(rng)


def _one_call(
    plain: Any,
    fused: Any,
    given: Given,
    numbers: list[Any],
    outside: Any,
    tally: Tally,
    text: str,
) -> None:
    (held, mine), (own, theirs), (_, untouched) = (given.copies() for _ in range(3))
    before = outside.copy()
    how, wanted = outcome(plain, [*theirs, *numbers])
    after = outside.copy()
    outside[...] = before
    done, found = outcome(fused, [*mine, *numbers])
    what = f"for {[x.shape for x in mine]} {numbers}\n{text}"
    is_refused = done == "raised" and (
        is_refusal(found) or (how == "raised" and isinstance(found, NfuserError))
    )
    is_as_before = all(
        np.array_equal(x, y, equal_nan=True)
        for x, y in zip((*mine, outside), (*untouched, before), strict=True)
    )
    is_other = how == "raised" and not isinstance(found, type(wanted))
    if is_refused and (how == "returned" or (is_other and is_as_before)):
        tally.refused[str(found).partition("\n")[0][:110]] += 1
    elif how != done:
        raise AssertionError(f"{how} {wanted!r}, but {done} {found!r} {what}")
    elif how == "returned":
        tally.returned += 1
    elif is_other:
        raise AssertionError(f"{found!r} in place of {wanted!r} {what}")
    elif is_as_before and not isinstance(found, HostError):
        tally.told_before += 1
    else:
        pairs = zip((*theirs, after), (*mine, outside), strict=True)
        for number, (one, other) in enumerate(pairs):
            require_same(one, other, f"array {number} after {found!r} {what}")
        if not given.is_same_around((own, theirs), (held, mine)):
            raise AssertionError(f"written beside the arrays {what}")
        tally.failed_alike += 1
        tally.in_between += not is_as_before
    outside[...] = after


def main() -> int:
    """Run as many programs as asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--backend", choices=BACKENDS, default="cpu")
    given = parser.parse_args()
    tally, wrong = Tally(), 0
    for seed in range(given.first, given.first + given.programs):
        text, rank = generate(seed)
        try:
            compare(text, seed, rank, given.backend, tally)
        except Exception as error:  # noqa: BLE001 (each is a fault to be told)
            wrong += 1
            sys.stdout.write(f"program {seed}: {type(error).__name__}: {error}\n")
            if not isinstance(error, AssertionError):
                sys.stdout.write(text)
    sys.stdout.write(
        f"{tally.failed_alike} calls failed as NumPy does, {tally.in_between} of them "
        f"after something was written; {tally.told_before} were told before, "
        f"{tally.returned} returned, {sum(tally.refused.values())} refused; "
        f"{wrong} programs wrong\nrefused: {dict(tally.refused.most_common(12))}\n"
    )
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
