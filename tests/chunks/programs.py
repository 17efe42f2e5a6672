# SPDX-License-Identifier: Apache-2.0
"""Random programs on arrays in random chunks, of what is done across chunks.

``python -m tests.chunks.programs --programs 300 --seed 1 --jobs 2`` checks many, and
says which are wrong. ``python -m tests.fuzz --backend chunks`` has all operations.
"""

# What programs are run on has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import argparse
import json
import sys
import traceback
import warnings
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser
from tests.fuzz.chunks import random_chunks
from tests.workers import run_all, write

if TYPE_CHECKING:
    from collections.abc import Iterable

Program = list[tuple[str, int]]
_POINTS = ("tanh", "square", "scale", "abs", "floor", "where")
_FOLDS = ("mean", "max", "std", "sum_exp", "argmax", "min", "norm", "prod")
_MOVES = ("stencil", "roll", "transpose", "slice", "pad", "reshape", "cat", "flip")
_SCANS = ("cumsum", "cummax", "sort", "take", "matmul", "column", "counts")
TALL_SHARE = 0.2
_LARGEST = 300_000  # elements that are joined to as many
_NAMES = (*_POINTS, *_FOLDS, *_FOLDS, *_MOVES, *_SCANS)


def random_program(rng: np.random.Generator) -> Program:
    """Return a few steps; the number says along which axis, or how far."""
    count = int(rng.integers(1, 7))
    return [
        (_NAMES[int(rng.integers(len(_NAMES)))], int(rng.integers(2)))
        for _ in range(count)
    ]


def random_shape(rng: np.random.Generator) -> tuple[int, ...]:
    """Return two sizes; a fifth of all arrays are tall or wide, by thousands."""
    if rng.random() >= TALL_SHARE:
        return tuple(int(n) for n in rng.integers(2, 20, 2))
    long = int(2_000 * 50 ** rng.random())
    shape = (long, int(rng.integers(2, 6)))
    return shape if rng.random() < 0.7 else shape[::-1]


def run(
    program: Program, x: Any, y: Any, searched: dict[int, tuple[Any, int]] | None = None
) -> tuple[Any, ...]:
    """Run the steps on ``x``, with ``y`` beside it, as NumPy means them.

    ``searched`` keeps, for each result that is places, the array and the axis.
    """
    results: list[Any] = []
    for name, k in program:
        if name == "argmax" and searched is not None:
            searched[1 + len(results)] = x, k
        if name in _FOLDS:
            found, x = _fold(name, k, x)
            results.append(found)
        elif name in _POINTS:
            x = _point(name, k, x, y)
        else:
            x = _move(name, k, x)
    return (x, *results)


def _point(name: str, k: int, x: Any, y: Any) -> Any:
    match name:
        case "tanh":
            return np.tanh(x)
        case "square":
            return x * x * 0.25
        case "scale":
            return x + y if x.shape == y.shape else x * 0.5
        case "abs":
            return np.abs(x) - 0.5
        case "floor":
            return np.maximum(x, 0.25) + x
        case _:
            return np.where(x > 0, x, x * 0.125)


def _fold(name: str, k: int, x: Any) -> tuple[Any, Any]:
    match name:
        case "mean":
            found = x.mean(k, keepdims=True)
        case "max":
            found = x.max(k, keepdims=True)
        case "min":
            found = x.min(k, keepdims=True)
        case "std":
            found = x.std(k, keepdims=True)
        case "sum_exp":
            high = x.max(k, keepdims=True)
            e = np.exp(x - high)
            found = e.sum(k, keepdims=True)
            return found, e / found
        case "norm":
            found = np.sqrt((x * x).sum())
            return found, x / (found + 1)
        case "prod":
            found = (1 + x * 0.001).prod(k)
            return found, x
        case _:
            return x.argmax(k), x
    return found, x - found * 0.5


def _move(name: str, k: int, x: Any) -> Any:
    rows, columns = x.shape
    match name:
        case "stencil":
            if min(rows, columns) < 3:
                return x
            return x[1:-1, 1:-1] - 0.25 * (x[2:, 1:-1] + x[1:-1, :-2])
        case "roll":
            return np.roll(x, 2, k) * 0.5 + x
        case "transpose":
            return x.T + 0.5
        case "slice":
            return x[:, 1:] if k and columns > 3 else x[::2] if rows > 4 else x
        case "pad":
            return np.pad(x, 1)
        case "reshape":
            return x.reshape(-1, 1) if k else x.reshape(1, -1)
        case "cat":
            return np.concatenate([x, x * 2], axis=k) if x.size < _LARGEST else x
        case "flip":
            return np.flip(x, k)
        case _:
            return _scan(name, k, x)


def _scan(name: str, k: int, x: Any) -> Any:
    match name:
        case "cumsum":
            return np.cumsum(x, k) * 0.125
        case "cummax":
            return np.maximum.accumulate(x, k)
        case "sort":
            return np.sort(x, k)
        case "take":
            return np.take(x, np.asarray([0, 1, 0]) % x.shape[k], axis=k)
        case "counts":
            places = (np.abs(x[:, :1]) > 8).astype(np.int64).reshape(-1)
            found = np.zeros(2, x.dtype)
            np.add.at(found, places, x[:, 0])
            return x + found.sum() * 0.0625
        case "matmul":
            return (x @ x.T) * 0.0625 if max(x.shape) < 64 else x
        case _:
            return x - x[:1]


def check_program(seed: int) -> None:
    """Compare program ``seed`` with NumPy, and its bits under two schedulers."""
    da: Any = import_module("dask.array")
    dask: Any = import_module("dask")
    rng = np.random.default_rng(seed)
    program = random_program(rng)
    shape = random_shape(rng)
    dtype = ("f4", "f8")[int(rng.integers(2))]
    x, y = (rng.standard_normal(shape).astype(dtype) for _ in range(2))
    chunks = [tuple(random_chunks(rng, n) for n in shape) for _ in range(2)]
    fused = nfuser.fuse(lambda x, y: run(program, x, y), rechunk="warn")
    pairs = zip((x, y), chunks, strict=True)
    lazy = fused(*(da.from_array(a, chunks=c) for a, c in pairs))
    found = dask.compute(*lazy, scheduler="sync")
    again = dask.compute(*lazy, scheduler="threads", num_workers=3)
    searched: dict[int, tuple[Any, int]] = {}
    rows = zip(found, again, run(program, x, y, searched), lazy, strict=True)
    for number, (a, other, b, named) in enumerate(rows):
        wanted = np.asarray(b)
        assert a.shape == wanted.shape == named.shape
        assert a.dtype == wanted.dtype == named.dtype
        assert np.asarray(a).tobytes() == np.asarray(other).tobytes()
        if number in searched:
            # Of values that differ by rounding alone any may be the largest.
            a, wanted = (_at(*searched[number], places) for places in (a, wanted))
        limit = (2e-3 if dtype == "f4" else 1e-9) * max(1, np.abs(wanted).max())
        np.testing.assert_allclose(a, wanted, rtol=0, atol=limit)


def _at(x: Any, axis: int, places: Any) -> Any:
    """Return what an array holds at ``places`` along an axis."""
    assert np.all((places >= 0) & (places < x.shape[axis]))
    return np.take_along_axis(x, np.expand_dims(places, axis), axis)


@dataclass(frozen=True)
class Result:
    """What became of one program; ``report`` says what was wrong."""

    index: int
    report: str | None = None


@dataclass(frozen=True)
class Task:
    """The programs ``start`` up to ``stop``."""

    start: int
    stop: int

    def part(self, start: int, stop: int) -> Task:
        """Return the task of some of the programs."""
        return replace(self, start=start, stop=stop)

    def command(self) -> list[str]:
        """Return what to give Python for a worker."""
        return ["-m", "tests.chunks.programs", "--worker", f"{self.start}:{self.stop}"]

    def parsed(self, line: str) -> Result:
        """Return what a worker printed."""
        return Result(**json.loads(line))

    def crashed(self, index: int, how: str) -> Result:
        """Describe a program at which the process ended."""
        return Result(index, f"program {index} is wrong: {how}")

    def results(self) -> Iterable[Result]:
        """Check the programs in this process."""
        warnings.filterwarnings("ignore", "rechunk the argument first")
        for seed in range(self.start, self.stop):
            try:
                check_program(seed)
            except Exception:  # noqa: BLE001 (whatever a wrong program raises)
                report = f"program {seed} is wrong\n{traceback.format_exc(limit=-3)}"
                yield Result(seed, report)
            else:
                yield Result(seed)


def main() -> int:
    """Check programs; print those that are wrong, and how many they are."""
    parser = argparse.ArgumentParser(prog="python -m tests.chunks.programs")
    parser.add_argument("--programs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0, help="in ten thousands")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        write(Task(*map(int, given.worker.split(":"))).results())
        return 0
    first = given.seed * 10_000
    count = wrong = 0
    for result in run_all(Task(first, first + given.programs), given.jobs):
        count += 1
        wrong += result.report is not None
        if result.report is not None:
            print(result.report, flush=True)
    print(f"chunks: {count} programs, {wrong} wrong", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
