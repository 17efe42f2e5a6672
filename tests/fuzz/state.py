# SPDX-License-Identifier: Apache-2.0
"""What is known of a program while it is being made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from tests.fuzz.program import Call, Input, Step, array_of
from tests.oracle import NAMESPACE, Value, from_array

if TYPE_CHECKING:
    from collections.abc import Callable

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
COMPLEX = ("complex64", "complex128")


@dataclass(frozen=True)
class Node:
    """A name in the program: its symbolic sizes, and its value in each call."""

    name: str
    dims: tuple[str, ...]
    values: tuple[Value, ...]

    @property
    def dtype(self) -> str:
        """The name of the dtype."""
        return self.values[0].dtype.name

    @property
    def kind(self) -> str:
        """One of bool, int, float, complex."""
        if self.dtype in FLOATS:
            return "float"
        return "int" if self.dtype in INTEGERS else self.dtype.rstrip("0123456789")


@dataclass(frozen=True)
class Draft:
    """A step that may be taken, and the symbolic sizes of its result."""

    text: str
    uses: tuple[str, ...]
    dims: tuple[str, ...]
    raises: bool = False


@dataclass
class State:
    """Inputs, steps and names so far.

    ``haste`` is how often a step uses what was made last.
    """

    rng: np.random.Generator
    inputs: list[Input]
    calls: list[Call]
    scalars: dict[str, type]
    limit: int
    steps: list[Step] = field(default_factory=list[Step])
    pool: list[Node] = field(default_factory=list[Node])
    haste: float = 0.5
    derived: dict[str, tuple[int, ...]] = field(
        default_factory=dict[str, tuple[int, ...]]
    )

    def load(self) -> None:
        """Put the inputs into the pool."""
        for x in self.inputs:
            values = [
                from_array(array_of(x, call, k)) for k, call in enumerate(self.calls)
            ]
            self.pool.append(Node(x.name, x.dims, tuple(values)))

    def sizes(self, dim: str) -> tuple[int, ...]:
        """Return what a symbolic size is in each call."""
        known = self.derived.get(dim)
        return tuple(c.size(dim) for c in self.calls) if known is None else known

    def dim(self, sizes: tuple[int, ...]) -> str:
        """Return a name for an axis that has these sizes in the calls."""
        if set(sizes) == {1}:
            return "1"
        names = [d for node in self.pool for d in node.dims if d[0] != "m"]
        names += self.derived
        found = next((d for d in names if self.sizes(d) == sizes), None)
        if found is None:
            found = f"d.{len(self.derived)}"
            self.derived[found] = sizes
        return found

    def chance(self, probability: float) -> bool:
        """Throw a coin."""
        return bool(self.rng.random() < probability)

    def choose(self, items: Any) -> Any:
        """Choose one of a sequence."""
        return items[int(self.rng.integers(0, len(items)))]

    def pick(self, wanted: Callable[[Node], bool] = lambda node: True) -> Node | None:
        """Choose a node, newer ones rather than older ones."""
        found = [node for node in self.pool if wanted(node)]
        if not found:
            return None
        if self.chance(self.haste):
            return found[-1 - int(self.rng.integers(0, min(2, len(found))))]
        return self.choose(found)

    def evaluate(self, draft: Draft) -> list[Value]:
        """Return what a step gives in each call."""
        line = draft.text.format(*draft.uses)
        values: list[Value] = []
        for k, call in enumerate(self.calls):
            names: dict[str, Any] = {"np": np, "xp": NAMESPACE}
            names["bfloat16"] = ml_dtypes.bfloat16
            names |= {name: call.number(name) for name in self.scalars}
            names |= {node.name: node.values[k] for node in self.pool}
            values.append(eval(line, names))
        return values


def broadcast(a: tuple[str, ...], b: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the symbolic sizes of two operands' result, or None."""
    rank = max(len(a), len(b))
    result: list[str] = []
    for p, q in zip(
        ("1",) * (rank - len(a)) + a, ("1",) * (rank - len(b)) + b, strict=True
    ):
        if p == q or q == "1":
            result.append(p)
        elif p == "1":
            result.append(q)
        elif {p[0], q[0]} == {"n", "m"} and p[1:] == q[1:]:
            result.append("n" + p[1:])
        else:
            return None
    return tuple(result)
