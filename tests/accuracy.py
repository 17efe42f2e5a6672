# SPDX-License-Identifier: Apache-2.0
"""Measure the CPU mathematics in ulps: ``python -m tests.accuracy`` prints a table.

``--json FILE`` writes what was found; a later run for other names adds to it.
"""

# Numba, mpmath and SciPy carry few types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np
from scipy import special

from asv_bench.compare.provenance import provenance, rows_before
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.point_op import POINT_OPS
from nfuser.compiler.lower.cpu.bound_angles import BOUNDS, NARROW
from tests.cpu_harness import Array, apply

if TYPE_CHECKING:
    from collections.abc import Callable

Range = tuple[float, float]

WIDE = "wide"
"""In place of a range: bit patterns drawn evenly, so all magnitudes and both signs."""
QUARTERS = "quarters"
NARROW_QUARTERS = "narrow quarters"
"""In place of a range: multiples of a quarter turn up to a bound, and next to them."""
LARGEST = {QUARTERS: BOUNDS[DType.F32], NARROW_QUARTERS: NARROW[DType.F32]}

# The functions of floats that round. What has no range below is sampled at 0 and over
# all magnitudes, and what has no bound may err by 4 ulp.
_ROUNDING = [
    op.name
    for op in POINT_OPS.values()
    if op.takes == "float" and op.gives == "same" and op.is_costly
    if not op.name.endswith("_near") and op.name != "nextafter"
]

# Where each function is sampled: pieces between which its method changes, its zeros,
# and the edges of its results' range.
RANGES: dict[str, tuple[Range | str, ...]] = {
    **dict.fromkeys(_ROUNDING, ((-4, 4), WIDE)),
    "exp": ((-1, 1), (-104, 89), (-746, 710), WIDE),
    "exp2": ((-1, 1), (-150, 129), (-1075, 1025), WIDE),
    "expm1": ((-1, 1), (-20, 89), (-40, 710), WIDE),
    "log": ((0.5, 2), (0, 100), WIDE),
    "log_positive": ((0.5, 2), (1e-30, 100), (2.0**-60, 2.0**-50)),
    "log2": ((0.5, 2), (0, 100), WIDE),
    "log10": ((0.5, 2), (0, 100), WIDE),
    "log1p": ((-0.5, 1), (-1, 10), WIDE),
    "sqrt": ((0, 4), WIDE),
    "rsqrt": ((0, 4), WIDE),
    "cbrt": ((-4, 4), (1, 8), WIDE),
    "reciprocal": ((-4, 4), WIDE),
    "sin": ((-1, 1), (-10, 10), (-1e5, 1e5), WIDE),
    "cos": ((-1, 1), (-10, 10), (-1e5, 1e5), WIDE),
    "tan": ((-1, 1), (-10, 10), (-1e5, 1e5), WIDE),
    "asin": ((-1, 1), (0.4, 0.6), (0.99, 1), WIDE),
    "acos": ((-1, 1), (0.4, 0.6), (0.99, 1), WIDE),
    "atan": ((-1, 1), (-10, 10), WIDE),
    "sinh": ((-1, 1), (-20, 20), (-89.5, 89.5), (-711, 711), WIDE),
    "cosh": ((-1, 1), (-20, 20), (-89.5, 89.5), (-711, 711), WIDE),
    "tanh": ((-1, 1), (-20, 20), WIDE),
    "asinh": ((-1, 1), (-20, 20), WIDE),
    "acosh": ((1, 1.1), (1, 20), WIDE),
    "atanh": ((-0.5, 0.5), (-1, 1), WIDE),
    "erf": ((-1, 1), (-6, 6), WIDE),
    "erfc": ((-1, 1), (-6, 10.2), (0, 27), WIDE),
    "erfinv": ((-0.5, 0.5), (-1, 1), (0.99, 1), WIDE),
    "erfcinv": ((0, 2), (0.4, 0.6), (0, 1e-6), WIDE),
    "power": ((0, 2), (0.99, 1.01), (-30, 30), (0, 3000), WIDE),
    "logaddexp": ((0, 4), (0, 100), (0, 1e4)),
}

# Largest errors in ulps (float32, float64), a little above those measured.
LARGEST_ERRORS: dict[str, tuple[float, float]] = {
    **dict.fromkeys(_ROUNDING, (4.0, 4.0)),
    "exp": (1.1, 1.1),
    "exp2": (1.0, 1.0),
    "expm1": (1.4, 1.4),
    "log": (1.0, 1.0),
    "log_positive": (2.9, 2.9),
    "log2": (1.0, 1.0),
    "log10": (1.0, 1.0),
    "log1p": (1.0, 1.0),
    "sqrt": (0.5, 0.5),
    "rsqrt": (1.5, 1.5),
    "cbrt": (0.8, 0.51),
    "reciprocal": (0.5, 0.5),
    "sin": (1.0, 1.0),
    "cos": (1.0, 1.0),
    "tan": (0.7, 2.4),
    "asin": (2.1, 2.1),
    "acos": (1.3, 1.3),
    "atan": (2.0, 1.6),
    "sinh": (1.8, 1.8),
    "cosh": (1.5, 1.5),
    "tanh": (1.4, 1.4),
    "asinh": (2.0, 2.0),
    "acosh": (2.4, 2.4),
    "atanh": (2.0, 2.0),
    "erf": (1.4, 1.2),
    "erfinv": (3.5, 4.0),
    "erfcinv": (4.0, 4.5),
    "divide": (0.5, 0.5),
    "power": (0.8, 0.9),
    "hypot": (0.51, 1.0),
    "atan2": (2.0, 2.0),
    "logaddexp": (1.8, 1.8),
}

_ANGLES = ((-1, 1), (-10, 10), (-1e5, 1e5), QUARTERS)
_NARROW = ((-1, 1), (-10, 10), (-8192, 8192), NARROW_QUARTERS)
BOUNDED: dict[str, tuple[Range | str, ...]] = {
    "sin_bounded": _ANGLES,
    "cos_bounded": _ANGLES,
    "tan_bounded": _ANGLES,
    "sin_narrow": _NARROW,
    "cos_narrow": _NARROW,
}
"""What loops call whose angles are within the bound of their type."""

BINARY = tuple(name for name in RANGES if POINT_OPS[name].arity == 2)

_F32_ALONE = ("sin_narrow", "cos_narrow")
COUNT = 200_000
"""Numbers that are drawn from each range; of errors' functions in f64 fewer."""

_INVERSES = frozenset({"erfinv", "erfcinv"})
_ERRORS = frozenset({"erf", "erfc"}) | _INVERSES

_NUMPY: dict[str, Callable[..., Any]] = {
    "sin_bounded": np.sin,
    "cos_bounded": np.cos,
    "tan_bounded": np.tan,
    "sin_narrow": np.sin,
    "cos_narrow": np.cos,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "atan2": np.arctan2,
    "log_positive": np.log,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x,
}


def exact(name: str, *operands: Array) -> Array:
    """Return the function's values in extended precision."""
    if name in _ERRORS:
        if operands[0].dtype == np.float32:
            wide = operands[0].astype(np.float64)
            return getattr(special, name)(wide).astype(np.longdouble)
        return _exact_error(name, operands[0])
    function = _NUMPY.get(name) or getattr(np, name)
    with np.errstate(all="ignore"):
        return function(*[x.astype(np.longdouble) for x in operands])


def _exact_error(name: str, x: Array) -> Array:
    """Evaluate in 40 digits, and keep the 64 bits of a longdouble in two words."""
    function = _INVERTED.get(name) or getattr(mpmath, name)
    values: list[Any] = []
    with mpmath.workdps(40):
        for number in x.tolist():
            # mpmath overflows on large numbers, where both functions are constant.
            value = function(max(-30.0, min(30.0, number)))
            high = float(value)
            low = float(value - high) if np.isfinite(high) else 0.0
            values.append(np.longdouble(high) + np.longdouble(low))
    return np.array(values)


def _erfinv(x: Any) -> Any:
    """Solve by Newton's method; NaN where there is no solution."""
    given = mpmath.mpf(x)
    if abs(given) > 0.5:
        return mpmath.sign(given) * _tail(1 - abs(given))
    found, slope = given, 2 / mpmath.sqrt(mpmath.pi)
    for _ in range(8):
        found -= (mpmath.erf(found) - given) / (slope * mpmath.exp(-found * found))
    return found


def _erfcinv(x: Any) -> Any:
    given = mpmath.mpf(x)
    if abs(given - 1) <= 0.5:
        return _erfinv(1 - given)
    return _tail(given) if given < 1 else -_tail(2 - given)


def _tail(small: Any) -> Any:
    """Return where erfc is ``small``, by Newton's method on its logarithm."""
    if not small > 0:
        return mpmath.inf if small == 0 else mpmath.nan
    wanted, slope = mpmath.log(small), -2 / mpmath.sqrt(mpmath.pi)
    found = mpmath.sqrt(-wanted)
    for _ in range(9):
        value = mpmath.erfc(found)
        steepness = slope * mpmath.exp(-found * found) / value
        found -= (mpmath.log(value) - wanted) / steepness
    return found


_INVERTED: dict[str, Callable[..., Any]] = {"erfinv": _erfinv, "erfcinv": _erfcinv}


def samples(ranges: tuple[Range | str, ...], dtype: Any, count: int) -> Array:
    """Draw `count` numbers from each of the ranges, always the same ones."""
    generator = np.random.default_rng(20240229)
    parts: list[Array] = []
    for limits in ranges:
        if isinstance(limits, str) and limits in LARGEST:
            bound = LARGEST[limits]
            turns = np.floor(np.exp2(generator.uniform(0, np.log2(bound), count)))
            near = (turns * (np.pi / 2)).astype(dtype)
            steps = generator.integers(-2, 3, count) * np.spacing(near)
            parts.append(np.minimum(near + steps.astype(dtype), dtype(bound)))
        elif isinstance(limits, str):
            integer = np.uint32 if dtype == np.float32 else np.uint64
            top = np.iinfo(integer).max
            drawn = generator.integers(0, top, count, integer, endpoint=True)
            numbers = drawn.view(dtype)
            parts.append(numbers[~np.isnan(numbers)])
        else:
            parts.append(generator.uniform(*limits, count).astype(dtype))
    return np.concatenate(parts)


def errors(got: Array, wanted: Array) -> Array:
    """Return the distance in ulps of the wanted value; infinite where kinds differ."""
    limits = np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        size = np.minimum(np.abs(wanted), limits.max).astype(got.dtype)
        # The spacing below a power of two is the smaller one that an error there has.
        ulp = np.spacing(size).astype(np.longdouble)
        distance = np.abs(got.astype(np.longdouble) - wanted) / ulp
        overflow = np.isinf(got) & (np.abs(wanted) > limits.max)
        right_side = np.sign(got) == np.sign(wanted)
    distance = np.where(overflow & right_side, 0, distance)
    distance = np.where(np.isnan(wanted) & np.isnan(got), 0, distance)
    distance = np.where(np.isinf(wanted) & (got == wanted), 0, distance)
    return np.where(np.isnan(distance), np.inf, distance)


def worst(name: str, dtype: Any, count: int) -> tuple[float, tuple[float, ...]]:
    """Return the largest error over the function's ranges and where it is."""
    ranges = BOUNDED[name] if name in BOUNDED else RANGES[name]
    if name in _ERRORS and dtype == np.float64:
        count = max(count // 20, 500)
    operands = [samples(ranges, dtype, count)]
    if name in BINARY:
        shuffled = np.random.default_rng(5).permutation(operands[0])
        operands.append(shuffled)
    distance = errors(apply(name, *operands), exact(name, *operands))
    position = int(np.argmax(distance))
    return float(distance[position]), tuple(float(x[position]) for x in operands)


def row(name: str, count: int) -> dict[str, Any]:
    """Return the largest errors of one function, and where they are."""
    row: dict[str, Any] = {"name": name, "values": {}, "places": {}}
    for dtype in (np.float32,) if name in _F32_ALONE else (np.float32, np.float64):
        ulps, where = worst(name, dtype, count)
        row["values"][dtype.__name__], row["places"][dtype.__name__] = ulps, where
    return row


def main() -> None:
    """Print the largest errors as a Markdown table."""
    parser = argparse.ArgumentParser(prog="tests.accuracy", description=main.__doc__)
    every = (*RANGES, *BOUNDED)
    parser.add_argument("names", nargs="*", help="of functions, or all", default=every)
    parser.add_argument("--count", type=int, default=COUNT, help="numbers of a range")
    parser.add_argument("--json", type=Path, help="write, beside rows of other names")
    given = parser.parse_args()
    size = () if given.count == COUNT else ("--count", str(given.count))
    command = " ".join(("python -m tests.accuracy", *size))
    head = provenance("accuracy", command) | {"unit": "ulp"}
    rows = rows_before(given.json, head)
    print("| function | float32 | at | float64 | at |")  # noqa: T201
    print("|---|---|---|---|---|")  # noqa: T201
    for name in given.names:
        rows[name] = row(name, given.count)
        cells = [f"`{name}`"]
        for kind, ulps in rows[name]["values"].items():
            cells += [f"{ulps:.2f}", " ".join(map(str, rows[name]["places"][kind]))]
        print("| " + " | ".join(cells) + " |", flush=True)  # noqa: T201
        if given.json:
            ordered = [rows[n] for n in every if n in rows]
            given.json.write_text(json.dumps(head | {"rows": ordered}, indent=1))


if __name__ == "__main__":
    main()
