# SPDX-License-Identifier: Apache-2.0
"""What random loops are given, looked at: parts, steps, backwards, by other axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

_ALIKE = (  # as many places of an axis each, whatever its size
    (":-1", "1:", "-2::-1", ":0:-1"),
    (":-1", "1:", "-2::-1", ":0:-1"),
    (":", "::-1"),
    ("::2", "::-2"),
    ("1::2", ":0:-2"),
    ("1:-1", "2:", ":-2", "-2:0:-1"),
)


def looked_at(rng: random.Random, names: str, rank: int, *, squares: bool) -> str:
    """Return a line that binds arrays of one shape to parts of them of one shape."""
    whole = rng.randrange(rank) if not squares and rng.random() < 0.6 else -1
    axes = [rng.choice(_ALIKE)] * rank if squares else rng.choices(_ALIKE, k=rank)
    if whole >= 0:  # one axis alone is cut
        axes = [a if k == whole else (":",) for k, a in enumerate(axes)]
    parts = (
        f"{name}[{', '.join(rng.choice(alike) for alike in axes)}]"
        for name in names.split()
    )
    turned = ".T" if rank == 2 and squares and rng.random() < 0.5 else ""
    return f"{', '.join(names.split())} = {', '.join(p + turned for p in parts)}"
