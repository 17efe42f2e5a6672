# SPDX-License-Identifier: Apache-2.0
"""Single functions against NumPy, on one thread: NumPy's time over ours.

``python asv_bench/benchmarks/functions.py [PREFIX ...]`` prints a row for each;
``--json FILE`` writes them. The last rows compare nfuser with itself: several outputs
with one of them, a function with the functions that it is made of.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

os.environ.setdefault("NFUSER_NUM_THREADS", "1")

import numpy as np

import nfuser

if TYPE_CHECKING:
    from collections.abc import Callable

    Array = np.ndarray[Any, Any]

THIRTY = tuple(range(30))  # a range would stay a loop
POWERS = (3, 5, 2.5, -1.5, 1.7)
_random = np.random.default_rng(0).random


def _same(x: Array) -> Array:
    return x


def _column(x: Array) -> Array:
    return x[:, 0]


def steps_of_sines(u: Any) -> Any:
    for _ in THIRTY:
        u = u + 0.1 * np.sin(u)
    return u


def _cov(m: Any) -> Any:
    centred = m - m.mean(axis=1, keepdims=True)
    return centred @ centred.T / (m.shape[1] - 1)


def _power(exponent: float, x: Any) -> Any:
    return x**exponent


def _sum_in_tanh(x: Any) -> Any:
    return np.tanh(x + x)


def _functions() -> dict[str, tuple[Callable[..., Any], Array]]:
    """Return by name a function of one array, and that array."""
    found: dict[str, tuple[Callable[..., Any], Array]] = {}
    for dtype in ("f4", "f8"):
        large = _random(1 << 20).astype(dtype)
        found[f"sin(sin(x)) {dtype}"] = lambda x: np.sin(np.sin(x)), large
        found[f"thirty steps of u + k sin(u) {dtype}"] = steps_of_sines, large[:100_000]
        line = _random(10_000).astype(dtype) + 0.1
        column = (_random((10_000, 3)).astype(dtype) + 0.1)[:, 0]
        short = _random((1000, 10)).astype(dtype) + 0.1
        places = {"line": line, "column": column, "short rows": short}
        for place, x in places.items():
            for p in POWERS:
                found[f"x**{p} {place} {dtype}"] = partial(_power, p), x
            for function in (np.exp, np.log):
                found[f"{function.__name__} {place} {dtype}"] = function, x
            found[f"tanh(x + x) {place} {dtype}"] = _sum_in_tanh, x
            found[f"power(x, x) {place} {dtype}"] = lambda x: np.power(x, x), x
        found |= _moves(dtype)
    return found


def _moves(dtype: str) -> dict[str, tuple[Callable[..., Any], Array]]:
    """Return functions that find and move elements."""
    line, table = _random(100_000).astype(dtype), _random((1000, 1000)).astype(dtype)
    rows = table[:500, :200]
    waves = (line + 1j * line).astype("c8" if dtype == "f4" else "c16")
    return {
        f"argmax line {dtype}": (np.argmax, line),
        f"argmax all {dtype}": (np.argmax, table),
        f"argmax rows {dtype}": (lambda x: np.argmax(x, axis=-1), table),
        f"argmax short rows {dtype}": (lambda x: np.argmax(x, axis=-1), rows),
        f"argmax columns {dtype}": (lambda x: np.argmax(x, axis=0), table),
        f"conj {dtype}": (np.conj, waves),
        f"repeat {dtype}": (lambda x: np.repeat(x, 3), line),
        f"repeat rows {dtype}": (lambda x: np.repeat(x, 2, axis=0), table),
        f"repeat columns {dtype}": (lambda x: np.repeat(x, 2, axis=1), table),
        f"partition line {dtype}": (lambda x: np.partition(x, 500), line),
        f"partition rows {dtype}": (lambda x: np.partition(x, 50, axis=-1), table),
        f"cov {dtype}": (np.cov, table[:200]),
        f"cov in words {dtype}": (_cov, table[:200]),
    }


# -- nfuser beside itself --------------------------------------------------------------


def _weights(d: Any) -> tuple[Any, ...]:
    inverse = (d * d).sum(-1) ** -1.5
    return tuple(d[..., k] * inverse for k in range(3))


def _one_weight(d: Any) -> Any:
    return _weights(d)[0]


def _bordered(x: Any, axis: int, value: float) -> Any:
    first = x[:1] if axis == 0 else x[:, :1]
    rest = x[1:] if axis == 0 else x[:, 1:]
    return np.concatenate([first * 0 + value, rest], axis=axis)


BORDERS = tuple(
    (lambda x, a=axis, v=value: _bordered(x, a, v))
    for axis, value in ((0, 1.0), (1, 2.0), (0, 3.0))
)


def _three_borders(x: Any) -> Any:
    for one in BORDERS:
        x = one(x)
    return x


def _beside() -> dict[str, Callable[[], tuple[Callable[[], Any], Callable[[], Any]]]]:
    return {
        "three outputs: one of them over all": _outputs,
        "three borders: three functions over one": _borders,
    }


def _outputs() -> tuple[Callable[[], Any], Callable[[], Any]]:
    d = _random((300, 300, 3)) + 0.1
    every, one = nfuser.fuse(_weights), nfuser.fuse(_one_weight)
    return lambda: every(d), lambda: one(d)


def _borders() -> tuple[Callable[[], Any], Callable[[], Any]]:
    x = _random((1000, 1000))
    whole, parts = nfuser.fuse(_three_borders), [nfuser.fuse(b) for b in BORDERS]

    def apart() -> Any:
        result = x
        for part in parts:
            result = part(result)
        return result

    return lambda: whole(x), apart


FUNCTIONS = _functions()
BESIDE = _beside()
NAMES = (*FUNCTIONS, *BESIDE)


def ratio_of(name: str) -> float:
    """Return the time of the peer over ours, once both are known to agree."""
    if name in BESIDE:
        return _ratio(*BESIDE[name]())
    function, x = FUNCTIONS[name]
    fused = nfuser.fuse(function)
    found, wanted = np.asarray(fused(x)), np.asarray(function(x))
    if "partition" not in name:  # which may put all but one element anywhere
        bound = 1e-4 if "f4" in name else 1e-11
        np.testing.assert_allclose(found, wanted, rtol=bound, atol=1e-3 * bound)
    return _ratio(lambda: fused(x), lambda: function(x))


def _ratio(ours: Callable[[], Any], theirs: Callable[[], Any]) -> float:
    """Return the ratio of medians; each turn of a call lasts for half a millisecond."""
    ours(), theirs(), ours()
    turns = max(int(5e-4 / max(_seconds(theirs, 1), 1e-9)), 1)
    pairs = [(_seconds(ours, turns), _seconds(theirs, turns)) for _ in range(25)]
    return median(t for _, t in pairs) / median(o for o, _ in pairs)


def _seconds(call: Callable[[], Any], turns: int) -> float:
    begin = perf_counter()
    for _ in range(turns):
        call()
    return perf_counter() - begin


class Functions:
    """How many times NumPy's speed; or what one function costs beside its parts."""

    params = NAMES
    param_names = ("function",)

    def track_ratio(self, name: str) -> float:
        return ratio_of(name)


def main() -> None:
    """Print a row for each function."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("names", nargs="*", metavar="PREFIX")
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name in NAMES:
        if name.startswith(tuple(given.names) or ""):
            found = ratio_of(name)
            rows.append({"name": name, "values": {"ratio": found}})
            sys.stdout.write(f"{found:6.2f}  {name}\n")
            sys.stdout.flush()
    if given.json:
        sys.path.append(str(Path(__file__).parents[2]))
        from asv_bench.compare.provenance import provenance

        given.json.write_text(json.dumps(provenance("cpu") | {"rows": rows}, indent=1))


if __name__ == "__main__":
    main()
