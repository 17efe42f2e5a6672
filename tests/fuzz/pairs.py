# SPDX-License-Identifier: Apache-2.0
"""Which random programs to run so that each two features stand together so often."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import NamedTuple

from tests.fuzz.write_steps import STEP_OF, are_shared, generate

RANKS = ("rank 1", "rank 2", "rank 3", "rank 4")
FEATURES = (*sorted(STEP_OF), *RANKS, "shared")
_MOST_TRIES = 40  # of programs for one pair


class Chosen(NamedTuple):
    """A program: its seed, and the features that were asked of it."""

    seed: int
    wanted: tuple[str, ...] = ()


def for_each_pair(times: int) -> tuple[list[Chosen], Counter[tuple[str, str]]]:
    """Return programs in which each pair stands ``times``, and how often each does."""
    every = [p for p in combinations(FEATURES, 2) if not set(p) <= set(RANKS)]
    counted: Counter[tuple[str, str]] = Counter()
    chosen: list[Chosen] = []
    seed = 0
    for pair in every:
        for _ in range(_MOST_TRIES * times):
            if counted[pair] >= times:
                break
            seed += 1
            while are_shared(seed) != ("shared" in pair):
                seed += 1
            wanted = tuple(f for f in pair if f != "shared")
            wanted += (_missing(pair, counted),)
            found = generate(seed, wanted)[1]
            if not found.issuperset(pair):
                continue
            counted.update(combinations(sorted(found, key=FEATURES.index), 2))
            chosen.append(Chosen(seed, wanted))
    return chosen, Counter({pair: counted[pair] for pair in every})


def _missing(pair: tuple[str, str], counted: Counter[tuple[str, str]]) -> str:
    """Return the step that stands least often with those of a pair."""

    def together(other: str) -> int:
        both = (sorted((other, f), key=FEATURES.index) for f in pair)
        return sum(counted[one, two] for one, two in both)

    return min((f for f in FEATURES if f in STEP_OF and f not in pair), key=together)


def table(counted: Counter[tuple[str, str]]) -> str:
    """Return how often pairs stood together, a row for each feature."""
    wide = max(map(len, FEATURES))
    lines = [f"{'':{wide}} {' '.join(f'{k:4}' for k in range(len(FEATURES)))}"]
    for k, one in enumerate(FEATURES):
        row = (counted.get((other, one), "") for other in FEATURES[:k])
        numbers = " ".join(f"{n:>4}" for n in row)
        lines.append(f"{one:{wide}} {numbers} {k:4}".rstrip())
    least = min(counted.values(), default=0)
    rare = sorted(counted.items(), key=lambda item: item[1])[:5]
    return "\n".join(
        [*lines, f"{len(counted)} pairs, each at least {least} times: {rare}"]
    )
