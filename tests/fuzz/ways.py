# SPDX-License-Identifier: Apache-2.0
"""In which ways a program of two arrays and two numbers is given them, and gives back.

By their places or names, inside of lists and dicts, as attributes of an object from
outside; the numbers are Python's or NumPy's. What it returns is a tuple, a list or a
dict. A text is changed to be called so, and what calls it hides the difference.
"""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from typing import TypeAlias

    Give: TypeAlias = Callable[[Any, Any, Any, Any], tuple[list[Any], dict[str, Any]]]

_HEAD = "def program(a, b, n, t):"
_OWNER = """\
class Owner:
    a = b = None


OWNER = Owner()


"""
_WAYS: dict[str, tuple[float, str, list[str], Give]] = {
    "places": (8, "a, b, n, t", [], lambda a, b, n, t: ([a, b, n, t], {})),
    "names": (
        1,
        "a, b, n, t",
        [],
        lambda a, b, n, t: ([a], {"t": t, "n": n, "b": b}),
    ),
    "defaults": (
        1,
        "a, b, n=3, t=0.5",
        [],
        lambda a, b, n, t: (
            [a, b],
            ({} if n == 3 else {"n": n}) | ({} if t == 0.5 else {"t": t}),
        ),
    ),
    "pair": (1, "ab, n, t", ["a, b = ab"], lambda a, b, n, t: ([(a, b), n, t], {})),
    "list": (1, "ab, n, t", ["a, b = ab"], lambda a, b, n, t: ([[a, b], n, t], {})),
    "dict": (
        1,
        "x, n, t",
        ["a, b = x['a'], x['b']"],
        lambda a, b, n, t: ([{"b": b, "a": a}, n, t], {}),
    ),
    "inside": (
        1,
        "x, t",
        ["(a, b), n = x['ab'], x['n']"],
        lambda a, b, n, t: ([{"ab": (a, b), "n": n}, t], {}),
    ),
    "all": (1, "*x", ["a, b, n, t = x"], lambda a, b, n, t: ([a, b, n, t], {})),
    "rest": (
        1,
        "a, *, n, **x",
        ["b, t = x['b'], x['t']"],
        lambda a, b, n, t: ([a], {"n": n, "b": b, "t": t}),
    ),
    "owner": (
        1.5,
        "n, t",
        ["a, b = OWNER.a, OWNER.b"],
        lambda a, b, n, t: ([n, t], {"": (a, b)}),
    ),
}
_READS_BOTH = re.compile(r"\bb\b.*\ba\b|\ba\b.*\bb\b", re.DOTALL)
_INTEGERS = (int, int, int, np.int64, np.int32)
_FLOATS = (float, float, float, np.float64)


@dataclass(frozen=True)
class Way:
    """How a program is called: a changed text, and who calls what it defines."""

    text: str
    give: Give
    kinds: tuple[Callable[[Any], Any], Callable[[Any], Any]]

    @classmethod
    def random(cls, rng: random.Random, text: str) -> Way:
        """Return some way for the text of a program."""
        weights = [weight for weight, *_ in _WAYS.values()]
        ((_, parameters, lines, give),) = rng.choices(list(_WAYS.values()), weights)
        begin = text.index(_HEAD)
        if parameters == "n, t" and not _READS_BOTH.search(text[begin + len(_HEAD) :]):
            return cls.plain(text)  # what nobody reads is compared at each call
        head = f"def program({parameters}):\n" + "".join(f"    {x}\n" for x in lines)
        text = text[:begin] + text[begin:].replace(_HEAD + "\n", head)
        if "OWNER" in head:
            text = _OWNER + text
        *before, last = text.rstrip().split("\n")
        form = rng.random() if last.startswith("    return (") else 1
        listed = last.removeprefix("    return (").removesuffix(",)")
        if form < 0.1:
            last = f"    return [{listed}]"
        elif form < 0.2:
            pairs = enumerate(listed.split(", "))
            last = f"    return {{{', '.join(f'{k}: {x}' for k, x in pairs)}}}"
        kinds = rng.choice(_INTEGERS), rng.choice(_FLOATS)
        return cls("\n".join([*before, last, ""]), give, kinds)

    @classmethod
    def plain(cls, text: str) -> Way:
        """Return the way of a text as it is."""
        return cls(text, _WAYS["places"][3], (int, float))

    def calling(self, function: Any, space: dict[str, Any]) -> Callable[..., Any]:
        """Return what calls ``function``, of a text, as if it were plain."""

        def call(a: Any, b: Any, n: Any, t: Any) -> Any:
            kind, other = self.kinds
            given, named = self.give(a, b, kind(n), other(t))
            if "" in named:
                owner = space["OWNER"]
                owner.a, owner.b = named.pop("")
            found = function(*given, **named)
            return tuple(found.values()) if isinstance(found, dict) else tuple(found)

        return call
