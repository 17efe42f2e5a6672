# SPDX-License-Identifier: Apache-2.0
"""Texts of short programs, as a user of NumPy writes them first: loops and branches."""

# Programs are text, whose values have no static type.
# pyright: basic

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.fuzz.short_statements import HELPERS, Statements, indented

if TYPE_CHECKING:
    from tests.fuzz.short_values import Axes

_ENDS = ("2::2", "1::2", "2:8:2", "-2::-2", "1:-1:2", "3:0:-1")  # of what is returned


class Writer(Statements):
    """Writes one program."""

    def block(self, depth: int, count: int) -> list[str]:
        found: list[str] = []
        for _ in range(count):
            self.depth = depth
            roll = self.rng.random()
            if roll < (0.55, 0.2, 0.06, 0)[min(depth, 3)]:
                found += self.loop(depth)
            elif roll < (0.63, 0.42, 0.3, 0)[min(depth, 3)]:
                found += self.branch(depth)
            else:
                found += self.statement()
        return found

    def jumps(self, depth: int) -> list[str]:
        """Return branches in a branch, of which several leave the turn."""
        rng = self.rng
        around = self.names
        self.names = around.copy()
        lines = [f"if {self.condition()}:"]
        for _ in range(rng.choice((1, 2, 2))):
            if self.chance(0.5):
                lines += indented(self.statement())
            lines += indented([f"if {self.condition()}:"])
            if self.chance(0.3):
                lines += indented(indented(self.statement()))
            leave = rng.choice(("break", "continue", "continue", "break"))
            lines += indented([f"    {leave}"])
        self.names = around
        return lines + self.statement()

    def branch(self, depth: int) -> list[str]:
        if self.loops and self.chance(0.15):
            return self.jumps(depth)
        lines = [f"if {self.condition()}:"]
        around = self.names
        self.names = around.copy()
        body = self.block(depth + 1, self.rng.choice((1, 1, 2)))
        self.names = around
        if self.loops and self.chance(0.35):
            ends = ("break", "continue", "continue", "break", "return u, n")
            body.append(self.rng.choice(ends))
        lines += indented(body)
        if self.chance(0.35):
            self.names = around.copy()
            lines += ["else:", *indented(self.block(depth + 1, 1))]
            self.names = around
        return lines

    def _rows(self, name: str, axes: Axes, counter: str) -> str:
        """Return how a loop over rows begins, which are bound to names."""
        inner = self.names
        rest = axes[1:]
        head, row = f"for row in {name}:", "row"
        if self.chance(0.4):
            head = f"for {counter}, row in enumerate({name}):"
            inner.counters[counter] = axes[0]
        elif self.chance(0.3):
            other = self.rng.choice([x for x, a in inner.arrays.items() if a == axes])
            head = f"for row, other in zip({name}, {other}):"
            if rest:
                inner.arrays["other"] = rest
            else:
                inner.numbers.append("other")
        if rest:
            inner.arrays[row] = rest
        else:
            inner.numbers.append(row)
        return head

    def loop(self, depth: int) -> list[str]:
        rng, names = self.rng, self.names
        name = rng.choice(list(names.arrays))
        axes = names.arrays[name]
        at = rng.randrange(len(axes))
        size = (
            rng.choice((f"{name}.shape[{at}]", f"len({name})"))
            if at == 0
            else f"{name}.shape[{at}]"
        )
        counter = "kjlpq"[self.loops]
        counter = {"j": "h"}.get(counter, counter)
        outer = list(names.counters)
        kind = rng.choices(("range", "rows", "while"), (10, 2, 1.5))[0]
        inner = names.copy()
        self.names = inner
        before = self.before
        self.before = []
        self.loops += 1
        end: list[str] = []
        start: list[str] = []
        if kind == "range":
            ranges = [
                *(
                    "range(n)",
                    "range(n)",
                    f"range({size})",
                    f"range(1, {size})",
                    f"range({size} - 1)",
                ),
                *(
                    f"range({size} - 2, -1, -1)",
                    f"range({size} - 1, 0, -1)",
                    f"range(0, {size}, 2)",
                    "range(3)",
                ),
                *(
                    "range(1, n)",
                    f"reversed(range({size} - 1))",
                    f"range(2, {size} - 1)",
                    f"range({size} - 1, -1, -1)",
                ),
            ]
            if outer:
                ranges += [
                    f"range({outer[-1]} + 1, {size})",
                    f"range({size} - 1 - {outer[-1]})",
                    f"range({outer[-1]})",
                ]
            head = f"for {counter} in {rng.choice(ranges)}:"
            inner.counters[counter] = axes[at]
        elif kind == "rows":
            head = self._rows(name, axes, counter)
        else:
            inner.counters[counter] = axes[at]
            start = [f"{counter} = 0"]
            test = rng.choice(
                (
                    f"{counter} < n",
                    f"{counter} < {size}",
                    f"{counter} < {size} - 1 and {self.element(name)} > t",
                )
            )
            head = f"while {test}:"
            end = [f"{counter} += 1"]
            roll = rng.random()
            if outer and roll < 0.35:  # backwards from where another loop is
                start = [f"{counter} = {outer[-1]}{rng.choice((' - 1', ''))}"]
                low = rng.choice((0, 0, 1))
                head = f"while {counter} >= {low} and {self.element(name)} > "
                head += f"{rng.choice((self.element(name), 't', '0'))}:"
                end = [f"{counter} -= 1"]
            elif roll < 0.5:
                start = [f"{counter} = {rng.choice((0, -1, 'm'))}"]
                limit = rng.choice((3, size, "n"))
                head = f"while ({counter} := {counter} + 1) < {limit}:"
                end = []
            elif roll < 0.7:
                limit = rng.choice((3, 20, "n"))
                head = f"while {counter} < 6 and (r := {self.number()}) < {limit}:"
                if "r" not in inner.numbers:
                    self.before.append("r = 0.0")
                    inner.numbers.append("r")
        was_single = self.is_single
        self.is_single |= kind != "rows" and self.chance(0.3)
        body = self.block(depth + 1, rng.choice((1, 1, 2, 2, 3)))
        is_single, self.is_single = self.is_single, was_single
        if kind == "while":
            body = [x.replace("continue", "pass") for x in body]
        if self.chance(0.12) and not is_single:
            self.before.append(f"last = {rng.choice(list(names.arrays))} * 1.0")
            row = self.part(rng.choice(list(names.arrays)))
            body.append(f"last = {row[0] if row[1] else 'u'}")
            body.insert(0, f"{self.element('u')} += last.sum()")
        self.loops -= 1
        numbers = [x for x in inner.numbers if x in "sr" and x not in names.numbers]
        found = [*self.before, *start, head, *indented([*body, *end])]
        if self.chance(0.08):
            found += ["else:", *indented(self.statement())]
        self.names = names
        names.numbers += numbers
        self.before = before
        return found

    # ---- the whole

    def text(self) -> str:
        """Return the whole program."""
        body = self.block(0, self.rng.choices((1, 2, 3), (4, 4, 2))[0])
        names = [x for x in self.names.arrays if self.chance(0.5)] or ["u"]
        values = [f"{x}[{self.rng.choice(_ENDS)}]" for x in names if self.chance(0.15)]
        values += [x if self.chance(0.75) else self.part(x)[0] for x in names]  # type: ignore[index]
        values += [x for x in self.names.numbers if self.chance(0.7)]
        if self.chance(0.15):
            values.append(self.expression(self.axes, 1))
        if self.chance(0.1):
            values.append(values[0])
        self.rng.shuffle(values)
        ends = {1: f"return {values[0]}"}.get(
            len(values), f"return {', '.join(values)}"
        )
        if len(values) > 1 and self.chance(0.2):
            ends = f"return [{', '.join(values)}]"
        if self.chance(0.08):
            ends = "return None"
        extra = [
            x
            for x in ("i", "j", "part", "n", "m", "t", "box", "bag")
            if _uses("\n".join([*body, ends]), x)
        ]
        head = f"def program({', '.join([*self.given, *extra])}):"
        rate = "RATE = 2\n\n" if _uses("\n".join([*body, ends]), "RATE") else ""
        owner = _OWN if _uses("\n".join([*body, ends]), "OWN") else ""
        helpers = "\n".join(HELPERS[h] for h in sorted(self.used & set(HELPERS)))
        return (
            "\n".join([rate, owner, helpers, head, *indented([*body, ends])]).lstrip()
            + "\n"
        )


_OWN = """\
class OWN:
    g = np.arange(4.0)
    h = np.arange(4.0) * 0.5


"""


def _uses(text: str, name: str) -> bool:
    return bool(re.search(rf"\b{name}\b", text))


def generate(seed: int | str) -> tuple[str, Writer]:
    """Return the text of a program, and who wrote it."""
    writer = Writer(seed)
    return writer.text(), writer
