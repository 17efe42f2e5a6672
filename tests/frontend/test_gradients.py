# SPDX-License-Identifier: Apache-2.0
"""``nfuser.grad`` and its like: what they take, what they give, what they refuse."""

# What is differentiated has no static type.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import functools
import pickle
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import ArgumentError, DTypeError, MutationError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable

X, Y = np.array([1.0, 2.0, 4.0]), np.array([3.0, 5.0, 7.0])


def _squares(x: Any) -> Any:
    return (x * x).sum()


def test_a_gradient_has_the_dtype_and_the_shape_of_its_argument() -> None:
    slope = nfuser.grad(_squares)
    for x in (X, X.astype(np.float32), X.astype(np.float16), X.reshape(3, 1)):
        found = slope(x)
        assert (found.dtype, found.shape) == (x.dtype, x.shape)
        np.testing.assert_array_equal(found, 2 * x)
    assert type(slope(np.float32(3))) is np.float32
    assert type(nfuser.grad(lambda x: x * x)(3.0)) is float
    assert isinstance(slope(np.array(3.0)), np.ndarray)


def test_several_arguments_nests_and_keywords() -> None:
    def loss(p: Any, scale: Any, *, power: int) -> Any:
        return ((p["a"] * p["b"][0]) ** power).sum() * scale + p["c"].sum()

    p = {"a": X, "b": (Y, None), "c": np.ones((2, 2), np.float32)}
    found, scale = nfuser.grad(loss, argnums=[0, -1])(p, 2.0, power=2)
    np.testing.assert_allclose(found["a"], 4 * X * Y * Y)
    np.testing.assert_allclose(found["b"][0], 4 * X * X * Y)
    assert found["b"][1] is None
    assert found["c"].dtype == np.float32
    assert scale == ((X * Y) ** 2).sum()


def test_what_comes_beside_the_number() -> None:
    def loss(x: Any) -> Any:
        return _squares(x), {"twice": 2 * x}

    (value, aux), found = nfuser.value_and_grad(loss, has_aux=True)(X)
    assert value == 21
    np.testing.assert_array_equal(aux["twice"], found)
    found, aux = nfuser.grad(loss, has_aux=True)(X)
    np.testing.assert_array_equal(aux["twice"], found)


def test_gradients_of_gradients_and_of_fused_functions() -> None:
    third = nfuser.grad(nfuser.grad(nfuser.grad(nfuser.fuse(lambda x: x**4 + x))))
    assert third(2.0) == 48.0
    inner = nfuser.grad(lambda x: nfuser.grad(lambda y: x * x * y)(x) + x)
    assert inner(3.0) == 7.0  # an inner variable is not the outer one


def test_a_step_of_descent_is_one_call_of_one_trace() -> None:
    @nfuser.fuse
    def step(w: Any, x: Any, y: Any) -> Any:
        return w - 0.1 * nfuser.grad(lambda w: ((x @ w - y) ** 2).mean())(w)

    rng = np.random.default_rng(0)
    for rows in (40, 50):
        x, w = rng.standard_normal((rows, 2)), np.zeros(2)
        for _ in range(200):
            w = step(w, x, x @ np.array([1.0, 2.0]))
        np.testing.assert_allclose(w, [1, 2], rtol=1e-6)
    assert step.cache_info().traces == 1


def test_sizes_of_one_stretch_and_others_do_not() -> None:
    slope = nfuser.grad(lambda x, y: ((x + y) ** 2).sum(), argnums=(0, 1))
    for shapes in [((2, 3), (3,)), ((2, 1), (3,)), ((1, 1), (1,)), ((2, 3), (1,))]:
        x, y = (np.random.default_rng(1).random(shape) for shape in shapes)
        whole = 2 * (x + y)
        for found, argument in zip(slope(x, y), (x, y), strict=True):
            lead = whole.ndim - argument.ndim
            axes = [
                k + lead
                for k, n in enumerate(argument.shape)
                if n < whole.shape[k + lead]
            ]
            wanted = whole.sum((*range(lead), *axes)).reshape(argument.shape)
            np.testing.assert_allclose(found, wanted, rtol=1e-14)
    assert slope.cache_info().traces == 1


def test_cotangents_are_pulled_back_inside_and_outside() -> None:
    def function(x: Any, y: Any) -> Any:
        return {"product": x * y, "sum": x.sum()}

    cotangent = {"product": np.array([1.0, 0, 2]), "sum": np.float64(3)}

    def pulled(x: Any, y: Any, t: Any) -> Any:
        value, pull = nfuser.vjp(function, x, y)
        return value["sum"], pull(t)

    for found in (pulled(X, Y, cotangent), nfuser.fuse(pulled)(X, Y, cotangent)):
        assert found[0] == 7
        np.testing.assert_array_equal(found[1][0], cotangent["product"] * Y + 3)
        np.testing.assert_array_equal(found[1][1], cotangent["product"] * X)


def _assigned(x: Any, y: Any) -> Any:
    made = y * y
    made[1:] = x[:-1] * made[1:]
    return made


_FORWARD: dict[str, Callable[..., Any]] = {
    "elementwise": lambda x, y: np.sin(x) * y + np.maximum(x, y),
    "moved": lambda x, y: np.concatenate([np.pad(x, 1)[::-1], np.tile(y, 2)]) ** 2,
    "sums": lambda x, y: (x.cumsum() * y.sum(), np.outer(x, y).mean(axis=0)),
    "folds": lambda x, y: (x.prod() * y, x.max() * y, x.var() * y, y.cumprod()),
    "products": lambda x, y: (x @ y, np.outer(x, y) @ np.outer(y, x)),
    "sorted": lambda x, y: np.sort(x * y * (-1) ** np.arange(3)) ** 2,
    "chosen": lambda x, y: np.where(x > 1, np.log(x - 1), y),
    "assigned": lambda x, y: _assigned(x, y),
    "a constant": lambda x, y: np.floor(x) + 0 * y,
}


@pytest.mark.parametrize("name", _FORWARD)
def test_tangents_pushed_forward_pair_with_cotangents_pulled_back(name: str) -> None:
    function = _FORWARD[name]
    rng = np.random.default_rng(0)
    tangents = rng.standard_normal(3), rng.standard_normal(3)

    def both(x: Any, y: Any, s: Any, t: Any) -> Any:
        value, pushed = nfuser.jvp(function, (x, y), (s, t))
        like, pull = nfuser.vjp(function, x, y)
        parts = like if isinstance(like, tuple) else (like,)
        ones = tuple(part * 0 + 1.5 for part in parts)
        pulled = pull(ones if isinstance(like, tuple) else ones[0])
        moved = pushed if isinstance(pushed, tuple) else (pushed,)
        return value, sum(1.5 * part.sum() for part in moved), pulled

    _, forward, pulled = nfuser.fuse(both)(X, Y, *tangents)
    backward = sum((p * t).sum() for p, t in zip(pulled, tangents, strict=True))
    np.testing.assert_allclose(forward, backward, rtol=1e-12, atol=1e-12)


def test_a_product_with_the_hessian_is_forward_over_reverse() -> None:
    def product(w: Any, v: Any) -> Any:
        return nfuser.jvp(nfuser.grad(lambda w: (w**3).sum()), (w,), (v,))

    for function in (product, nfuser.fuse(product)):
        slope, found = function(X, Y)
        np.testing.assert_allclose(slope, 3 * X**2)
        np.testing.assert_allclose(found, 6 * X * Y)


def test_what_is_stopped_is_a_constant() -> None:
    def loss(x: Any) -> Any:
        fixed = nfuser.stop_gradient({"x": x})["x"]
        return (x * fixed + fixed**2).sum()

    np.testing.assert_array_equal(nfuser.grad(loss)(X), X)
    assert nfuser.stop_gradient(X) is X


def test_values_from_outside_are_read_anew() -> None:
    class Model:
        def __init__(self) -> None:
            self.w = np.ones(3)

        def loss(self, x: Any) -> Any:
            return (self.w * x * x).sum()

    model = Model()
    slope = nfuser.grad(model.loss)
    np.testing.assert_array_equal(slope(X), 2 * X)
    model.w[0] = 3
    np.testing.assert_array_equal(slope(X), 2 * model.w * X)
    model.w = Y
    np.testing.assert_array_equal(slope(X), 2 * Y * X)
    part = nfuser.grad(functools.partial(lambda a, x: (a * x).sum(), Y))
    np.testing.assert_array_equal(part(X), Y)


def test_complex_gradients_are_those_of_jax() -> None:
    z = np.array([1 + 2j, -0.5 + 0.25j])
    found = nfuser.grad(lambda z: (z * z.conj()).real.sum())(z)
    np.testing.assert_allclose(found, 2 * z.conj())
    found = nfuser.grad(lambda z: (np.exp(z) * (1 - 1j)).real.sum())(z)
    np.testing.assert_allclose(found, np.exp(z) * (1 - 1j))
    found = nfuser.grad(lambda z: np.abs(z).sum())(z)
    np.testing.assert_allclose(found, z.conj() / abs(z))


def test_a_gradient_is_named_after_its_function_and_can_be_pickled() -> None:
    slope = nfuser.grad(_squares)
    assert slope is nfuser.grad(_squares)  # and so is what was compiled for it
    assert repr(slope).startswith("<nfuser.fuse grad(_squares)(x")
    again = pickle.loads(pickle.dumps(slope))
    np.testing.assert_array_equal(again(X), 2 * X)


def test_derivatives_inside_keep_nothing_of_the_trace() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = nfuser.grad(lambda x: nfuser.grad(lambda y: (x * y).sum())(x).sum())(X)
    np.testing.assert_array_equal(found, np.ones(3))


def _writing(x: Any) -> Any:
    x[:] = 0
    return x.sum()


_WRONG: dict[str, tuple[Callable[..., Any], Any, type[Exception], str]] = {
    "an array": (lambda x: x * 2, X, ShapeError, r"write .*\.sum\(\)"),
    "two results": (lambda x: (x.sum(), 1.0), X, ArgumentError, "has_aux=True"),
    "a truth value": (lambda x: x.sum() > 0, X, DTypeError, "return a float"),
    "a complex number": (lambda x: x.sum() * 1j, X, DTypeError, "real part"),
    "integers": (_squares, np.arange(3), DTypeError, r"astype\(np\.float64\)"),
    "an int": (_squares, 3, DTypeError, r"pass a float, as 3\.0"),
    "an int in a nest": (
        *(lambda p: p["w"] * p["n"], {"w": 1.0, "n": 3}),
        *(DTypeError, r"for argument 0\['n'\], or name others"),
    ),
    "text": (lambda x: 1.0, "text", ArgumentError, "found str in argument 0"),
    "nothing": (lambda x: None, X, ArgumentError, "return one number.*found None"),
    "a write": (_writing, X, MutationError, r"assign to x\.copy\(\)"),
}


@pytest.mark.parametrize("name", _WRONG)
def test_wrong_uses_say_what_to_write(name: str) -> None:
    function, x, error, words = _WRONG[name]
    with pytest.raises(error, match=rf"(?s){words}.*test_gradients\.py"):
        nfuser.grad(function)(x)


def test_other_wrong_uses_say_what_to_write() -> None:
    with pytest.raises(ArgumentError, match=r"write nfuser\.grad\(f\)\(x\)"):
        nfuser.grad(3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ArgumentError, match="pass argument 2 by position"):
        nfuser.grad(_squares, argnums=2)(X)
    with pytest.raises(ArgumentError, match=r"write nfuser\.jvp\(f, \(x,\), \(t,\)\)"):
        nfuser.jvp(_squares, X, (X,))  # pyright: ignore[reportArgumentType]
    with pytest.raises(ArgumentError, match="write a nest like that of the arguments"):
        nfuser.jvp(_squares, (X,), (X, X))
    with pytest.raises(ShapeError, match=r"write an array of shape \(3,\)"):
        nfuser.jvp(_squares, (X,), (np.ones(2),))
    with pytest.raises(DTypeError, match=r"leave it out, as n in lambda x: f\(x, n\)"):
        nfuser.jvp(_squares, (np.arange(3),), (np.arange(3),))
    for argnums in ("x", 1.0):
        with pytest.raises(ArgumentError, match="write argnums=0, the place"):
            nfuser.grad(_squares, argnums=argnums)(X)  # pyright: ignore[reportArgumentType]
    for twice in ((0, 0), (0, -1)):
        with pytest.raises(ArgumentError, match="write each place once in argnums"):
            nfuser.grad(_squares, argnums=twice)(X)
    with pytest.raises(ArgumentError, match=r"return \(value, aux\)"):
        nfuser.grad(_squares, has_aux=True)(X)


def test_what_is_drawn_is_drawn_again_on_the_way_back() -> None:
    def function(x: Any, rng: Any) -> Any:
        return x * (rng.random(x.shape) > 0.5)

    x, rng = np.linspace(1.0, 2.0, 1000), nfuser.random.default_rng(3)
    slope = nfuser.grad(lambda x, rng: function(x, rng).sum())(x, rng)
    rng = nfuser.random.default_rng(3)
    np.testing.assert_array_equal(slope * x, function(x, rng))
