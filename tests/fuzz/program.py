# SPDX-License-Identifier: Apache-2.0
"""A fused program as data, and as the Python that it stands for."""

from __future__ import annotations

import linecache
import math
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from tests.fuzz.arrays import build

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_numbers = count()


@dataclass(frozen=True)
class Input:
    """An array argument.

    ``dims`` holds "1", names "n0", "n1", ... of sizes, "m0" for a size that is either
    that of "n0" or 1, whichever the call says, and sums of products, as "2*n0+n1".
    """

    name: str
    dtype: str
    dims: tuple[str, ...]
    values: str = "normal"
    layout: str = "contiguous"
    seed: int = 0


@dataclass(frozen=True)
class Step:
    """One assignment; ``{0}`` and so on in the text stand for the names it uses."""

    name: str
    text: str
    uses: tuple[str, ...]

    def line(self) -> str:
        """Return the assignment as Python."""
        return f"{self.name} = {self.text.format(*self.uses)}"


@dataclass(frozen=True)
class Call:
    """The sizes and the run-time numbers of one call; text stands for a size."""

    sizes: Mapping[str, int]
    scalars: Mapping[str, int | float | str]

    def size(self, dim: str) -> int:
        """Return what a symbolic size is in this call."""
        if dim in self.sizes:
            return self.sizes[dim]
        total = 0
        for term in dim.split("+"):
            factors = term.split("*")
            total += math.prod(
                self.sizes[f] if f in self.sizes else int(f) for f in factors
            )
        return total

    def number(self, name: str) -> int | float:
        """Return a run-time number."""
        given = self.scalars[name]
        return self.size(given) if isinstance(given, str) else given


@dataclass(frozen=True)
class Program:
    """A function of arrays and run-time numbers, and the calls to make of it.

    A call that is there again is made again, with the same arrays.
    """

    inputs: tuple[Input, ...]
    scalars: tuple[str, ...]
    steps: tuple[Step, ...]
    outputs: tuple[str, ...]
    calls: tuple[Call, ...]

    def source(self) -> str:
        """Return the function as Python text."""
        names = [x.name for x in self.inputs] + list(self.scalars)
        lines = [f"def program({', '.join(names)}):"]
        lines += [f"    {step.line()}" for step in self.steps]
        outputs = ", ".join(self.outputs)
        lines.append(f"    return {outputs}")
        return "\n".join(lines) + "\n"

    def function(self, xp: object) -> Callable[..., Any]:
        """Return the function, with ``xp`` as its global of that name."""
        name = f"<fuzz program {next(_numbers)}>"
        return compiled(self.source(), name, xp)

    def arguments(self, call: Call) -> list[Any]:
        """Return the arrays and numbers of a call."""
        k = self.calls.index(call)
        arrays = [array_of(x, call, k) for x in self.inputs]
        return arrays + [call.number(name) for name in self.scalars]


def compiled(source: str, filename: str, xp: object) -> Callable[..., Any]:
    """Execute the text of a function so that its lines can be found again."""
    names: dict[str, Any] = {"np": np, "xp": xp, "bfloat16": ml_dtypes.bfloat16}
    names["__name__"] = "tests.fuzz.made"
    lines = source.splitlines(keepends=True)
    linecache.cache[filename] = (len(source), None, lines, filename)
    exec(compile(source, filename, "exec"), names)  # noqa: S102 (that is the point)
    return names["program"]


def shape_of(x: Input, call: Call) -> tuple[int, ...]:
    """Return the shape of an input in a call."""
    return tuple(map(call.size, x.dims))


def array_of(x: Input, call: Call, k: int) -> np.ndarray[Any, Any]:
    """Return an input of the call of number ``k``."""
    return build(x.dtype, shape_of(x, call), x.values, x.layout, x.seed + 1000 * k)


def script(program: Program, backend: str) -> str:
    """Return Python that runs the program's calls and prints what it gives."""
    fuse, made = "nfuser.fuse", "build{!r}"
    if backend == "interpret":
        fuse = 'nfuser.fuse(backend="interpret")'
    lines = ["import numpy as np", "import nfuser", "import nfuser.numpy as xp"]
    if any("bfloat16" in step.text for step in program.steps):
        lines.append("from ml_dtypes import bfloat16")
    lines.append("from tests.fuzz.arrays import build")
    if backend == "cuda":
        fuse, made = 'nfuser.fuse(dialect="numpy")', "to_torch(build{!r})"
        lines.append("from tests.fuzz.backends import to_torch")
    lines += ["", f"@{fuse}"]
    lines += program.source().splitlines()
    for number, call in enumerate(program.calls):
        k = program.calls.index(call)
        lines += ["", f"# call {number + 1}"]
        for x in program.inputs:
            array = array_of(x, call, k)
            spec = (x.dtype, shape_of(x, call), x.values, x.layout, x.seed + 1000 * k)
            held = f"  # {array.tolist()}" if 0 < array.size <= 8 else ""
            lines.append(f"{x.name} = {made.format(spec)}{held}")
        names = [x.name for x in program.inputs]
        numbers = [repr(call.number(name)) for name in program.scalars]
        lines.append(f"print(program({', '.join(names + numbers)}))")
    return "\n".join(lines) + "\n"
