# SPDX-License-Identifier: Apache-2.0
"""What adds up to zero along a mean's axes is not summed for the mean's cotangent."""

# Functions of arrays have no static type.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.compiler.ir.expr import Reduce, results, sources
from nfuser.compiler.trace import call_of, trace_function
from nfuser.compiler.transforms.differentiate import centred
from tests.differentiate.numeric import agree, meaning, numbers

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.ir.fusion import Fusion

X, T = numbers(6, 4), numbers(6, 4, seed=1)


def _scaled(c: Any, spread: Any) -> Any:
    return c / np.sqrt(spread + 1e-3)


def _columns(x: Any) -> Any:
    c = x - x.mean(axis=0)
    return _scaled(c, (c * c).mean(axis=0))


def _powers(x: Any) -> Any:
    c = x - x.mean(axis=0, keepdims=True)
    return c * ((c**2).mean(axis=0) + 0.1) ** -0.5


def _squares(x: Any) -> Any:
    c = x.mean(axis=0) - x
    return _scaled(c, np.square(c).sum(axis=0) / (x.shape[0] - 1))


def _rows(x: Any) -> Any:
    c = x - x.mean(axis=-1)[:, None]
    return _scaled(c, (c * c).mean(axis=-1, keepdims=True))


def _groups(x: Any) -> Any:
    y = x.reshape(3, 2, 4)
    c = y - y.mean(axis=(0, 2), keepdims=True)
    return _scaled(c, (c * c).mean(axis=(0, 2), keepdims=True)).reshape(6, 4)


def _all(x: Any) -> Any:
    c = x - x.sum() / (x.shape[0] * x.shape[1])
    return _scaled(c, (c * c).mean())


def _variance(x: Any) -> Any:
    return _scaled(x - x.mean(axis=0), x.var(axis=0))


CENTRED = {
    f.__name__: f for f in (_columns, _powers, _squares, _rows, _groups, _all)
} | {"_variance": _variance}


def _other_count(x: Any) -> Any:
    c = x - x.sum(axis=0) / 5
    return _scaled(c, (c * c).mean(axis=0))


def _other_axis(x: Any) -> Any:
    y = x[:4]
    c = y - y.mean(axis=1)
    return _scaled(c, (c * c).mean(axis=0))


def _other_source(x: Any) -> Any:
    c = x - (x * x).mean(axis=0)
    return _scaled(c, (c * c).mean(axis=0))


def _cubes(x: Any) -> Any:
    c = x - x.mean(axis=0)
    return c + (c**3).mean(axis=0)


UNLIKE = {f.__name__: f for f in (_other_count, _other_axis, _other_source, _cubes)}


def _pulled(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda t, x: nfuser.vjp(function, x)[1](t)[0]


def _back(function: Callable[..., Any]) -> nfuser.Fused[..., Any]:
    return nfuser.fuse(_pulled(function))


def _sums_in_a_row(fusion: Fusion) -> int:
    """Return how many sums wait for each other, at most."""
    depth: dict[Any, int] = {}
    for expr in fusion.exprs:
        waits = max((depth[t] for t in sources(expr)), default=0)
        depth |= dict.fromkeys(results(expr), waits + isinstance(expr, Reduce))
    return max(depth[t] for t in fusion.outputs)


@pytest.mark.parametrize("name", CENTRED | UNLIKE)
def test_gradients_are_those_of_differences(name: str) -> None:
    function = (CENTRED | UNLIKE)[name]
    agree(lambda x: (np.sin(function(x)) * T[: len(function(X))]).sum(), X)


@pytest.mark.parametrize("name", CENTRED | UNLIKE)
def test_gradients_of_gradients_are_those_of_differences(name: str) -> None:
    function = (CENTRED | UNLIKE)[name]
    t = T[: len(function(X))]
    slopes = partial(meaning, _back(function), t)
    direction = numbers(6, 4, seed=2)

    def along(x: Any) -> Any:
        return (nfuser.vjp(function, x)[1](t)[0] * direction).sum()

    (found,) = meaning(nfuser.grad(along, argnums=(0,)), X)
    for at in np.ndindex(2, 2):
        step = np.zeros_like(X)
        step[at] = 1e-6
        wanted = ((slopes(X + step) - slopes(X - step)) * direction).sum() / 2e-6
        np.testing.assert_allclose(found[at], wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", CENTRED)
def test_no_sum_of_the_way_back_waits_for_another(name: str) -> None:
    function = CENTRED[name]
    there = trace_function(function, call_of((X,))).fusion
    back = trace_function(_pulled(function), call_of((T, X))).fusion
    assert _sums_in_a_row(back) == _sums_in_a_row(there) + 1


@pytest.mark.parametrize("name", CENTRED)
@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan, 1e200, 1e-200])
def test_what_is_no_number_is_where_it_was(
    name: str, bad: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, rng = CENTRED[name], np.random.default_rng(3)
    for _ in range(4):
        x, t = X.copy(), T.copy()
        (x, t)[rng.integers(2)][tuple(rng.integers(4, size=2))] = bad
        with np.errstate(all="ignore"):
            found = meaning(_back(function), t, x)
            with monkeypatch.context() as patch:
                patch.setattr(centred, "summed", lambda *_: None)
                wanted = meaning(_back(function), t, x)
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)


def test_a_column_of_equals_has_no_slope_that_is_a_number() -> None:
    def function(x: Any) -> Any:
        c = x - x.mean(axis=0)
        return c / np.sqrt((c * c).mean(axis=0))

    x = X.copy()
    x[:, 1] = 2.0
    with np.errstate(all="ignore"):
        found = meaning(_back(function), T, x)
    assert np.isnan(found[:, 1]).all()
    assert np.isfinite(found[:, [0, 2, 3]]).all()
