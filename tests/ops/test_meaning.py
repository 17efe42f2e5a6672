# SPDX-License-Identifier: Apache-2.0
"""What verbs write means what NumPy's functions mean."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from nfuser import numpy as nnp
from tests.trace.meaning import run

if TYPE_CHECKING:
    from collections.abc import Callable

INF, NAN = np.inf, np.nan
REALS = np.array([0.0, -0.0, 1.0, -1.0, 0.3, -2.7, 8.0, 27.0, 1e-3, INF, -INF, NAN])
FINITE = np.array([0.5 + 1j, -1.5 + 0.2j, 2 - 3j, -0.1 - 0.7j, 3 + 0j, 1e-3j])
SIGNED = np.array([-128, -7, -1, 0, 1, 2, 3, 127], np.int8)


def close(function: Callable[..., Any], *args: Any, rtol: float = 1e-12) -> None:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = function(*args)
    actual = run(function, *args)
    many = isinstance(expected, tuple)
    pairs = zip(actual, expected, strict=True) if many else [(actual, expected)]
    for one, other in pairs:
        other = np.asarray(other)
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=rtol, atol=1e-14)


@pytest.mark.parametrize(
    "name",
    [
        "cbrt",
        "sinc",
        "sign",
        "isposinf",
        "isneginf",
        "rad2deg",
        "nan_to_num",
        "angle",
        "fabs",
        "real",
        "imag",
    ],
)
def test_composed_functions_of_reals(name: str) -> None:
    close(getattr(np, name), REALS)


@pytest.mark.parametrize("name", ["logaddexp2", "heaviside", "isclose", "copysign"])
def test_composed_functions_of_two_reals(name: str) -> None:
    close(getattr(np, name), REALS[:, None], REALS)


@pytest.mark.parametrize(
    "name",
    [
        "exp",
        "log",
        "sqrt",
        "sin",
        "cos",
        "tan",
        "sinh",
        "cosh",
        "tanh",
        "absolute",
        "angle",
        "conj",
        "sign",
        "square",
        "reciprocal",
        "negative",
        "real",
        "imag",
        "isnan",
        "isinf",
        "isfinite",
        "logical_not",
        "sum",
        "mean",
    ],
)
def test_functions_of_complex_numbers(name: str) -> None:
    close(getattr(np, name), FINITE)


@pytest.mark.parametrize(
    "name", ["add", "subtract", "multiply", "divide", "power", "equal"]
)
def test_functions_of_two_complex_numbers(name: str) -> None:
    close(getattr(np, name), FINITE[:, None], FINITE)


def test_the_branch_cut_of_the_complex_root_has_two_sides() -> None:
    close(np.sqrt, np.array([complex(-4, 0.0), complex(-4, -0.0), 0j, complex(1, INF)]))


def test_integers_compare_by_value_with_any_integer() -> None:
    unsigned = np.array([0, 1, 2**63, 2**64 - 1], np.uint64)
    signed = np.array([-1, 0, 1, 2**62], np.int64)
    for name in [
        "equal",
        "not_equal",
        "less",
        "less_equal",
        "greater",
        "greater_equal",
    ]:
        function = getattr(np, name)
        close(function, unsigned[:, None], signed)
        close(function, signed[:, None], unsigned)
        for number in (-200, -1, 0, 3, 127, 128, 300, 2**63, 2**70):
            if abs(number) < 2**63:  # a run-time integer
                close(function, SIGNED, number)
                close(function, number, SIGNED)
            close(lambda x, f=function, n=number: f(x, n), SIGNED)
            close(lambda x, f=function, n=number: f(x, n), unsigned)


def test_integer_powers_reciprocals_and_shifts() -> None:
    close(lambda x: x**2, SIGNED)
    close(lambda x: (x**3, x**1, x**0), SIGNED)
    close(np.power, SIGNED, np.array(3, np.uint8))
    close(np.reciprocal, np.array([-3, -1, 1, 2], np.int32))
    close(np.left_shift, SIGNED, np.array([0, 1, 7, 8, 9, 100, 3, 2], np.int8))


@pytest.mark.parametrize("decimals", [-1, 0, 2])
def test_round_scales_as_numpys_does(decimals: int) -> None:
    close(lambda x: np.round(x, decimals), np.array([1.005, -2.5, 3.5, 123.456, 15.0]))


def test_clip_takes_one_bound_or_two() -> None:
    close(lambda x: np.clip(x, -1, 1), REALS)
    close(lambda x: np.clip(x, None, 1), REALS)
    close(lambda x: x.clip(min=0), SIGNED)
    close(lambda x: np.clip(x, 1, -1), REALS)


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (), (2, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions_over_any_axes(axis: Any, keepdims: bool) -> None:
    x = np.random.default_rng(0).normal(size=(3, 4, 5))
    for name in [
        "sum",
        "prod",
        "max",
        "min",
        "mean",
        "var",
        "std",
        "any",
        "all",
        "ptp",
        "count_nonzero",
    ]:
        function = getattr(np, name)
        close(lambda a, f=function: f(a, axis=axis, keepdims=keepdims), x)


@pytest.mark.parametrize("correction", [0, 1, 2, 7, 0.5])
def test_the_divisor_of_a_variance_stops_at_zero(correction: float) -> None:
    x = np.array([[1.0, 4.0], [2.0, 8.0]])
    close(lambda a: np.var(a, axis=0, ddof=correction), x)
    close(lambda a: np.std(a, axis=0, correction=correction), x)


def test_positions_of_extremes() -> None:
    x = np.array([[1.0, 3.0, 3.0], [NAN, 5.0, 2.0]])
    for name in ("argmax", "argmin"):
        function = getattr(np, name)
        close(lambda a, f=function: (f(a), f(a, axis=1), f(a, 0, keepdims=True)), x)


def test_reductions_of_booleans_and_small_integers() -> None:
    truth = np.array([[True, False], [True, True]])
    for name in [
        "sum",
        "prod",
        "max",
        "min",
        "mean",
        "any",
        "all",
        "var",
        "count_nonzero",
    ]:
        function = getattr(np, name)
        close(lambda a, f=function: f(a, axis=1), truth)
        close(lambda a, f=function: f(a), SIGNED)
    close(lambda a: np.sum(a, dtype=np.float32), SIGNED)
    close(lambda a: np.mean(a, dtype=np.int32), SIGNED)


@pytest.mark.parametrize(
    "name", ["erf", "erfc", "rsqrt", "sigmoid", "silu", "softplus", "relu", "gelu"]
)
def test_activations_agree_with_their_unfused_form(name: str) -> None:
    close(getattr(nnp, name), REALS[:-3], rtol=1e-9)
    assert getattr(nnp, name)(SIGNED).dtype == run(getattr(nnp, name), SIGNED).dtype


def test_normalizations_agree_with_their_unfused_form() -> None:
    x = np.random.default_rng(1).normal(size=(3, 7))
    w, bias = x[0] + 1, x[1]
    for name in ("softmax", "log_softmax", "logsumexp"):
        function = getattr(nnp, name)
        close(lambda a, f=function: f(a, axis=-1), x)
        close(lambda a, f=function: f(a, axis=0), x)
    close(nnp.layer_norm, x, w, bias)
    close(nnp.rms_norm, x, w)
    close(lambda a: nnp.gelu(a, approximate="tanh"), x)
    close(lambda a: nnp.var_mean(a, axis=0), x)


def test_logsumexp_of_infinities() -> None:
    rows = np.array([[-INF, -INF], [INF, 1.0], [NAN, 1.0]])
    expected = np.array([-INF, INF, NAN])
    actual = run(lambda a: nnp.logsumexp(a, axis=1), rows)
    np.testing.assert_array_equal(actual, expected)
