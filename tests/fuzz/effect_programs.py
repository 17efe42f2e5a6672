# SPDX-License-Identifier: Apache-2.0
"""Random loops whose bodies do more than compute: each effect happens in each turn.

``python -m tests.fuzz.effect_programs --programs 300`` runs as many. A call does what
plain Python does, or is refused, with arrays as they were; never does one return that
has done an effect once in place of n times. While a function is traced, all happens at
least as often; later calls, which trace nothing, may do no effect at all.
"""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import nfuser
from nfuser.errors import NfuserError
from tests.fuzz.comparing import is_refusal
from tests.fuzz.loaded import loaded

_HEAD = """\
import collections


class Box:
    def __init__(self):
        self.count, self.items = 0, []

    def note(self, x):
        self.items.append(x)

    @property
    def reads(self):
        self.count += 1
        return 1.0

    def __iadd__(self, n):
        self.count += n
        return self


def noted(kept, x):
    kept.append(1)
    return x + 1


def quiet(x, kept=[]):
    kept.append(0)
    SEEN.append(len(kept))
    return x * 0.5


def tallied(function):
    def inner(*given):
        SEEN.append("tallied")
        return function(*given)

    return inner


@tallied
def wrapped(x):
    return x - 1


def counted(n):
    for k in range(n):
        SEEN.append(k)
        yield k


TOTAL = 0


"""

_EFFECTS = {
    "append": "kept.append(1)",
    "item of a dict": "told[len(told)] = 1",
    "item of a list": "cells[0] += 1",
    "attribute": "box.count += 1",
    "method": "box.note(1)",
    "property": "a *= box.reads",
    "global": "global TOTAL\n{}TOTAL += 1",
    "call": "a[...] = noted(kept, a)",
    "default": "a[...] = quiet(a)",
    "decorated": "a[...] = wrapped(a)",
    "set": "names.add(len(names))",
    "deque": "queue.append(2)",
    "extend": "kept += [1, 2]",
    "own operator": "box += 2",
    "lambda": "(lambda: SEEN.append('lambda'))()",
    "comprehension": "[SEEN.append(k) for k in range(2)]",
    "pop": "stack.pop()",
    "setattr": "setattr(box, 'last', len(kept))",
    "delete": "del told[next(iter(told))]\n{}told[len(SEEN)] = 0\n{}SEEN.append(1)",
    "next": "SEEN.append(next(numbers))",
    "print": "print('turn', file=paper)",
    "counter": "tally['x'] += 1",
    "try": "try:\n{}    kept.append(a)\n{}finally:\n{}    SEEN.append('end')",
    "assert": "assert not box.note('asked')",
    "format": "SEEN.append(f'{len(SEEN)}')",
    "unpack": "cells[0], cells[1] = cells[1], cells[0] + 1",
    "walrus": "SEEN.append(size := len(SEEN))",
    "map": "list(map(SEEN.append, (1, 2)))",
    "generator": "kept.extend(counted(1))",
    "slice": "kept[len(kept):] = [3]",
    "draw": "a += rng.normal() if i < 20 else 0",
    "with": "with guard:\n{}    a += 1",
}
_ONLY_WRITTEN = (7, 8, 13)  # which of the things compared the program reads never
_COMPUTED = (
    "a += 1",
    "a[1:] *= 0.5",
    "s = s + a.sum()",
    "a[0] = b[i % 3]",
    "b -= a[:3]",
)
_TURNS = (
    *("for i in range(3):", "for i in range(n):", "for i in range(70):"),
    *("for i in range(n, 0, -1):", "while i < n:", "while s < 50 and i < n:"),
    "for i in range(400):",
)


def generate(seed: int) -> tuple[str, str]:
    """Return the text of a program, and the name of its effect."""
    rng = random.Random(seed)
    name = list(_EFFECTS)[seed % len(_EFFECTS)]
    turns = rng.choice(_TURNS)
    body = [rng.choice(_COMPUTED) for _ in range(rng.randint(1, 3))]
    effect = _EFFECTS[name]
    deep = "    "
    if rng.random() < 0.2 and name != "global":
        effect = f"if s > 5:\n{{}}    {effect.replace('{}', '{}    ')}"
    elif rng.random() < 0.2 and name != "global":
        effect = f"for j in range(n):\n{{}}    {effect.replace('{}', '{}    ')}"
    body.insert(rng.randint(0, len(body)), effect.replace("{}", deep * 2))
    if turns.startswith("while"):
        body.append("i = i + 1")
    declared = "    global TOTAL\n" * (name == "global")
    lines = "".join(f"{deep * 2}{line}\n" for line in body)
    lines = lines.replace(f"{deep * 2}global TOTAL\n", "")
    text = (
        f"{_HEAD}def program(a, b, n):\n{declared}    kept, box = KEPT, BOX\n"
        f"    s = a.sum()\n    i = 0\n    {turns}\n{lines}    return s, a\n"
    )
    return text, name


class _Guard:
    """Counts how often it is entered."""

    def __init__(self, seen: list[Any]) -> None:
        self._seen = seen

    def __enter__(self) -> None:
        self._seen.append("entered")

    def __exit__(self, *told: object) -> None:
        self._seen.append("left")


class _Paper:
    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> None:
        self.text += text


@dataclass
class Tally:
    """What calls came to."""

    agreed: int = 0
    refused: Counter[str] = field(default_factory=Counter)


def compare(text: str, name: str, seed: int, tally: Tally) -> None:
    """Call one program plain and fused, twice; raise where effects differ."""
    with loaded(text, f"<effect program {seed}>", np=np, SEEN=[]) as space:
        fused = nfuser.fuse(space["program"])
        for turn in range(2):
            wanted = _called(space, space["program"], turn)
            found = _called(space, fused, turn)
            before = _called(space, lambda *_: (0.0, 0.0), turn)
            # What a function does beside computing happens while it is traced.
            is_silent = turn and repr(found) == repr((*wanted[:3], *before[3:]))
            if is_refusal(found[0]):
                if found[1:3] != before[1:3]:
                    message = (
                        f"{found[0]}\nafter {found[1:3]} was left of {before[1:3]}"
                    )
                    raise AssertionError(f"{message}\n{text}")
                tally.refused[name] += 1
            elif not (is_silent or _is_as_often(found, wanted)):
                raise AssertionError(f"{found}\nin place of\n{wanted}\n{text}")
            else:
                tally.agreed += 1


def _is_as_often(found: Any, wanted: Any) -> bool:
    """Tell whether all was done as often; a trace that begins anew does it again."""
    for number, (one, other) in enumerate(zip(found, wanted, strict=True)):
        more = number in _ONLY_WRITTEN and len(one) > len(other)
        if more and one[len(one) - len(other) :] == other:
            continue
        if more and one[: len(other)] == other:
            continue
        if repr(one) != repr(other):
            return False
    return True


def _called(space: dict[str, Any], function: Any, turn: int) -> tuple[Any, ...]:
    """Return how a call ended, and all that can be seen of what it did."""
    space["SEEN"].clear()
    space["TOTAL"] = 0
    defaults = space["quiet"].__defaults__
    defaults[0].clear()
    a, b = np.arange(4.0) + turn, np.ones(3)
    box, paper, cells = space["Box"](), _Paper(), [0, 1]
    kept: list[Any] = []
    told = {0: 0}
    names: set[int] = set()
    queue = space["collections"].deque(maxlen=500)
    stack, numbers = list(range(2000)), iter(range(100_000))
    count: Counter[str] = Counter()
    drawn = np.random.default_rng(5)
    space |= {"KEPT": kept, "BOX": box, "told": told, "cells": cells, "names": names}
    space |= {"queue": queue, "stack": stack, "numbers": numbers, "paper": paper}
    space |= {"tally": count, "rng": drawn, "guard": _Guard(space["SEEN"])}
    try:
        ended: Any = tuple(np.round(x, 6) for x in function(a, b, 5))
        ended = tuple(np.asarray(x).tolist() for x in ended)
    except NfuserError as error:
        ended = error
    except Exception as error:  # noqa: BLE001 (it is compared)
        ended = type(error).__name__
    shown = [x if type(x) in (int, str) else "array" for x in kept]
    inside = vars(box) | {"items": len(box.items)}
    return (
        *(ended, a.round(6).tolist(), b.round(6).tolist(), shown, told, cells, inside),
        *(sorted(names), list(queue), len(stack), next(numbers), paper.text),
        *(dict(count), list(space["SEEN"]), space["TOTAL"], len(defaults[0])),
        drawn.bit_generator.state["state"]["state"],
    )


def main() -> int:
    """Run as many programs as asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    tally, wrong = Tally(), 0
    for seed in range(given.first, given.first + given.programs):
        text, name = generate(seed)
        try:
            compare(text, name, seed, tally)
        except Exception as error:  # noqa: BLE001 (each is a fault to be told)
            wrong += 1
            sys.stdout.write(f"program {seed}: {type(error).__name__}: {error}\n")
    refused = sum(tally.refused.values())
    sys.stdout.write(
        f"{tally.agreed} calls agreed, {refused} refused, {wrong} programs wrong\n"
        f"refused: {dict(tally.refused.most_common())}\n"
    )
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
