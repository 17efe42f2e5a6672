# SPDX-License-Identifier: Apache-2.0
"""In which ways form programs are given what they are called with."""

# What a traced function is given has no static type.
# pyright: basic

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

_HEAD = re.compile(r"def program\((.*)\):\n")
_WAYS = {  # parameters, and what a name is then
    "places": (12, "{all}", ""),
    "names": (1, "{all}", ""),
    "dict": (1, "v", "v[{name!r}]"),
    "list": (1, "v", "v[{k}]"),
    "star": (1, "*v", "v[{k}]"),
    "inside": (1, "v, *w", "v['u'][{k}]"),
    "owner": (2, "", "OWN.{name}"),
    "method": (1, "self", "self.{name}"),
}


@dataclass(frozen=True)
class FormWay:
    """A text that is called in some way, and the names that it is given."""

    text: str
    names: list[str]
    way: str

    @classmethod
    def random(cls, rng: random.Random, text: str) -> FormWay:
        """Return some way for the text of a program."""
        found = _HEAD.search(text)
        assert found is not None
        names = [x for x in found[1].split(", ") if x]
        weights = [weight for weight, *_ in _WAYS.values()]
        (way,) = rng.choices(list(_WAYS), weights)
        _, head, each = _WAYS[way]
        head = f"def program({head.format(all=', '.join(names))}):\n"
        if each and names:
            values = (each.format(name=x, k=k) for k, x in enumerate(names))
            head += f"    {', '.join(names)} = {', '.join(values)}\n"
        head = ("class OWN:\n    pass\n\n\n" if "OWN" in head else "") + head
        return cls(text.replace(found[0], head, 1), names, way)

    def calling(
        self, function: Callable[..., Any], space: dict[str, Any]
    ) -> Callable[..., Any]:
        """Return what calls a function of the text with its arguments in order."""
        owner: Any = type("Owner", (), {})()

        def call(*given: Any) -> Any:
            named = dict(zip(self.names, given, strict=True))
            match self.way:
                case "names":
                    return function(**dict(reversed(named.items())))
                case "dict":
                    return function(named)
                case "list":
                    return function(list(given))
                case "inside":
                    return function({"n": 1, "u": given}, 2, None)
                case "owner" | "method":
                    holder = space["OWN"] if self.way == "owner" else owner
                    for name, x in named.items():
                        setattr(holder, name, x)
                    return function(*(() if self.way == "owner" else (owner,)))
                case _:
                    return function(*given)

        return call
