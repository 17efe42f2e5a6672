# SPDX-License-Identifier: Apache-2.0
"""Random programs of loops and branches in each other, whose numbers are exact.

``python -m tests.fuzz.flow_programs --programs 300`` runs as many. Numbers are bound in
some arms only, change places, and go through turns that end early; each is taken modulo
a small one, so that nothing is rounded, and what one turn did is there after all.
"""

from __future__ import annotations

import random
import sys

from tests.fuzz.write_programs import main

_NUMBERS = ("p", "q", "r", "s", "c", "d", "e")
_COUNTERS = ("i", "j", "k", "h", "g")
_BOUND = (
    "{v} = {e}",
    "{v} = {e}",
    "{v} = ({e}) % 11",
    "{v} = (3 * {v} + {e}) % 13",
    "{v} += {e}",
    "{v} = {w}",
    "{v}, {w} = {w}, {v}",
    "{v}, {w} = {w}, ({v} + {e}) % 7",
    "{v}, {w}, {u} = {w}, {u}, {v}",
    "{v}, ({w}, {u}) = {u}, ({v}, {w})",
    "{v} = {w} if {t} else {u}",
    "{v} = max({w}, {e})",
    "{v} = min({w}, {u}) + 1",
    "{v} = abs({w} - {e})",
    "{v} = -{v}",
    "{v} = max({w}, {u}, {e})",
    "{v} = min({e}, {w}, {u}, 3.0) % 7",
    "{v}, {w} = {u}, {u}",
    "{v} = {w} = {e}",
    "if {t}:\n    {v} = {e}",
    "if {t}:\n    {v} = {e}\nelse:\n    {w} = {e}",
)
_LATER = (  # what an arm bound is read behind it, and maybe nowhere else
    *("x[{at}] = {v}", "y[{at}] = {v} * 2", "{w} = ({w} + {v}) % 7", "y += {v}"),
    *("x[{at}] += {v}", "{w} = {v}", "z[{at}] = {v}", "if {v} > {e}:\n    {w} = {v}"),
)
_STORED = (
    "x[{at}] = {e}",
    "x[{at}] += {v}",
    "y[{at}] = x[{at}] - {e}",
    "x[{at}] = y[{at}]",
    "x[{at}], y[{at}] = y[{at}], x[{at}]",
    "x[1:] = x[:-1]",
    "y[...] = (2 * y + {v}) % 9",
    "x[::-1] = y",
    "x, y = y, x",
    "x = (x * 3 + y) % 8",
    "y[y > {v}] = {e}",
    "w = x.copy()\nx[{at}] = {e}\ny = (y + w) % 5",
    "w = x\nx = (x + {e}) % 6\ny[...] = w",
    "x[1:4] -= y[{at}]",
    "y, z = x, x",
    "x, y, z = z, x, y",
    "z[...] = x",
    "z[1:] = x[:-1]",
    "y[...] = x\nx[1:-1] = (y[2:] + y[:-2]) % 5",
    "x = (z + y[::-1]) % 7",
    "z[{at}], x[{at}] = x[{at}], {v}",
    "if {t}:\n    z[{at}] = {e}",
    "if {t}:\n    x, z = z, x",
    "y = np.where({t}, x, y)",
    "z = np.where(x > {v}, z, (z + x) % 9)",
    "x[::2] = x[:3] * 2 - 1",
    "x[:3] = x[2:]",
    "z[:2] = z[:4:2]",
)
_TESTS = (
    *("{v} > {w}", "{v} > {w}", "i % 2 == 1", "{i} % 3 == 0", "{i} == 1", "n > 2"),
    *("{v} == {e}", "x[{at}] > {v}", "x.sum() > {e}", "not {v} < {w}", "{i} > n"),
    *("{v} > 1 and {w} < 4", "{v} < 0 or {i} == 2", "0 < {v} < 5", "n > {i}", "t > 0"),
    *(
        "x[{at}] == y[{at}]",
        "(x > {v}).any()",
        "{v} != {w}",
        "n % 2 == 0",
        "{v} >= {i}",
    ),
)
_VALUES = (
    *("{v}", "{w}", "1.0", "2.5", "n * 1.0", "{i} * 1.0", "x[{at}]", "y[{at}]"),
    *(
        "{v} - {w}",
        "{v} + {i}",
        "{v} * 2 - {w}",
        "x[{at}] + {v}",
        "{w} - {i}",
        "x.max()",
    ),
    *("{v} % 3", "x[{at}] - y[{at}]", "x[1:3].sum()", "({v} + {w}) % 5", "float(2)"),
    *("z[{at}]", "z[{at}] - {i}", "max({v}, {w}, {i} * 1.0)"),
)
_RANGES = (
    *("range(n)", "range(n + 3)", "range(n + 5)", "range(n, -1, -1)"),
    *(
        "range(1, n + 4, 2)",
        "range(2)",
        "range(0, 2 * n, 3)",
        "range(n + 4)",
        "range(n + 2)",
    ),
    *("reversed(range(0, n + 3, 2))", "reversed(range(n))", "range(n + 3, 0, -2)"),
    *("range(-2, n)", "reversed(range(n, 1, -1))", "range(n - 3)", "range(5)"),
)
_WITHIN = (*("range({i})", "range({i} + 1)", "range({i}, n + 2)", "range(n - {i})"),)
_PLACES = (
    "0",
    "-1",
    "{i} % 5",
    "-1 - {i} % 5",
    "({i} + n) % 5",
    "2",
    "n % 5",
    "1 - {i} % 4",
)


class _Writer:
    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._lines: list[str] = []
        self._counters: list[str] = []
        self._loops = 0
        self._left = self._rng.randint(4, 9)
        # Of many names each is read seldom, and what is forgotten of it shows.
        self._names = _NUMBERS[: self._rng.choice((4, 7))]
        few = self._rng.sample(self._names, self._rng.choice((1, 1, 2, 4)))
        arrays = self._rng.choice((("x",), ("x", "y"), ("x", "y", "z"), ("z",)))
        self._result = f"return {', '.join([*arrays, *few])}"  # the rest is forgotten

    def text(self) -> str:
        """Return the function, of two arrays and two numbers."""
        rng = self._rng
        helper = rng.random() < 0.3
        name = "helped" if helper else "program"
        self._put(0, f"def {name}(a, b, n, t):")
        self._put(
            1, rng.choice(("x = (a[:5] + np.zeros(5)) % 7", "x = a[:5] * np.ones(5)"))
        )
        self._put(
            1, rng.choice(("y = b[2:7] + np.zeros(5)", "y = np.ones(5) - b[-1:-6:-1]"))
        )
        own = ("z = x", "z = x * 1.0", "z = (x + y) % 5", "z = np.zeros(5)")
        self._put(1, rng.choices(own, (1, 5, 5, 3))[0])
        self._put(1, "p, q, r, s = 1.0, 2.0, x[0], y[-1] - 1")
        if len(self._names) > 4:
            self._put(1, "c, d, e = x[1] * 0.5, 0.0, 3.0")
        self._block(1, rng.randint(2, 4), first=True)
        self._put(1, self._result)
        if helper:
            self._put(0, "def program(a, b, n, t):")
            self._put(1, "x, *found = helped(a, b, n, t)")
            self._put(1, rng.choice(("x += 1", "x[0] = found[-1]", "x = x[::-1]")))
            self._put(1, "return x, *found")
        return "\n".join(self._lines) + "\n"

    def _put(self, depth: int, lines: str) -> None:
        self._lines += ["    " * depth + line for line in lines.split("\n")]

    def _fill(self, pattern: str, own: str = "") -> str:
        """Return a pattern, its words replaced; ``own`` is the first number, if any."""
        rng = self._rng
        for _ in range(4):  # words stand in words
            if "{" not in pattern:
                break
            v, w, u = rng.sample(self._names, 3)
            v = own or v
            pattern = pattern.format(
                v=v,
                w=w,
                u=u,
                e=rng.choice(_VALUES),
                t=rng.choice(_TESTS),
                at=rng.choice(_PLACES),
                i=rng.choice(self._counters or ["n"]),
            )
        return pattern

    def _block(self, depth: int, count: int, *, first: bool = False) -> None:
        rng, before = self._rng, len(self._lines)
        for number in range(count):
            self._left -= 1
            if self._left < 0 or depth > _DEEPEST:
                break
            form = rng.random()
            if first and number == 1:
                form = 0.99  # a loop, at least
            if form < 0.4:
                self._put(depth, self._fill(rng.choice(_BOUND)))
            elif form < 0.55:
                self._put(depth, self._fill(rng.choice(_STORED)))
            elif form < 0.8:
                self._branch(depth)
            else:
                self._loop(depth)
        if len(self._lines) == before:
            self._put(depth, self._fill(rng.choice(_BOUND)))

    def _branch(self, depth: int) -> None:
        rng = self._rng
        if rng.random() < 0.3:
            self._bound_in_arms(depth)
            return
        self._put(depth, f"if {self._fill(rng.choice(_TESTS))}:")
        self._arm(depth + 1)
        while rng.random() < 0.25:
            self._put(depth, f"elif {self._fill(rng.choice(_TESTS))}:")
            self._arm(depth + 1)
        if rng.random() < 0.4:
            self._put(depth, "else:")
            self._arm(depth + 1)

    def _bound_in_arms(self, depth: int) -> None:
        """Bind a number in some arms, and read it behind them."""
        rng, own = self._rng, self._rng.choice(self._names)
        others = [n for n in self._names if n != own]
        for head in ("if", "elif", "elif")[: rng.choice((1, 1, 1, 2, 3))]:
            self._put(depth, f"{head} {self._fill(rng.choice(_TESTS))}:")
            value = self._fill(rng.choice(_VALUES), rng.choice(others))
            self._put(depth + 1, f"{own} = ({value}) % 13")
        if rng.random() < 0.2:
            self._put(depth, "else:")
            self._put(depth + 1, self._fill(rng.choice((*_BOUND, *_STORED))))
        if rng.random() < 0.2:
            self._put(depth, self._fill(rng.choice(_STORED)))
        self._put(depth, self._fill(rng.choice(_LATER), own))

    def _arm(self, depth: int) -> None:
        rng = self._rng
        if self._loops and rng.random() < 0.3:  # what goes on if it does not leave
            self._put(depth, f"if {self._fill(rng.choice(_TESTS))}:")
            self._put(depth + 1, self._fill(rng.choice(_BOUND)))
            self._put(depth + 1, rng.choice(("continue", "continue", "break")))
        self._block(depth, rng.choice((1, 1, 2)))
        if self._loops and rng.random() < 0.35:
            ways = ("continue", "continue", "break", self._result)
            self._put(depth, rng.choices(ways, (8, 8, 6, 2))[0])

    def _loop(self, depth: int) -> None:
        rng = self._rng
        own = _COUNTERS[len(self._counters) % 5]
        form = rng.random()
        wide = _RANGES if not self._counters else (*_RANGES, *_WITHIN, *_WITHIN)
        if len(self._counters) > 1:  # many turns in all
            wide = ("range(2)", "range(n)", *_WITHIN[:2], "reversed(range(0, n, 2))")
        turns = rng.choice(wide).format(i=rng.choice(self._counters or ["n"]))
        head = f"for {own} in {turns}:"
        begin = f"{own} = 0\n" if rng.random() < 0.5 else ""
        inside = ""
        if form < 0.2:
            begin, inside = f"{own} = 0\n", f"\n    {own} += 1"
            head = self._fill(f"while {own} < n + 3 and ({rng.choice(_TESTS)}):")
        elif form < 0.36:
            head = rng.choice(
                (
                    f"for {own}, v in enumerate(x):",
                    f"for {own}, (v, w) in enumerate(zip(x, y)):",
                    f"for {own}, v in enumerate(y[::-1]):",
                    f"for {own}, v in enumerate(z, 1):",
                    f"for {own}, v in enumerate(x[1:], start=-1):",
                    f"for {own}, (v, w) in enumerate(zip(z, x[::-1]), 2):",
                )
            )
            inside = rng.choice(
                ("\n    p = (p + v) % 9", "\n    q = v", "\n    y[0] = v")
            )
        self._put(depth, f"{begin}{head}{inside}")
        self._counters.append(own)
        self._loops += 1
        self._block(depth + 1, rng.randint(1, 4))
        self._loops -= 1
        if rng.random() < 0.2:
            self._put(depth, "else:")
            self._block(depth + 1, 1)
        self._counters.pop()
        if begin and rng.random() < 0.5:
            self._put(depth, f"{rng.choice(self._names)} = {own} * 0.5")


_DEEPEST = 4
SHAPES = ((7,), (9,), (33,))  # of one of which a program sees five elements


def generate(seed: int, _: object = ()) -> tuple[str, set[str], int]:
    """Return the text of a program, its features, and how many axes it is for."""
    return _Writer(seed).text(), {"flow"}, 1


if __name__ == "__main__":
    sys.exit(main(generate, __doc__, SHAPES))
