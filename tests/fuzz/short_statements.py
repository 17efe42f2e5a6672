# SPDX-License-Identifier: Apache-2.0
"""Statements of short programs, without blocks.

What a statement reads and writes is chosen by the axes that it has, so that most
statements fit.
"""

# Programs are text, whose values have no static type.
# pyright: basic

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fuzz.short_values import RARE, Values

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.fuzz.short_values import Axes

_KINDS = {
    "assign": 8,
    "update": 6,
    "rebound": 1.5,
    "view": 2,
    "new": 2,
    "swap": 1,
    "number": 0.6,
    "call": 1,
    "outside": 1.6,
    "whole": 1.5,
    "copy": 1.5,
    "closure": 0.7,
    "function": 2,
    "sweeps": 0.9,
    "held": 0.8,
    "passed": 1,
    "scatter": 0.7,
}  # of statements, and how often each is written
_SINGLE = {
    "element": 8,
    "number": 2,
    "held": 2.5,
    "row": 2,
    "call": 0.2,
    "scatter": 0.2,
}
_OPERATORS = ("+=", "-=", "*=", "+=")
HELPERS = {
    "bump": "def bump(x):\n    x += 1\n\n",
    "halved": "def halved(x):\n    return x * 0.5\n\n",
    "first": "def first(x):\n    x[0] = 2\n    return x\n\n",
    "early": "def early(x):\n    if x.sum() > 1:\n        return x * 2\n"
    "    x[-1] += 1\n    return x\n\n",
    "smooth": "def smooth(x):\n    x[1:-1] = 0.5 * (x[2:] + x[:-2])\n    return x\n\n",
}


class Statements(Values):
    """Writes statements of one program."""

    def target(self) -> tuple[str, Axes]:
        name = self.rng.choice(self.written())
        roll = self.rng.random()
        if roll < 0.12:
            return self.several(name)
        if roll < 0.25 and self.names.counters:
            return self.element(name), ()
        return self.part(name)

    def written(self) -> list[str]:
        names = list(self.names.arrays)
        return [*names, *[x for x in names if x in ("u", "w", "v")] * 2]

    def new_name(self, stem: str) -> str:
        if stem not in self.names.arrays and stem not in self.names.numbers:
            return stem
        self.fresh += 1
        return f"{stem}{self.fresh}"

    def statement(self) -> list[str]:
        """Return one statement without a block."""
        kinds = dict(_KINDS)
        if self.loops:
            kinds |= {"number": 2.0, "recur": 2.5, "held": 2}
        if self.is_single:
            kinds = _SINGLE
        kind = self.rng.choices(list(kinds), list(kinds.values()))[0]
        lines = getattr(self, f"_{kind}")()
        self.own = []
        return lines

    def _assign(self) -> list[str]:
        return self._stored("=")

    def _update(self) -> list[str]:
        return self._stored(self.rng.choice(_OPERATORS))

    def _stored(self, operator: str) -> list[str]:
        text, axes = self.target()
        if "mask" not in axes:
            value = self.expression(axes, self.rng.choice((0, 1, 1, 2)))
        elif operator == "=" and self.chance(0.3):
            value = f"{text} * 2 + 1"
        elif operator == "=" and self.chance(0.2):
            value = self.rng.choice(RARE)
        else:
            value = self.number()
        return [f"{text} {operator} {value}"]

    def _recur(self) -> list[str]:
        """Return a row computed of the rows beside it."""
        rng = self.rng
        if not self.names.counters:
            return self._update()
        counter = rng.choice(list(self.names.counters))
        name = rng.choice(self.written())
        axes = self.names.arrays[name]
        fit = [k for k, a in enumerate(axes) if a == self.names.counters[counter]]
        at = rng.choice(fit or list(range(len(axes))))
        rest = [self.rng.choice((":", ":", self.index(a))) for a in axes]

        def row(x: str, by: int) -> str:
            key = list(rest)
            key[at] = (
                f"{counter}{f' {by:+d}'.replace('+', '+ ').replace('-', '- ')}"
                if by
                else counter
            )
            return f"{x}[{', '.join(key)}]"

        others = [x for x, a in self.names.arrays.items() if a == axes]
        by = rng.choice((-1, -1, 1, 1, -2, 0))
        terms = [f"0.5 * {row(name, by)}", row(rng.choice(others), 0)]
        if self.chance(0.3):
            terms.append(row(rng.choice(others), -by))
        if self.chance(0.2):
            terms.reverse()
        form = rng.choice(("{a} = {e}", "{a} = {e}", "{a} += {e}"))
        return [form.format(a=row(name, 0), e=rng.choice((" + ", " - ")).join(terms))]

    def _element(self) -> list[str]:
        """Return an element computed of elements."""
        text = self.element(self.rng.choice(self.written()))
        operator = self.rng.choice(("=", "=", *_OPERATORS))
        return [f"{text} {operator} {self.expression((), self.rng.choice((1, 2)))}"]

    def _row(self) -> list[str]:
        """Return what a loop over elements does with a whole array, or a row."""
        rng = self.rng
        name = rng.choice(self.written())
        axes = self.names.arrays[name]
        like = rng.choice([x for x, a in self.names.arrays.items() if a == axes])
        if len(axes) < 2 or self.chance(0.25 if axes[::-1] != axes else 0.6):
            whole = f"{like}.T" if axes[::-1] == axes else like
            return [f"{name}[...] = {whole}"]
        one, other = (f"{x}[{self.index(axes[0])}]" for x in (name, like))
        if self.chance(0.3):
            return [f"{one} = {other}"]
        row = rng.choice(("r", "r", "row"))
        row = self.new_name(row) if row in self.names.arrays else f"{row}w"
        self.names.arrays[row] = axes[1:]
        change = f"{self.element(row)} = {self.expression((), 1)}"
        store = one if self.chance(0.7) else other
        lines = [f"{row} = {other}.copy()", change, f"{store} = {row}"]
        if self.chance(0.3):
            lines.insert(rng.choice((1, 2)), self._element()[0])
        return lines

    def _scatter(self) -> list[str]:
        """Return what adds to elements, of which some may be the same."""
        rng = self.rng
        name = rng.choice(self.written())
        axes = self.names.arrays[name]
        at = rng.choice(("add", "add", "subtract", "maximum", "minimum", "multiply"))
        forms = [("i", (f"{axes[0]}|i", *axes[1:])), ("j", (f"{axes[0]}|j", *axes[1:]))]
        if len(axes) > 1:
            forms += [("(i, i)", (f"{axes[0]}|i", *axes[2:]))]
            forms += [(f"({self.index(axes[0])}, i)", (f"{axes[1]}|i", *axes[2:]))]
            forms += [("(slice(None), j)", (axes[0], f"{axes[1]}|j", *axes[2:]))]
        key, part = rng.choice(forms)
        value = self.expression(part, 1) if self.chance(0.7) else self.number()
        if self.chance(0.08):
            value = "np.nan"
        return [f"np.{at}.at({name}, {key}, {value})"]

    def _held(self) -> list[str]:
        """Return what holds an element, or a part, while that is written."""
        one, axes = self.target()
        if "mask" in axes or self.chance(0.4):
            one, axes = self.element(self.rng.choice(self.written())), ()
        other = self.leaf(axes) if axes else self.element(one.partition("[")[0])
        value = other if self.chance(0.6) else self.expression(axes, 1)
        lines = [f"e = {one}", f"{one} = {value}"]
        end = self.rng.choice(("{b} = e", "{b} = e", "{b} += e", "{b} = e * 0.5"))
        if "[" not in other or other.startswith("(") or self.chance(0.2):
            other = one
        lines.append(end.format(b=other))
        if self.chance(0.25):
            lines.insert(2, self._stored("=")[0])
        if self.chance(0.25):
            return [f"if {self.condition()}:", *indented(lines)]
        if not axes:
            self.names.numbers.append("e")
        return lines

    def _passed(self) -> list[str]:
        """Return what copies a part, writes into that and stores it somewhere."""
        rng = self.rng
        one, axes = self.part(rng.choice(list(self.names.arrays)))
        near = self.beside(axes)
        if not axes:
            return self._update()
        name = self.new_name("w")
        how = rng.choice((".copy()", ".copy()", " * 1.0", " + 0", ""))
        if self.loops and not how:
            how = ".copy()"  # what a loop binds and writes must be its own
        lines = [f"{name} = {one}{how}"]
        self.names.arrays[name] = axes
        text, part = self.part(name) if self.chance(0.5) else (self.element(name), ())
        lines += [f"{text} {rng.choice(('=', '=', '+='))} {self.expression(part, 1)}"]
        if self.chance(0.3):
            lines += self._stored(rng.choice(("=", "+=")))
        back = one if near is None or self.chance(0.4) else near
        return [*lines, f"{back} = {name}{rng.choice(('', '', ' + 1'))}"]

    def _sweeps(self) -> list[str]:
        """Return loops forwards and backwards, one of which reads the other's rows."""
        rng = self.rng
        fit = [x for x, a in self.names.arrays.items() if a == self.axes]
        if self.loops or not fit:
            return self._update()
        at = rng.randrange(len(self.axes))
        parts = (":", ":", ":", "0", "::-1", "1:", ":-1", "::2", "1:-1")
        rest = [rng.choice(parts) for _ in self.axes]

        def row(x: str, place: str) -> str:
            key = list(rest)
            key[at] = place
            return f"{x}[{', '.join(key)}]"

        lines: list[str] = []
        source = rng.choice(fit)
        for step in rng.choice(((1, -1), (1, -1), (-1,), (-1, 1), (1, 1))):
            made, size = rng.choice(fit), f"{source}.shape[{at}]"
            if self.chance(0.6):
                made = self.new_name("w")
                self.names.arrays[made] = self.axes
                lines.append(f"{made} = np.zeros_like({source})")
            first, turns = (
                ("0", f"1, {size}") if step > 0 else ("-1", f"{size} - 2, -1, -1")
            )
            before = row(made, "k - 1" if step > 0 else "k + 1")
            lines += [
                f"{row(made, first)} = {row(source, first)}",
                f"for k in range({turns}):",
                f"    {row(made, 'k')} = 0.5 * {before} + {row(source, 'k')}",
            ]
            source = made
        return lines

    def _whole(self) -> list[str]:
        name = self.rng.choice(self.written())
        axes = self.names.arrays[name]
        if axes == axes[::-1] and len(axes) == 2 and self.chance(0.3):
            return [f"{name}[...] = {name}.T"]
        if self.chance(0.4):
            operator = self.rng.choice(_OPERATORS)
            return [f"{name} {operator} {self.expression(axes, 1)}"]
        value = self.expression(axes, self.rng.choice((0, 1)))
        return [f"{name}[{self.rng.choice(('...', ':'))}] = {value}"]

    def _rebound(self) -> list[str]:
        name = self.rng.choice(list(self.names.arrays))
        return [f"{name} = {self.expression(self.names.arrays[name], 1)} + 0 * {name}"]

    def _copy(self) -> list[str]:
        source = self.rng.choice(list(self.names.arrays))
        name, axes = "w", self.names.arrays[source]
        if self.chance(0.3):
            source, axes = self.part(source)
            if not axes:
                return self._update()
            source = source.removesuffix("[...]")
        if self.names.arrays.get(name, axes) != axes or source.startswith(name):
            name = self.new_name("w")
        self.names.arrays[name] = axes
        how = self.rng.choice((".copy()", ".copy()", "", " * 1.0", ".copy()"))
        return [f"{name} = {source}{how}"]

    def _view(self) -> list[str]:
        source = self.rng.choice(list(self.names.arrays))
        text, axes = self.part(source)
        if not axes:
            return self._update()
        if len(axes) == 2 and self.chance(0.2):
            text, axes = f"{text}.T", axes[::-1]
        name = self.new_name("v")
        self.names.arrays[name] = axes
        return [f"{name} = {text}"]

    def _new(self) -> list[str]:
        source = self.rng.choice(list(self.names.arrays))
        name = self.new_name("w")
        self.names.arrays[name] = self.names.arrays[source]
        form = self.rng.choice(
            (
                *(
                    "np.zeros_like({x})",
                    "np.zeros_like({x}) + 0",
                    "np.zeros({x}.shape)",
                ),
                *("np.ones_like({x})", "np.zeros({x}.shape, {x}.dtype)", "{x} + 1"),
                *("np.full_like({x}, 2)", "np.zeros(len({x}))"),
            )
        )
        if "len" in form:
            self.names.arrays[name] = self.names.arrays[source][:1]
        return [f"{name} = {form.format(x=source)}"]

    def _swap(self) -> list[str]:
        one, axes = self.target()
        if "mask" in axes:
            return [f"{one} = 0"]
        other = self.leaf(axes)
        if "[" not in other or other.endswith(".T"):
            return [f"{one} = {other}"]
        how = self.rng.choice(
            (
                *("{a}, {b} = {b}, {a}", "{a}, {b} = {b} * 1.0, {a} * 1.0"),
                *("{a} = {b} = {e}", "{a}, s = {b}, {e}"),
            )
        )
        if " s " in how and "s" not in self.names.numbers:
            if self.loops:
                self.before.append("s = 0.0")
            self.names.numbers.append("s")
        return [how.format(a=one, b=other, e=self.number())]

    def _number(self) -> list[str]:
        name = "s" if "s" not in self.names.numbers or self.chance(0.7) else "r"
        if name not in self.names.numbers:
            self.names.numbers.append(name)
            begin = self.rng.choice(("0.0", "1.0", "0", self.number()))
            if not self.loops:
                return [f"{name} = {begin}"]
            self.before.append(f"{name} = {begin}")
        form = self.rng.choice(
            (
                *(
                    "{s} += {e}",
                    "{s} = {s} * 0.5 + {e}",
                    "{s} = max({s}, {e})",
                    "{s} = {e}",
                ),
                *("{s} = min({e}, 3)", "{s} = {e} if {t} else {f}", "{s} -= {e}"),
            )
        )
        more = {"e": self.number(), "f": self.number(), "t": self.condition()}
        return [form.format(s=name, **more)]

    def _call(self) -> list[str]:
        whole = [x for x, axes in self.names.arrays.items() if axes == self.axes]
        name = self.rng.choice(whole or ["u"])
        helper = self.rng.choice(tuple(HELPERS))
        self.used.add(helper)
        form = self.rng.choice(("{h}({x})", "{x} = {h}({x})")[: 1 + (helper != "bump")])
        return [form.format(h=helper, x=name)]

    def _closure(self) -> list[str]:
        """Return a function that reads what is bound behind it."""
        name = self.rng.choice(list(self.names.arrays))
        axes = self.names.arrays[name]
        if "inner" in self.names.arrays or self.loops or "c" in self.names.numbers:
            return self._update()
        self.names.numbers.append("c")
        made = self.new_name("w")
        lines = ["c = 1.0", "def inner():", f"    return {name} * c"]
        if self.chance(0.4):
            lines = ["c = 1.0", "def inner(by=c):", f"    {name}[0] += by * c"]
        middle = self.rng.choice(
            ([f"if {self.condition()}:", "    c = 2.0"], ["c = 3.0"], self._update())
        )
        if "+=" in lines[-1]:
            return [*lines, *middle, "inner()"]
        self.names.arrays[made] = axes
        return [*lines, *middle, f"{made} = inner()"]

    def _outside(self) -> list[str]:
        """Return what reads and writes that which is not the program's own."""
        whole = self.rng.choice(list(self.names.arrays))
        forms = [
            *("box['y'][0] = {e}", "{x}[0] = box['y'][1]", "OWN.g += {e}"),
            *("OWN.g[1:] = {e}", "{x} += OWN.g[0]", "OWN.h[OWN.h > {e}] = 0"),
            *("OWN.g[...] = OWN.h", "bag['y'][...] = box['y']"),
        ]
        if not self.depth:  # in blocks nothing may be put into a dict
            forms += [
                *("box['y'] = {x}", "box['y'] = {w}", "box['y'] = {x} + 1"),
                *("bag['y'] = box['y']", "bag['y'] += {e}"),
                *("box['y'], bag['y'] = bag['y'], box['y']",) * 3,
                *("box['y'], bag['y'] = {x}, box['y']",) * 2,
            ]
        made = [x for x in self.names.arrays if x[0] == "w"] or [whole]
        form = self.rng.choice(forms)
        return [form.format(x=whole, e=self.number(), w=made[-1])]

    def _function(self) -> list[str]:
        """Return an assignment that a function of NumPy's does."""
        rng = self.rng
        name = rng.choice(self.written())
        axes = self.names.arrays[name]
        text, part = self.target()
        array = name if "mask" in part or not part else text
        fit = axes if array == name else part
        _, target = text.split("[", 1) if text.count("[") == 1 else ("", "...]")
        owner = text.partition("[")[0]
        at = rng.choice(
            ("add", "add", "subtract", "maximum", "minimum", "maximum", "multiply")
        )
        op = rng.choice(("add", "multiply", "subtract", "maximum"))
        value = self.expression(fit, 1)
        key = _as_key(target[:-1])
        added = self.number() if "mask" in part else self.expression(part, 1)
        forms = [
            f"np.copyto({array}, {value})",
            f"np.{op}({self.leaf(fit)}, {value}, out={array})",
            f"np.{op}({array}, {value}, out={array}, where={array} > {self.number()})",
            f"np.copyto({array}, {value}, where={array} > 0)",
            f"{array}.fill({self.number()})",
            f"np.{at}.at({owner}, {key}, {added})",
            f"np.{at}.at({owner}, {key}, {self.number()})",
            f"np.putmask({name}, {name} > {self.number()}, {self.number()})",
            f"np.put({name}, i, {self.number()})",
            f"np.put({name}, [0, -1], [{self.number()}, {self.number()}])",
        ]
        if len(axes) == 2:
            forms += [f"np.fill_diagonal({name}, {self.number()})"] * 2
        forms.append(f"{name}.sort()")
        return [rng.choice(forms)]

    def condition(self) -> str:
        name = self.rng.choice(list(self.names.arrays))
        counters = list(self.names.counters)
        kinds = [
            "n > 2",
            "t > 0",
            f"{name}.sum() > 3",
            f"{self.element(name)} > t",
            f"{self.element(name)} > 0",
        ]
        if self.is_single:
            kinds.pop(2)  # a sum
        if counters:
            c = self.rng.choice(counters)
            kinds += [
                f"{c} % 2 == 0",
                f"{c} > 1",
                f"{self.element(name)} > {self.element(name)}",
                f"{self.element(name)} > 0",
            ]
        if self.names.numbers:
            kinds.append(f"{self.rng.choice(self.names.numbers)} > 2")
        found = self.rng.choice(kinds)
        if self.chance(0.06):
            found = f"({self.number()}) < ({self.number()}) <= 3"
        if self.chance(0.05) and not self.loops:
            self.names.numbers.append("z")
            found = f"(z := {self.number()}) > 1"
        if self.chance(0.12):
            found = f"{found} {self.rng.choice(('and', 'or'))} {self.rng.choice(kinds)}"
        return found


def _as_key(text: str) -> str:
    """Return what stands in brackets as a value."""
    parts = [
        f"slice({', '.join(p or 'None' for p in x.split(':'))})" if ":" in x else x
        for x in text.split(", ")
        if "[" not in text or ":" not in text
    ] or ["..."]
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def indented(lines: Iterable[str]) -> list[str]:
    return ["    " + x for x in lines]
