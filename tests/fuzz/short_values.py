# SPDX-License-Identifier: Apache-2.0
"""Keys and expressions of short programs, chosen by the axes that they have."""

# Programs are text, whose values have no static type.
# pyright: basic

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Axes = tuple[str, ...]  # of an array: "a" is an axis, "a|-1" a part of it

_WHOLE = (":", ":", ":", "::-1")
_PARTS = {  # what a key makes of an axis, and how it is written
    "-1": ("1:", ":-1", "1:", ":-1", ":0:-1", "-2::-1"),
    "-2": ("1:-1", "2:", ":-2", "-2:0:-1"),
    "/2": ("::2", "::2", "-1::-2"),
    "/2-": ("1::2", "1::2", "-2::-2", ":-1:2"),
    "-2/2": ("2::2", ":-2:2", "2:8:2", "-1:1:-2", "2::2"),
    "/3": ("::3", "::3"),
    "2": (":2", "-2:", "[0, -1]", "[1, 0]", "1::-1"),
    "1": ("0:1", "-1:", "1:2", "[1]"),
    "i": ("i", "i", "i - 1", "-i - 1"),
    "j": ("j", "j", "-j - 1"),
    "s": ("part",),
}
_STEPPED = ("/2", "/2", "/2-", "-2/2", "/3")
_NUMBERS = ("2.0", "0.5", "t", "n", "-1", "1", "3", "RATE")
RARE = ("np.nan", "np.inf", "-np.inf", "0.0")
_INDICES = ("0", "-1", "1", "n", "-2", "n - 1", "m")


class Names:
    """What names stand for: arrays by their axes, numbers, counters."""

    def __init__(self) -> None:
        self.arrays: dict[str, Axes] = {}
        self.numbers: list[str] = []
        self.counters: dict[str, str] = {}  # and the axis that each counts, if any
        self.complex: set[str] = set()

    def copy(self) -> Names:
        made = Names()
        made.arrays, made.counters = dict(self.arrays), dict(self.counters)
        made.numbers, made.complex = list(self.numbers), set(self.complex)
        return made


class Values:
    """Writes keys of arrays, and expressions, of one program."""

    def __init__(self, seed: int | str) -> None:
        self.rng = random.Random(seed)
        rank = self.rng.choices((1, 2, 3), (5, 5, 1))[0]
        axes = "abc"[:rank]
        if rank > 1 and self.rng.random() < 0.33:
            axes = "a" * rank  # square
        self.axes: Axes = tuple(axes)
        self.names = Names()
        self.names.arrays["u"] = self.axes
        self.given = ["u"]
        others = self.rng.choices((0, 1, 2), (3, 5, 1))[0]
        for name in ("x", "y")[:others]:
            whole = self.rng.random() < 0.7
            self.names.arrays[name] = self.axes if whole else self.axes[-1:]
            self.given.append(name)
        self.given_axes = {name: self.names.arrays[name] for name in self.given}
        self.fresh = 0
        self.used: set[str] = set()
        self.before: list[str] = []
        self.loops = 0
        self.depth = 0  # of blocks
        self.is_single = False  # in a loop over single elements
        self.own: list[tuple[str, str | None, str]] = []  # axes of what is written
        self.owner = ""

    def chance(self, part: float) -> bool:
        return self.rng.random() < part

    # ---- keys

    def index(self, axis: str) -> str:
        """Return a number along an axis: a counter, mostly, where there is one."""
        counters = list(self.names.counters)
        if counters and self.chance(0.8):
            fit = [c for c in counters if self.names.counters[c] == axis] or counters
            c = self.rng.choice(fit)
            forms = ("{c}",) * 6 + (
                *("{c} - 1", "{c} + 1", "-{c} - 1", "-1 - {c}", "{c} - 2", "{c} % 2"),
                *(
                    "n - 1 - {c}",
                    "{c} // 2",
                    "{c} + m",
                    "{c} - 4",
                    "{c} - 3",
                    "-3 - {c}",
                ),
            )
            return self.rng.choice(forms).format(c=c)
        return self.rng.choice(_INDICES)

    def along(self, axis: str, wanted: str) -> str | None:
        """Return a key that makes ``wanted`` of an axis."""
        if wanted == axis:
            return self.rng.choice(_WHOLE)
        code = wanted.removeprefix(axis + "|")
        if code == wanted or code not in _PARTS:
            return None
        written = self.rng.choice(_PARTS[code])
        if written == "i" and self.names.counters and self.chance(0.3):
            return f"i + {self.rng.choice(list(self.names.counters))}"
        return written

    def key(self, axes: Axes, wanted: Axes) -> str | None:
        """Return a key of an array that gives such axes, in their order."""
        if len(wanted) > len(axes):
            return None
        kept = sorted(self.rng.sample(range(len(axes)), len(wanted)))
        parts: list[str] = []
        for k, axis in enumerate(axes):
            if k in kept:
                part = self.along(axis, wanted[kept.index(k)])
                if part is None:
                    return None
                parts.append(part)
            else:
                parts.append(self.index(axis))
        arrays = [p for p in parts if p[0] in "[ij-" and p[-1] != ":" and ":" not in p]
        if len([p for p in arrays if p[0] == "[" or "i" in p or "j" in p]) > 1:
            return None
        while len(parts) > 1 and parts[-1] == ":" and self.chance(0.6):
            parts.pop()
        if len(parts) > 1 and self.chance(0.06):
            at = next((k for k, p in enumerate(parts) if p == ":"), None)
            if at is not None and len(parts) == len(axes):
                parts[at] = "..."
        return ", ".join(parts)

    def part(self, name: str) -> tuple[str, Axes]:
        """Return how some part of an array is written, and the axes that it has."""
        axes = self.names.arrays[name]
        wanted: list[str] = []
        parts: list[str] = []
        arrays = 0
        self.own, self.owner = [], name
        for axis in axes:
            kind = self.rng.choices(
                ("index", "whole", "part", "array"), (4, 3, 4, 0.7)
            )[0]
            if kind == "array" and arrays:
                kind = "part"
            if kind == "index":
                parts.append(self.index(axis))
                self.own.append((axis, None, parts[-1]))
                continue
            if kind == "whole":
                parts.append(self.rng.choice(_WHOLE))
                wanted.append(axis)
                self.own.append((axis, axis, parts[-1]))
                continue
            arrays += kind == "array"
            code = self.rng.choice(("-1", "-1", "-2", "/2", "2", "1", "s", "-"))
            if code == "-":
                code = self.rng.choice(_STEPPED)
            if kind == "array":
                code = self.rng.choice(("i", "i", "j"))
            found = self.along(axis, f"{axis}|{code}")
            assert found is not None
            if found[0] == "[":
                if arrays and kind != "array":
                    found = ":1" if code == "1" else ":2"
                arrays += 1
            parts.append(found)
            wanted.append(f"{axis}|{code}")
            self.own.append((axis, wanted[-1], found))
        while len(parts) > 1 and parts[-1] == ":" and self.chance(0.7):
            parts.pop()
        if all(p == ":" for p in parts) and self.chance(0.7):
            parts = ["..."]
        return f"{name}[{', '.join(parts)}]", tuple(wanted)

    def beside(self, wanted: Axes) -> str | None:
        """Return a part of the array that is written, or of one like it, near by."""
        own = self.own
        if tuple(w for _, w, _ in own if w) != wanted:
            return None
        axes = self.names.arrays.get(self.owner)
        fit = [x for x, a in self.names.arrays.items() if a == axes]
        if not fit:
            return None
        name = self.owner if self.chance(0.6) else self.rng.choice(fit)
        key: list[str] = []
        for axis, kept, text in own:
            if self.chance(0.5):
                key.append(text)
            elif kept is None:
                key.append(self.index(axis))
            else:
                found = "::-1" if kept == axis else self.along(axis, kept)
                is_array = text[0] in "[ij" or (found or "[")[0] in "[ij"
                key.append(text if found is None or is_array else found)
        return f"{name}[{', '.join(key)}]" if key else None

    def several(self, name: str) -> tuple[str, Axes]:
        """Return elements that two arrays of integers, or a mask, say together."""
        axes = self.names.arrays[name]
        if self.chance(0.5) or len(axes) < 2:
            limit = self.rng.choice(("0", "1", "t", "n"))
            sign = self.rng.choice("><")
            return f"{name}[{name} {sign} {limit}]", ("mask",)
        rest = axes[2:]
        first = self.rng.choice(("i, j", "i, i", "j, i - 1", "-i - 1, j"))
        return f"{name}[{first}]", ("a|i", *rest)

    # ---- expressions

    def leaf(self, wanted: Axes) -> str:
        """Return an array of such axes, or what is stretched to them."""
        if self.own and self.chance(0.2):
            near = self.beside(wanted)
            if near is not None:
                return near
        names = list(self.names.arrays)
        for _ in range(6):
            name = self.rng.choice(names)
            axes = self.names.arrays[name]
            goal = wanted if self.chance(0.85) else wanted[1:]
            if axes == goal and self.chance(0.4):
                return name
            if len(goal) == 2 and axes == goal[::-1] and self.chance(0.6):
                return f"{name}.T"
            found = self.key(axes, goal)
            if found is not None:
                return self.chained(f"{name}[{found}]")
        return self.number()

    def chained(self, text: str) -> str:
        """Return a part as a part of a part, now and then."""
        name, _, key = text.partition("[")
        if self.chance(0.82 if self.is_single else 0.92) or key.startswith(
            ("...", ":]")
        ):
            return text
        parts = ("::2", "::2", "1:", "::-1", ":-1", "...", "::1", "1::2")
        chosen = [self.rng.choice(parts) for _ in range(self.rng.choice((1, 1, 2)))]
        return f"{name}[{']['.join(chosen)}][{key}"

    def product(self, wanted: Axes) -> str | None:
        """Return a product of matrices with such axes, or of parts of them."""
        arrays = list(self.names.arrays.items())
        self.rng.shuffle(arrays)
        for name, axes in arrays:
            if len(axes) != 2 or not wanted:
                continue
            code = self.rng.choice(("", "", "|/2", "|-1", "|/2-", "|2"))
            inner = f"{axes[1]}{code}"
            one: str | None = name
            if code or axes[0] != wanted[0]:
                found = self.key(axes, (wanted[0], inner))
                one = f"{name}[{found}]" if found is not None else None
            other = self.leaf((inner, *wanted[1:]))
            if one and ("[" in other or other in self.names.arrays):
                return f"{one} @ {other}"
        return None

    def number(self) -> str:
        """Return a number: one of the program's, an element, or a sum."""
        kind = self.rng.random()
        if kind < 0.03:
            return self.rng.choice(RARE)
        if kind < 0.35:
            return self.rng.choice(_NUMBERS)
        if kind < 0.5 and self.names.counters:
            return self.rng.choice(list(self.names.counters))
        if kind < 0.65 and self.names.numbers:
            return self.rng.choice(self.names.numbers)
        name = self.rng.choice(list(self.names.arrays))
        if kind < 0.85 and not self.is_single:
            return f"{name}.{self.rng.choice(('sum', 'max', 'min', 'sum'))}()"
        return self.element(name)

    def element(self, name: str) -> str:
        axes = self.names.arrays[name]
        return self.chained(f"{name}[{', '.join(self.index(a) for a in axes)}]")

    def expression(self, wanted: Axes, depth: int = 2) -> str:
        if len(wanted) in (1, 2) and self.chance(0.06):
            made = self.product(wanted)
            if made is not None:
                return made
        if depth == 0 or self.chance(0.3):
            return self.leaf(wanted) if self.chance(0.75) else self.number()
        one = self.expression(wanted, depth - 1)
        other = self.expression(wanted, depth - 1)
        form = self.rng.choice(
            (
                *("{a} + {b}", "{a} - {b}", "{a} * 0.5", "{a} + 1.0", "2 * {a}"),
                *(
                    "{a} * 0.5 + {b}",
                    "{a} * 1.0",
                    "-{a}",
                    "{a} + {b}",
                    "({a} + {b}) / 2",
                ),
                *("np.maximum({a}, {b})", "np.where({a} > 0, {a}, {b})", "abs({a})"),
            )
        )
        return form.format(
            a=f"({one})" if " " in one else one,
            b=f"({other})" if " " in other else other,
        )
