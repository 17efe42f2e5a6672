# SPDX-License-Identifier: Apache-2.0
"""Random loops along an axis that pass arrays on to each other, against plain NumPy.

``python -m tests.fuzz.chain_programs --programs 300`` runs as many. The arrays between
loops are the function's own: some begin with anything, and some of those are read by
nobody else, so that a kernel may have no more of them than a few rows.
"""

from __future__ import annotations

import random
import sys

from tests.fuzz.seen import looked_at
from tests.fuzz.sweep_programs import SQUARE, across, main

_GIVEN = ("a", "b", "c")


class _Writer:
    def __init__(self, seed: int) -> None:
        rng = self._rng = random.Random(seed)
        self.rank = rng.choice((2, 2, 2, 3, 3, 1))
        self.axis = rng.randrange(self.rank)
        self.own = ["p", "q", "r"][: rng.randint(1, 3)]
        self.first = self.axis
        cross = rng.random() if self.rank > 1 else 1.0
        self.is_square = cross < 0.3
        self.is_crossed = 0.15 < cross < 0.45

    def text(self) -> str:
        """Return the function."""
        rng = self._rng
        lines = ["def program(a, b, c, m):", f"    n = a.shape[{self.axis}]"]
        for name in self.own:
            makers = ("np.empty_like(a)",) * 5 + (
                "np.zeros_like(a)",
                "a * 0.5",
                "b.copy()",
            )
            lines.append(f"    {name} = {rng.choice(makers)}")
        target = rng.choice(("a", "y", "y", "b"))
        if target == "y":
            lines.append("    y = np.empty_like(a)")
        lines += self._there()
        lines += self._middle()
        if self.is_square:
            lines.insert(1, f"    {SQUARE}")
        if self.is_crossed:  # of arrays that are no squares the sizes differ
            self.axis = across(self.rank, self.axis)
            if not self.is_square:
                lines.append(f"    n = a.shape[{self.axis}]")
        lines += self._back(target)
        if rng.random() < 0.2:
            lines += self._back(rng.choice(("a", "b", *self.own)))
        more = rng.random()
        if more < 0.15:
            lines.append(f"    {target} = {target} + {rng.choice(self.own)}")
        elif more < 0.25:
            lines.append(f"    b[:] = {rng.choice(self.own)} * 0.5")
        if rng.random() < 0.15:
            parts = looked_at(rng, "a b c", self.rank, squares=self.is_square)
            lines.insert(1, f"    {parts}")
        result = rng.choice((target, target, f"{target}, c", f"c, {target}"))
        if rng.random() < 0.15:
            result = f"{result}, {rng.choice(self.own)}"
        lines.append(f"    return {result}")
        return "\n".join(lines) + "\n"

    def _there(self) -> list[str]:
        """Write all rows of the arrays between, each of the one before."""
        rng = self._rng
        lines = [f"    {x}{self._key('0')} = {self._row('0')}" for x in self.own]
        lines.append("    for k in range(1, n):")
        for name in self.own:
            before = rng.choice((name, *self.own))
            value = f"{self._row('k')} {self._sign()} {before}{self._key('k - 1')}"
            if rng.random() < 0.3:
                value += f" * {self._row('k - 1')}"
            if rng.random() < 0.15:
                value = rng.choice(
                    (
                        f"np.maximum({value}, {self._row('k')})",
                        f"np.where({self._row('k')} > 0, {value}, 1)",
                        f"({value}) / (np.abs({self._row('k')}) + 1)",
                        f"{value} + k * 0.25",
                        f"{value} - {rng.choice(self.own)}{self._key('0')}",
                    )
                )
            lines.append(f"        {name}{self._key('k')} = {value}")
        return lines

    def _again(self) -> list[str]:
        """Change one of them where it is, along the same axis."""
        name = self._rng.choice(self.own)
        there = f"{name}{self._key('k')}"
        value = f"{there} * 0.5 + {name}{self._key('k - 1')} {self._sign()} 1"
        return ["    for k in range(1, n):", f"        {there} = {value}"]

    def _middle(self) -> list[str]:
        """Change what the first loop left: along the axis, one row, or all of it."""
        rng = self._rng
        lines = self._again() if rng.random() < 0.25 else []
        if rng.random() < 0.6:
            name, other = rng.choice(self.own), rng.choice(self.own)
            value = f"{other}{self._key('n - 1')} {self._sign()} {self._row('n - 1')}"
            lines.append(f"    {name}{self._key('n - 1')} = {value}")
        return lines + (self._between() if rng.random() < 0.25 else [])

    def _between(self) -> list[str]:
        """Use all that the first loop left before the second one does."""
        rng = self._rng
        name, other = rng.choice(self.own), rng.choice(self.own)
        forms = (
            f"{name} *= 0.5",
            f"{name}[...] = {name} + a",
            f"{name} = {name} - {other} * 0.25",
            f"c[:] = {name} + c",
            f"{name}{self._key('0')} = {other}{self._key('-1')}",
            f"{name}, c = c * 1.0, {name}",
            f"b{self._key('0')} += {name}{self._key('n // 2')}",
            f"{name}[...] = np.minimum({name}, {other})",
            f"{name}[:] = 0.5",
        )
        return [f"    {rng.choice(forms)}"]

    def _back(self, target: str) -> list[str]:
        """Go back, or there again, with what the first loop left."""
        rng = self._rng
        first, step, rows = rng.choice(
            (
                ("n - 1", "k + 1", "range(n - 2, -1, -1)"),
                ("n - 1", "k + 1", "range(n - 2, -1, -1)"),
                ("0", "k - 1", "range(1, n)"),
                ("n - 1", "k + 1", "reversed(range(n - 1))"),
            )
        )
        begin = f"{rng.choice(self.own)}{self._key(first)} * 0.5"
        lines = [f"    {target}{self._key(first)} = {begin}"]
        lines.append(f"    for k in {rows}:")
        terms = [f"{x}{self._key('k', is_whole=True)}" for x in self.own]
        terms.append(f"{target}{self._key(step)} * 0.25")
        if rng.random() < 0.4:
            terms.append(self._row("k"))
        if rng.random() < 0.2:
            terms.append(f"{rng.choice(self.own)}{self._key(step)}")
        value = terms[0]
        for term in terms[1:]:
            value += f" {self._sign()} {term}"
        lines.append(f"        {target}{self._key('k')} = {value}")
        return lines

    def _sign(self) -> str:
        return self._rng.choice(("+", "-"))

    def _row(self, place: str) -> str:
        rng = self._rng
        value = rng.choice(_GIVEN) + self._key(place, is_whole=True)
        if rng.random() < 0.4:
            value = f"{value} * {rng.choice(('0.5', '0.25', '2.0'))}"
        return value

    def _key(self, place: str, *, is_whole: bool = False) -> str:
        """Return the key of a row, or of a column where the array has its values."""
        keys = [":"] * (self.rank - 1)
        is_other = is_whole and self.is_square and self._rng.random() < 0.3
        axis = across(self.rank, self.axis) if is_other else self.axis
        keys.insert(axis, place)
        return f"[{', '.join(keys)}]"


def generate(seed: int) -> tuple[str, int, int]:
    """Return the text of a program, how many axes its arrays have, and which it is."""
    writer = _Writer(seed)
    return writer.text(), writer.rank, writer.first


if __name__ == "__main__":
    sys.exit(main(generate, __doc__))
