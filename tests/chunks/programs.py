# SPDX-License-Identifier: Apache-2.0
"""Random programs on arrays in random chunks.

``python -m tests.chunks.programs FIRST COUNT`` checks many, and says which are wrong.
"""

# What programs are run on has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

import sys
import traceback
import warnings
from importlib import import_module
from typing import Any

import numpy as np

import nfuser

Program = list[tuple[str, int]]
_POINTS = ("tanh", "square", "scale", "abs", "floor", "where")
_FOLDS = ("mean", "max", "std", "sum_exp", "argmax", "min", "norm", "prod")
_MOVES = ("stencil", "roll", "transpose", "slice", "pad", "reshape", "cat", "flip")
_SCANS = ("cumsum", "cummax", "sort", "take", "matmul", "column", "counts")
_NAMES = (*_POINTS, *_FOLDS, *_FOLDS, *_MOVES, *_SCANS)


def random_program(rng: np.random.Generator) -> Program:
    """Return a few steps; the number says along which axis, or how far."""
    count = int(rng.integers(1, 7))
    return [
        (_NAMES[int(rng.integers(len(_NAMES)))], int(rng.integers(2)))
        for _ in range(count)
    ]


def random_chunks(rng: np.random.Generator, size: int) -> tuple[int, ...]:
    """Return ragged chunks of an axis; some are empty, some have one element."""
    pieces: list[int] = []
    while sum(pieces) < size:
        most = size - sum(pieces)
        kind = rng.integers(6)
        n = 0 if kind == 0 else 1 if kind == 1 else int(rng.integers(1, most + 1))
        pieces.append(n)
    return tuple(pieces or [0])


def run(program: Program, x: Any, y: Any) -> tuple[Any, ...]:
    """Run the steps on ``x``, with ``y`` beside it, as NumPy means them."""
    results: list[Any] = []
    for name, k in program:
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
            return np.concatenate([x, x * 2], axis=k)
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
    shape = tuple(int(n) for n in rng.integers(2, 20, 2))
    dtype = ("f4", "f8")[int(rng.integers(2))]
    x, y = (rng.standard_normal(shape).astype(dtype) for _ in range(2))
    chunks = [tuple(random_chunks(rng, n) for n in shape) for _ in range(2)]
    fused = nfuser.fuse(lambda x, y: run(program, x, y), rechunk="warn")
    pairs = zip((x, y), chunks, strict=True)
    lazy = fused(*(da.from_array(a, chunks=c) for a, c in pairs))
    found = dask.compute(*lazy, scheduler="sync")
    again = dask.compute(*lazy, scheduler="threads", num_workers=3)
    rows = zip(found, again, run(program, x, y), lazy, strict=True)
    for a, other, b, named in rows:
        wanted = np.asarray(b)
        assert a.shape == wanted.shape == named.shape
        assert a.dtype == wanted.dtype == named.dtype
        assert np.asarray(a).tobytes() == np.asarray(other).tobytes()
        limit = (2e-3 if dtype == "f4" else 1e-9) * max(1, np.abs(wanted).max())
        np.testing.assert_allclose(a, wanted, rtol=0, atol=limit)


def main(first: int, count: int) -> None:
    """Check ``count`` programs; print those that are wrong, and how many they are."""
    wrong = 0
    warnings.filterwarnings("ignore", "rechunk the argument first")
    for seed in range(first, first + count):
        try:
            check_program(seed)
        except Exception:  # noqa: BLE001 (whatever a wrong program raises)
            wrong += 1
            print(f"program {seed} is wrong", traceback.format_exc(limit=-3))
    print(f"programs {first} to {first + count - 1}: {wrong} wrong", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
