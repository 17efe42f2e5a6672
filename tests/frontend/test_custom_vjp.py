# SPDX-License-Identifier: Apache-2.0
"""``nfuser.custom_vjp`` and ``nfuser.hvp``."""

# What is differentiated has no static type.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import ArgumentError, DTypeError, ShapeError, UnsupportedError

X, Y = np.array([1.0, 2.0, 4.0]), np.array([3.0, 5.0, 7.0])


def _made(bwd: Any, fun: Any = np.sin) -> Any:
    made = nfuser.custom_vjp(fun)
    made.defvjp(lambda *args: (fun(*args), args), bwd)
    return made


def test_the_way_back_is_the_one_that_was_given() -> None:
    f = _made(lambda kept, t: (t * kept[0] * 100,))
    np.testing.assert_array_equal(f(X), np.sin(X))
    np.testing.assert_array_equal(
        nfuser.fuse(f)(X), nfuser.fuse(lambda x: np.sin(x))(X)
    )
    np.testing.assert_allclose(nfuser.grad(lambda x: (f(2 * x)).sum())(X), 400 * X)
    value, pull = nfuser.vjp(f, X)
    np.testing.assert_allclose(value, np.sin(X))
    np.testing.assert_allclose(pull(Y)[0], 100 * X * Y)


def test_functions_without_a_slope_have_one_by_it() -> None:
    f = _made(lambda _, t: (t,), np.round)
    np.testing.assert_array_equal(nfuser.grad(lambda x: f(x * 1.5).sum())(X), [1.5] * 3)


def test_gradients_of_gradients_go_through_the_way_back() -> None:
    f = _made(lambda kept, t: (t * kept[0] ** 3,))
    once = nfuser.grad(lambda x: f(x).sum())
    twice = nfuser.grad(lambda x: once(x).sum())
    np.testing.assert_allclose(twice(X), 3 * X**2)


def test_nests_several_results_and_arguments_that_are_left_alone() -> None:
    @functools.partial(nfuser.custom_vjp, nondiff_argnums=(0,))
    def f(power: int, p: Any, y: Any) -> Any:
        return {"a": p["x"] ** power, "b": (y * 2, y.shape[0])}

    def fwd(power: int, p: Any, y: Any) -> Any:
        return f.fun(power, p, y), (p, y)

    def bwd(power: int, kept: Any, t: Any) -> Any:
        p, y = kept
        return {"x": t["a"] * power * p["x"]}, t["b"][0] * y

    f.defvjp(fwd, bwd)

    def loss(p: Any, y: Any) -> Any:
        found = f(3, p, y)
        return (found["b"][0] * Y).sum() + found["a"].sum()

    of_p, of_y = nfuser.grad(loss, argnums=(0, 1))({"x": X}, Y)
    np.testing.assert_allclose(of_p["x"], 3 * X)
    np.testing.assert_allclose(of_y, Y * Y)
    only_b = nfuser.grad(lambda p: f(3, p, Y)["b"][0].sum())({"x": X})
    np.testing.assert_array_equal(only_b["x"], np.zeros(3))


def test_none_is_no_cotangent() -> None:
    f = _made(lambda _, t: (None, t), np.multiply)
    of_x, of_y = nfuser.grad(lambda x, y: f(x, y).sum(), argnums=(0, 1))(X, Y)
    np.testing.assert_array_equal(of_x, np.zeros(3))
    np.testing.assert_array_equal(of_y, np.ones(3))


def test_captured_arrays_are_read_anew() -> None:
    scale = np.ones(3)
    f = _made(lambda _, t: (t * scale,))
    slope = nfuser.grad(lambda x: f(x).sum())
    np.testing.assert_array_equal(slope(X), np.ones(3))
    scale[:] = 5
    np.testing.assert_array_equal(slope(X), [5.0] * 3)


def test_wrong_ways_back_say_what_to_write() -> None:
    def slope(f: Any) -> Any:
        return nfuser.grad(lambda x: f(x).sum())(X)

    with pytest.raises(ArgumentError, match=r"write sin.defvjp\(fwd, bwd\)"):
        slope(nfuser.custom_vjp(np.sin))
    with pytest.raises(ArgumentError, match="return a tuple from bwd"):
        slope(_made(lambda _, t: t))
    with pytest.raises(ShapeError, match="return a cotangent of shape"):
        slope(_made(lambda _, t: (t.sum(),)))
    with pytest.raises(DTypeError, match="return a real cotangent from bwd"):
        slope(_made(lambda _, t: (t * 1j,)))
    with pytest.raises(ArgumentError, match="pass all arguments by position"):
        nfuser.grad(lambda x: _made(lambda _, t: (t,))(x=x).sum())(X)
    one = nfuser.custom_vjp(np.sin)
    one.defvjp(np.sin, lambda _, t: (t,))
    with pytest.raises(ArgumentError, match=r"return \(value, kept\)"):
        slope(one)
    with pytest.raises(UnsupportedError, match=r"write nfuser\.vjp or nfuser\.grad"):
        nfuser.jvp(_made(lambda _, t: (t,)), (X,), (Y,))


def test_arguments_by_name_defaults_and_methods() -> None:
    @functools.partial(nfuser.custom_vjp, nondiff_argnums=1)
    def f(x: Any, power: int = 2) -> Any:
        return x**power

    f.defvjp(lambda x, power: (x**power, None), lambda power, _, t: (t * power,))
    np.testing.assert_array_equal(f(x=X, power=3), X**3)
    of_default = nfuser.grad(lambda x: f(x=x).sum())(X)
    np.testing.assert_array_equal(of_default, [2.0] * 3)
    of_named = nfuser.grad(lambda x: f(x, power=3).sum())(X)
    np.testing.assert_array_equal(of_named, [3.0] * 3)

    class Layer:
        @nfuser.custom_vjp
        def run(self, x: Any) -> Any:
            return x * 2

    Layer.run.defvjp(lambda _, x: (x * 2, None), lambda _, t: (None, t * 9))
    layer = Layer()
    np.testing.assert_array_equal(layer.run(X), 2 * X)
    slope = nfuser.grad(lambda x: layer.run(x).sum())(X)
    np.testing.assert_array_equal(slope, [9.0] * 3)


def test_functions_that_return_an_argument_or_one_array_twice() -> None:
    twice = _made(lambda _, t: (t[0] + 10 * t[1],), lambda x: (x, x))

    def loss(x: Any) -> Any:
        first, second = twice(x)
        return (first + 2 * second).sum()

    np.testing.assert_array_equal(nfuser.grad(loss)(X), [21.0] * 3)


def test_products_with_a_hessian() -> None:
    def f(x: Any, y: Any) -> Any:
        return (x**3 * y).sum()

    of_x, of_y = nfuser.hvp(f, (X, Y), (Y, X))
    np.testing.assert_allclose(of_x, 6 * X * Y * Y + 3 * X**2 * X)
    np.testing.assert_allclose(of_y, 3 * X**2 * Y)
    with pytest.raises(ArgumentError, match=r"write nfuser\.hvp\(f, \(x,\), \(t,\)\)"):
        nfuser.hvp(f, X, Y)  # pyright: ignore[reportArgumentType]


def test_fwd_may_call_the_function_for_its_value() -> None:
    @nfuser.custom_vjp
    def cubed(x: Any) -> Any:
        return x**3

    def forward(x: Any) -> tuple[Any, Any]:
        return cubed(x), x

    cubed.defvjp(forward, lambda x, t: (10 * x * x * t,))
    x = np.array([1.0, 2.0])
    slope = nfuser.grad(lambda x: cubed(x).sum())
    np.testing.assert_allclose(slope(x), 10 * x * x)
    again = nfuser.grad(lambda x: (slope(x) ** 2).sum())
    np.testing.assert_allclose(again(x), 2 * 10 * x * x * 20 * x)

    @nfuser.custom_vjp
    def kept(x: Any) -> Any:
        return x**3

    # What is kept has the way back that is set, too, as in JAX.
    kept.defvjp(lambda x: (kept(x), kept(x)), lambda y, t: (y * t,))
    first = nfuser.grad(lambda x: kept(x).sum())
    np.testing.assert_allclose(first(x), x**3)
    second = nfuser.grad(lambda x: first(x).sum())
    np.testing.assert_allclose(second(x), x**3)
