# SPDX-License-Identifier: Apache-2.0
"""Each elementwise operation has its derivative, or is said to have none."""

# Functions of arrays have no static type.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
import nfuser.numpy as xp
from nfuser.compiler.ir.point_op import POINT_OPS
from nfuser.compiler.transforms.differentiate.rules.casts import KINDS
from nfuser.compiler.transforms.differentiate.rules.choices import CHOICES
from nfuser.compiler.transforms.differentiate.rules.slopes import (
    FLAT,
    SLOPES,
    slopes_of,
)
from tests.differentiate.numeric import agree, gradients, numbers

if TYPE_CHECKING:
    from collections.abc import Callable

X, Y, ROW = numbers(3, 4), numbers(3, 4, seed=1), numbers(4, seed=2)


@pytest.mark.parametrize("name", POINT_OPS)
def test_each_operation_is_in_one_table_of_derivatives(name: str) -> None:
    tables = (SLOPES, CHOICES, KINDS, FLAT)
    base = name.removesuffix("_near")
    assert sum(base in table for table in tables) == 1, (
        f"write a row for {name} in SLOPES or CHOICES, or its name into FLAT, if its "
        "derivative is 0 wherever there is one"
    )
    slopes = slopes_of(name)
    assert slopes is None or len(slopes) == POINT_OPS[name].arity


_ONE: dict[str, Callable[..., Any]] = {
    **{f.__name__: f for f in (np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10)},
    **{f.__name__: f for f in (np.log1p, np.sin, np.cos, np.tan, np.arcsin, np.arccos)},
    **{f.__name__: f for f in (np.arctan, np.sinh, np.cosh, np.tanh, np.arcsinh)},
    **{f.__name__: f for f in (np.arctanh, np.sqrt, np.cbrt, np.square, np.negative)},
    **{f.__name__: f for f in (np.reciprocal, np.absolute, np.sinc, np.deg2rad)},
    "arccosh": lambda x: np.arccosh(x + 1),
    **{f"x ** {y}": lambda x, y=y: x**y for y in (-2.5, -1, -0.5, 0.7, 1.5, 3, 6)},
    **{
        name: getattr(xp, name)
        for name in ("sigmoid", "silu", "relu", "gelu", "erf", "erfc", "rsqrt")
    },
    "softplus": lambda x: np.logaddexp(x - 0.5, 0),
    "complex": lambda x: abs((x + 1j * x * x) ** 2 / (1 + 1j)),
    "complex exp": lambda x: np.exp(1j * x).real + np.log(x + 2j).imag,
}


@pytest.mark.parametrize("name", _ONE)
def test_slopes_of_functions_are_those_of_differences(name: str) -> None:
    function = _ONE[name]
    agree(lambda x, y: (function(x) * y).sum(), X, Y)


_TWO: dict[str, Callable[..., Any]] = {
    **{f.__name__: f for f in (np.add, np.subtract, np.multiply, np.divide, np.power)},
    **{f.__name__: f for f in (np.maximum, np.minimum, np.fmax, np.fmin, np.arctan2)},
    **{f.__name__: f for f in (np.hypot, np.logaddexp, np.logaddexp2, np.remainder)},
    **{f.__name__: f for f in (np.fmod, np.copysign)},
    "where": lambda x, y: np.where(x > y, x * y, y - x),
    "clip": lambda x, y: np.clip(x, y - 0.1, y + 0.1),
}


@pytest.mark.parametrize("name", _TWO)
def test_slopes_in_both_operands_also_where_one_stretches(name: str) -> None:
    function = _TWO[name]
    agree(lambda x, y: (function(x, y) ** 2).sum(), X, Y)
    agree(lambda x, y: (function(x, y) * x).sum(), X, ROW)
    agree(lambda x, y: (function(y[:, None], x) * x).sum(), X, numbers(3, seed=5))


def test_what_has_steps_has_no_slope() -> None:
    (found,) = gradients(lambda x: (np.floor(x) + np.sign(x) + (x > 0.5)).sum(), X)
    assert not found.any()


def test_the_branch_not_taken_leaks_nothing() -> None:
    x = np.array([-1.0, 0.0, 2.0])
    for function in (
        lambda x: np.where(x > 0, np.log(x), 0).sum(),
        lambda x: np.where(x > 0, np.sqrt(x) * np.log(x), x).sum(),
        lambda x: np.maximum(np.log(np.abs(x)), 0).sum(),
        lambda x: np.where(x > 0, np.log(x)[None, :], np.zeros((2, 3))).sum(),
        lambda x: np.where(x > 0, np.stack([1 / x, np.log(x)]), 0).sum(),
    ):
        (found,) = gradients(function, x)
        assert np.isfinite(found).all(), found


def test_sinc_bends_at_zero() -> None:
    slope = nfuser.grad(np.sinc)
    assert slope(0.0) == 0
    np.testing.assert_allclose(nfuser.grad(slope)(0.0), -(np.pi**2) / 3, rtol=1e-15)


_PLACES = np.array([0.0, 1.0, 4.0])
# What docs/gradients.md says of points where a slope could be another.
_CONVENTIONS: dict[str, tuple[Callable[..., Any], float, float]] = {
    "abs at 0": (np.abs, 0.0, 0.0),
    "maximum of equals": (lambda x: np.maximum(x, 1.0), 1.0, 0.5),
    "clip at its bound": (lambda x: np.clip(x, 0.0, 1.0), 1.0, 0.5),
    "relu at 0": (xp.relu, 0.0, 0.0),
    "sqrt at 0": (np.sqrt, 0.0, np.inf),
    "hypot at 0": (lambda x: np.hypot(x, x * 0), 0.0, 0.0),
    "0 ** y": (lambda x: 0.0**x, 2.0, 0.0),
    "x ** 0 at 0": (lambda x: np.power(x, x * 0), 0.0, 0.0),
    "x ** 1.5 at 0": (lambda x: x**1.5, 0.0, 0.0),
    "sign": (np.sign, 0.0, 0.0),
    "sigmoid far out": (xp.sigmoid, -1e4, 0.0),
    "silu far out": (xp.silu, -1e4, 0.0),
    "silu at minus infinity": (xp.silu, -np.inf, 0.0),
    "cbrt at 0": (np.cbrt, 0.0, np.inf),
    "interp at a place": (lambda x: np.interp(x, _PLACES, _PLACES**2), 1.0, 5.0),
    "interp at the last place": (lambda x: np.interp(x, _PLACES, _PLACES), 4.0, 0.0),
}


@pytest.mark.parametrize("name", _CONVENTIONS)
def test_slopes_at_corners_are_those_of_the_table(name: str) -> None:
    function, at, slope = _CONVENTIONS[name]
    (found,) = gradients(function, np.array(at))
    assert found == slope, (found, slope)
