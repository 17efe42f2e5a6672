# SPDX-License-Identifier: Apache-2.0
"""Programs on Dask arrays: ragged chunks, empty ones, chunks of one element."""

# Dask has no static types that a strict checker could use.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser
import nfuser.numpy as xp
from tests.fuzz.arrays import is_array

if TYPE_CHECKING:
    from tests.fuzz.program import Program

_MOST_CHUNKS = 9


def random_chunks(rng: np.random.Generator, size: int) -> tuple[int, ...]:
    """Return ragged chunks of an axis; some are empty, some have one element."""
    pieces: list[int] = []
    while sum(pieces) < size and len(pieces) < _MOST_CHUNKS:
        most = size - sum(pieces)
        kind = rng.integers(7)
        n = 0 if kind == 0 else 1 if kind == 1 else int(rng.integers(1, most + 1))
        pieces.append(max(most // 3, 1) if kind > 4 else n)
    left = size - sum(pieces)
    return (*pieces, left) if left or not pieces else tuple(pieces)


@dataclass
class Chunked:
    """Calls a fused function with arrays in chunks, under two schedulers.

    Some arrays come as they are, but never all of them.
    """

    function: Any
    seeds: list[int]

    def __call__(self, *arguments: Any) -> list[Any]:
        """Return the outputs."""
        dask: Any = import_module("dask")
        places = [k for k, x in enumerate(arguments) if is_array(x)]
        if not places:
            return list(self.listed(self.function(*arguments)))
        sizes = [n for k in places for n in arguments[k].shape]
        rng = np.random.default_rng([*self.seeds, *sizes])  # equal calls, equal chunks
        always = places[int(rng.integers(len(places)))]
        given = [
            _cut(rng, x) if k == always or (k in places and rng.random() < 0.8) else x
            for k, x in enumerate(arguments)
        ]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "rechunk the argument first")
            lazy = self.listed(self.function(*given))
        found = dask.compute(*lazy, scheduler="sync")
        again = dask.compute(*lazy, scheduler="threads", num_workers=3)
        for a, b, told in zip(found, again, lazy, strict=True):
            assert (a.shape, a.dtype) == (told.shape, told.dtype), "says another form"
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes(), "bits differ"
        # Results that are equal by name Dask computes once.
        kept = {id(x): x for x in found}
        return [kept.pop(id(x), x.copy()) for x in found]

    @staticmethod
    def listed(result: Any) -> tuple[Any, ...]:
        """Return results as a tuple."""
        return result if isinstance(result, tuple) else (result,)


def _cut(rng: np.random.Generator, x: Any) -> Any:
    da: Any = import_module("dask.array")
    return da.from_array(x, chunks=tuple(random_chunks(rng, n) for n in x.shape))


def chunked(program: Program) -> Chunked:
    """Return the program for arrays in chunks; the same program, the same chunks."""
    function = nfuser.fuse(program.function(xp), rechunk="warn")
    return Chunked(function, [x.seed for x in program.inputs])
