# SPDX-License-Identifier: Apache-2.0
"""The CPU mathematics: largest errors, special values, vector code."""

# Numba, mpmath and SciPy carry few types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import json
import platform
import re
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from llvmlite.binding import get_host_cpu_features
from scipy import special

from asv_bench.charts.measured import load
from nfuser.compiler.lower.cpu.vectors.lanes import of_any_reach
from nfuser.execution.interpret.primitives import ELEMENTWISE
from tests import accuracy
from tests.accuracy import BINARY, BOUNDED, LARGEST_ERRORS, RANGES, errors, worst
from tests.cpu_harness import Array, apply, binary_loop, unary_loop

if TYPE_CHECKING:
    from pathlib import Path

COUNT = 20_000

REFERENCES: dict[str, Any] = {
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "atan2": np.arctan2,
    "erf": special.erf,
    "erfc": special.erfc,
    "erfinv": ELEMENTWISE["erfinv"].meaning,
    "erfcinv": ELEMENTWISE["erfcinv"].meaning,
    "rsqrt": lambda x: 1 / np.sqrt(x),
}

# Rounding and tests of kind; every unary function in LARGEST_ERRORS is checked as well.
PLAIN = ("floor", "ceil", "trunc", "rint", "negative", "absolute", "sign")
KINDS = ("isnan", "isinf", "isfinite", "signbit")
SELECTING = ("maximum", "minimum", "fmax", "fmin", "copysign", "nextafter")
DIVIDING = ("floor_divide", "remainder", "fmod")
NO_EDGES = ("log_positive",)
UNARY = tuple(name for name in LARGEST_ERRORS if name not in (*BINARY, *NO_EDGES))

FLOATS = (np.float32, np.float64)


def reference(name: str) -> Any:
    return REFERENCES.get(name) or getattr(np, name)


def tricky(dtype: Any) -> Array:
    limits = np.finfo(dtype)
    sizes = [0, limits.smallest_subnormal, limits.tiny, limits.eps, 0.5, 1, 1.5, 2.5]
    sizes += [3, 7.25, 100, 1e6, limits.max, np.inf, np.nan]
    sizes += [np.nextafter(dtype(1), dtype(0)), np.nextafter(dtype(1), dtype(2))]
    numbers = np.array(sizes, dtype)
    return np.concatenate([numbers, -numbers])


def pairs(dtype: Any) -> tuple[Array, Array]:
    numbers = tricky(dtype)
    a, b = np.meshgrid(numbers, numbers)
    return a.ravel().copy(), b.ravel().copy()


def quietly(function: Any, *operands: Array) -> Array:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*operands)


def assert_alike(got: Array, wanted: Array, ulps: float, *operands: Array) -> None:
    """Ask for the same NaN, infinities and signs of zero, and for near numbers."""
    distance = errors(got, wanted.astype(np.longdouble))
    wrong = ~(distance <= ulps)
    zero = (wanted == 0) & (got == 0)
    wrong |= zero & (np.signbit(wanted) != np.signbit(got))
    cases = list(zip(*[x[wrong] for x in (*operands, got, wanted)], strict=True))
    assert not cases, cases[:8]


@pytest.mark.parametrize("name", list(RANGES))
@pytest.mark.parametrize("dtype", FLOATS)
def test_error_is_bounded(name: str, dtype: Any) -> None:
    ulps, where = worst(name, dtype, COUNT)
    assert ulps <= LARGEST_ERRORS[name][FLOATS.index(dtype)], where


@pytest.mark.parametrize("name", list(BOUNDED))
@pytest.mark.parametrize("dtype", FLOATS)
def test_error_at_bounded_angles_is_no_larger(name: str, dtype: Any) -> None:
    ulps, where = worst(name, dtype, COUNT)
    bounds = LARGEST_ERRORS[of_any_reach(name)]
    assert ulps <= bounds[FLOATS.index(dtype)], where


def test_measurement_sees_an_error() -> None:
    wanted = np.array([1.0], np.longdouble)
    off = np.nextafter(np.array([1.0]), 2)
    assert errors(off, wanted)[0] == 1
    assert errors(np.array([np.nan]), wanted)[0] == np.inf
    assert errors(np.array([np.inf]), wanted)[0] == np.inf


@pytest.mark.parametrize("name", [*UNARY, *PLAIN])
@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values_are_those_of_numpy(name: str, dtype: Any) -> None:
    numbers = tricky(dtype)
    wanted = quietly(reference(name), numbers)
    # The reference has errors of its own: NumPy's float32 functions reach 4 ulps.
    slack = 4.0 if name in LARGEST_ERRORS else 0.0
    assert_alike(apply(name, numbers), wanted, slack, numbers)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_kinds_are_those_of_numpy(name: str, dtype: Any) -> None:
    numbers = tricky(dtype)
    got = apply(name, numbers, to=np.bool_)
    np.testing.assert_array_equal(got, reference(name)(numbers))


@pytest.mark.parametrize("name", [*BINARY, *SELECTING, *DIVIDING])
@pytest.mark.parametrize("dtype", FLOATS)
def test_special_pairs_are_those_of_numpy(name: str, dtype: Any) -> None:
    a, b = pairs(dtype)
    wanted = quietly(reference(name), a, b)
    got = apply(name, a, b)
    if name in ("maximum", "minimum", "fmax", "fmin"):
        # NumPy leaves open which of two zeros of different sign it returns.
        got, wanted = got + 0, wanted + 0
    slack = 2.0 if name in LARGEST_ERRORS else 0.0
    assert_alike(got, wanted, slack, a, b)


@pytest.mark.parametrize("dtype", FLOATS)
def test_angles_next_to_multiples_of_pi_keep_their_digits(dtype: Any) -> None:
    # The floats of each format that lie closest to a multiple of pi / 2.
    hard = {
        np.float32: (16367173 * 2.0**72, 11789 * 2.0**40, 355.0),
        np.float64: (6381956970095103 * 2.0**797, 5.319372648326541e255, 355.0),
    }[dtype]
    numbers = np.array(hard, dtype)
    wide = numbers.astype(np.longdouble)
    for name in ("sin", "cos"):
        distance = errors(apply(name, numbers), getattr(np, name)(wide))
        assert distance.max() <= 1.0


# Numba compiles for the host; without fused multiply-add each one is a library call.
HAS_FMA = platform.machine() != "x86_64" or get_host_cpu_features().get("fma", False)
needs_fma = pytest.mark.skipif(not HAS_FMA, reason="the processor lacks FMA")


def _texts(name: str, dtype: Any) -> tuple[str, str]:
    make = binary_loop if name in {*BINARY, *SELECTING, *DIVIDING} else unary_loop
    loop = make(name, np.dtype(dtype).name, np.dtype(dtype).name)
    return loop.text, loop.library.get_asm_str()


@needs_fma
@pytest.mark.parametrize("name", [*LARGEST_ERRORS, *PLAIN, *SELECTING])
@pytest.mark.parametrize("dtype", FLOATS)
def test_loops_are_vectorised_without_calls(name: str, dtype: Any) -> None:
    text, _ = _texts(name, dtype)
    # A last change of sign is made on the bits, which are stored as integers.
    element = {np.float32: "(float|i32)", np.float64: "(double|i64)"}[dtype]
    assert re.search(rf"store <\d+ x {element}>", text)
    called = set(re.findall(r"call [^@\n]*@([\w.]+)\(", text))
    assert all(function.startswith("llvm.") for function in called), called


@needs_fma
@pytest.mark.parametrize("name", list(LARGEST_ERRORS))
def test_machine_code_calls_no_library(name: str) -> None:
    # A call shows as the symbol that it loads: fma, rint and floor have such symbols.
    _, assembly = _texts(name, np.float64)
    assert not re.search(r"\bcall|@PLT|\$(fma|rint|floor|sqrt)\b", assembly)


def test_the_call_check_sees_a_call() -> None:
    _, assembly = _texts("fmod", np.float64)
    assert re.search(r"\bcall", assembly)


def test_the_page_tells_errors_within_these_bounds() -> None:
    told = {row.name: row.values for row in load("two_cores/accuracy").rows}
    for name in set(LARGEST_ERRORS) & set(told):
        single, double = LARGEST_ERRORS[name]
        assert told[name]["float32"] <= single, name
        assert told[name]["float64"] <= double, name
    assert set(BOUNDED) < set(told)


def test_a_run_for_some_functions_adds_to_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "accuracy.json"
    for name in ("sin_narrow", "sqrt"):
        asked = ["accuracy", name, "--count", "500", "--json", str(file)]
        monkeypatch.setattr("sys.argv", asked)
        accuracy.main()
    found = json.loads(file.read_text())
    assert found["command"] == "python -m tests.accuracy --count 500"
    assert found["unit"] == "ulp"
    assert [[row["name"], *row["values"]] for row in found["rows"]] == [
        ["sqrt", "float32", "float64"],
        ["sin_narrow", "float32"],
    ]
    assert all(0 < u < 1 for row in found["rows"] for u in row["values"].values())
    assert "| `sqrt` | 0.5" in capsys.readouterr().out
