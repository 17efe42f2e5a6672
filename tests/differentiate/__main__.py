# SPDX-License-Identifier: Apache-2.0
"""Compare gradients of many random programs: ``python -m tests.differentiate 1000``.

A second number is the first seed.
"""

# Arrays of any library have no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportMissingImports=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Any

import numpy as np

from tests.differentiate.numeric import differences, gradients
from tests.differentiate.programs import Program, random_program


def of_jax(program: Program, xs: list[Any]) -> list[Any]:
    """Return the gradients that JAX computes."""
    import jax

    everywhere = tuple(range(len(xs)))
    with jax.enable_x64(True):
        theirs = jax.grad(lambda *args: program.run(jax.numpy, *args), everywhere)
        return [np.asarray(g) for g in theirs(*map(jax.numpy.asarray, xs))]


def _gap(found: Any, wanted: Any) -> float:
    pairs = zip(found, wanted, strict=True)
    return max(float(np.abs(f - w).max() / (1 + np.abs(w).max())) for f, w in pairs)


def main(count: int, first: int = 0) -> int:
    """Return how many of ``count`` programs are wrong; print them."""
    wrong = 0
    for seed in range(first, first + count):
        program = random_program(seed, 4 + seed % 9)
        xs = program.arguments()

        def function(*args: Any, program: Program = program) -> Any:
            return program.run(np, *args)

        found = gradients(function, *xs)
        gaps = [_gap(found, differences(function, *xs)) / 2e-4]
        if find_spec("jax"):
            gaps.append(_gap(found, of_jax(program, xs)) / 1e-8)
        if not max(gaps) < 1:
            wrong += 1
            print(program, gaps, sep="\n")  # noqa: T201
    print(f"{count} programs, {wrong} wrong")  # noqa: T201
    return wrong


if __name__ == "__main__":
    sys.exit(min(main(*map(int, sys.argv[1:])), 1))
