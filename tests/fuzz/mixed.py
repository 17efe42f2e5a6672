# SPDX-License-Identifier: Apache-2.0
"""Random programs of all generators, by turns."""

from __future__ import annotations

import tempfile
from collections import Counter
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING

from tests.fuzz import assign_programs as assign
from tests.fuzz import chain_programs as chain
from tests.fuzz import element_programs as element
from tests.fuzz import failing_programs as failing
from tests.fuzz import flow_programs as flow
from tests.fuzz import form_programs as form
from tests.fuzz import short_programs as short
from tests.fuzz import sweep_programs as sweep
from tests.fuzz import write_programs as write
from tests.fuzz.check import check
from tests.fuzz.drive import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def _write(seed: int, backend: str) -> None:
    text, _, rank = write.generate(seed)
    write.compare(text, seed, rank, backend, write.Tally())


def _flow(seed: int, backend: str) -> None:
    text, _, rank = flow.generate(seed)
    write.compare(text, seed, rank, backend, write.Tally(), flow.SHAPES)


def _failing(seed: int, backend: str) -> None:
    text, rank = failing.generate(seed)
    failing.compare(text, seed, rank, backend, failing.Tally())


def _swept(
    seed: int,
    backend: str,
    write: Callable[[int], tuple[str, int, int]] = sweep.generate,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        sweep.compare(seed, backend, Path(folder), write=write)


def _checked(seed: int, backend: str, *, shapes: bool = False) -> None:
    program = Task(seed, backend, seed, seed + 1, shapes).program(seed)
    if problem := check(program, backend).problem:
        raise AssertionError(problem)


def _assign(seed: int, backend: str) -> None:
    assign.compare(assign.generate(seed)[0], seed, backend)


def _short(seed: int, backend: str) -> None:
    short.compare(seed, backend, Counter())


def _form(seed: int, backend: str) -> None:
    form.compare(seed, backend, Counter())


GENERATORS = {
    "form": _form,
    "write": _write,
    "short": _short,
    "flow": _flow,
    "sweep": _swept,
    "chain": partial(_swept, write=chain.generate),
    "element": element.compare,
    "failing": _failing,
    "assign": _assign,
    "fuzz": _checked,
    "shapes": partial(_checked, shapes=True),
}
_ORDER = (
    *("write", "form", "short", "form", "flow", "short", "form", "write", "sweep"),
    *("form", "short", "fuzz", "form", "failing", "short", "form", "element", "write"),
    *("form", "short", "flow", "form", "chain", "short", "form", "write", "assign"),
    *("form", "short", "element", "form", "sweep", "short", "form", "write", "shapes"),
)
_ON_BOTH = ("write", "short", "assign", "failing", "flow", "form")


def turns(first: int, count: int) -> Iterator[tuple[str, int, str]]:
    """Return so many programs: of which generator, which number, on which backend."""
    named = islice(cycle(_ORDER), first % len(_ORDER), None)
    for number, name in zip(range(first, first + count), named, strict=False):
        every = number % 3 if name in _ON_BOTH else number % 4 == 3
        yield name, number, "interpret" if every else "cpu"
