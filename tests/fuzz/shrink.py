# SPDX-License-Identifier: Apache-2.0
"""Make a failing program smaller while it still fails in the same way."""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from tests.fuzz.check import check

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.fuzz.program import Call, Input, Program

_MOST_TRIES = 150
_MOST_CRASHES = 60  # each takes a process
_SMALLER = (1, 2, 3, 5, 8, 17, 33)


def shrink(program: Program, backend: str) -> Program:
    """Return the smallest program found that fails as ``program`` does."""
    problem = check(program, backend).problem
    kind = None if problem is None else _kind(problem)

    def still_fails(candidate: Program) -> bool:
        try:
            found = check(candidate, backend).problem
            return found is not None and _kind(found) == kind
        except Exception:  # noqa: BLE001 (a program that makes no sense is no shrinking)
            return False

    return _smallest(program, still_fails, _MOST_TRIES)


def shrink_crash(program: Program, backend: str) -> Program:
    """Return the smallest program found that ends its process."""

    def crashes(candidate: Program) -> bool:
        child = os.fork()
        if child == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            with contextlib.suppress(Exception):
                check(candidate, backend)
            os._exit(0)
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])

    return _smallest(program, crashes, _MOST_CRASHES)


def _smallest(program: Program, fails: Callable[[Program], bool], most: int) -> Program:
    tries = 0
    again = True
    while again and tries < most:
        again = False
        for candidate in islice(_smaller(program), most - tries):
            tries += 1
            if fails(candidate):
                program, again = candidate, True
                break
    return program


def _kind(problem: str) -> str:
    """Return what a problem is about, without its numbers."""
    text = problem.split(": ", 1)[1]
    if text.startswith("output"):
        text = text.split(": ", 1)[-1]
        return "differ" if "differ" in text else text.split()[0]
    return text.split(":")[0][:40]


def _smaller(program: Program) -> Iterator[Program]:
    for part in _PARTS:
        for candidate in part(program):
            tidy = _tidied(candidate)
            if tidy != program:
                yield tidy


def _outputs(program: Program) -> Iterator[Program]:
    if len(program.outputs) > 1:
        for name in program.outputs:
            yield replace(program, outputs=(name,))


def _calls(program: Program) -> Iterator[Program]:
    if len(program.calls) > 1:
        for k in range(len(program.calls)):
            yield replace(program, calls=(program.calls[k],))
        for k in range(len(program.calls)):
            calls = program.calls[:k] + program.calls[k + 1 :]
            yield replace(program, calls=calls)


def _ends(program: Program) -> Iterator[Program]:
    """Give an operand in place of a step's result."""
    for step in program.steps:
        if step.name in program.outputs:
            for name in step.uses:
                if name[0] == "t" and name not in program.outputs:
                    outputs = [name if o == step.name else o for o in program.outputs]
                    yield replace(program, outputs=tuple(outputs))


def _steps(program: Program) -> Iterator[Program]:
    """Read an operand of a step wherever the step's result is read."""
    for k, step in reversed(list(enumerate(program.steps))):
        for name in step.uses:
            if name[0] not in "tx":
                continue
            later = tuple(
                replace(s, uses=tuple(name if u == step.name else u for u in s.uses))
                for s in program.steps[k + 1 :]
            )
            outputs = tuple(name if o == step.name else o for o in program.outputs)
            if all(o[0] == "t" for o in outputs):
                yield replace(program, steps=program.steps[:k] + later, outputs=outputs)


def _sizes(program: Program) -> Iterator[Program]:
    numbers = sorted({name[1:] for name in program.calls[0].sizes})
    for number in numbers:
        present = {call.sizes[f"n{number}"] for call in program.calls}
        for size in _SMALLER:
            if size < max(present):
                yield replace(
                    program,
                    calls=tuple(_resized(c, number, size) for c in program.calls),
                )


def _resized(call: Call, number: str, size: int) -> Call:
    sizes = dict(call.sizes)
    before = sizes[f"n{number}"]
    sizes[f"n{number}"] = min(size, before)
    if sizes[f"m{number}"] == before:
        sizes[f"m{number}"] = min(size, before)
    return replace(call, sizes=sizes)


def _inputs(program: Program) -> Iterator[Program]:
    for k, x in enumerate(program.inputs):
        for simpler in _simpler(x):
            inputs = (*program.inputs[:k], simpler, *program.inputs[k + 1 :])
            yield replace(program, inputs=inputs)


def _simpler(x: Input) -> Iterator[Input]:
    if x.layout != "contiguous":
        yield replace(x, layout="contiguous")
    if x.values != "small":
        yield replace(x, values="small")
        if x.values not in ("normal", "small"):
            yield replace(x, values="normal")
    for k, d in enumerate(x.dims):
        if d[0] == "m":
            yield replace(x, dims=(*x.dims[:k], "n" + d[1:], *x.dims[k + 1 :]))


def _tidied(program: Program) -> Program:
    """Drop what no output needs."""
    needed = set(program.outputs)
    steps = list(program.steps)
    for step in reversed(steps):
        if step.name in needed:
            needed |= set(step.uses)
    inputs = tuple(x for x in program.inputs if x.name in needed)
    return replace(
        program,
        steps=tuple(s for s in steps if s.name in needed),
        inputs=inputs or program.inputs[:1],
        scalars=tuple(s for s in program.scalars if s in needed),
    )


_PARTS: tuple[Callable[[Program], Iterator[Program]], ...] = (
    _outputs,
    _calls,
    _ends,
    _steps,
    _sizes,
    _inputs,
)
