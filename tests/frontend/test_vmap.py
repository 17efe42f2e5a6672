# SPDX-License-Identifier: Apache-2.0
"""``nfuser.vmap`` and the Jacobians: what they take, give and refuse."""

# What is mapped has no static type.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

import nfuser
from nfuser.errors import (
    ArgumentError,
    AxisError,
    DTypeError,
    MutationError,
    ShapeError,
    TraceError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.arange(6.0).reshape(2, 3)
W = np.array([[0.3, -0.2], [0.1, 0.4], [-0.5, 0.2]])


def dot(x: Any, y: Any) -> Any:
    return (x * y).sum()


class Pair(NamedTuple):
    """A nest with names."""

    left: Any
    right: Any


def test_nests_of_arguments_and_results() -> None:
    def function(p: Any, scale: Any, *, shift: Any) -> Any:
        total = p["a"].sum() * scale + shift
        return {"total": total, "pair": Pair(p["b"][0] * 2, None)}

    p = {"a": X, "b": (np.array([1.0, 2.0]), np.ones(5))}
    axes = ({"a": 0, "b": (0, None)}, None)
    out = {"total": 0, "pair": 0}
    found = nfuser.vmap(function, axes, out)(p, 10.0, shift=np.array([0.5, 0.25]))
    np.testing.assert_array_equal(found["total"], [30.5, 120.25])
    assert isinstance(found["pair"], Pair)
    np.testing.assert_array_equal(found["pair"].left, [2.0, 4.0])
    assert found["pair"].right is None


def test_axes_of_arguments_and_results() -> None:
    found = nfuser.vmap(lambda x, y: np.stack([x, y]), (1, -2), -1)(X.T, X)
    np.testing.assert_array_equal(found, np.stack([X.T, X.T]))
    shared = nfuser.vmap(lambda x, y: (x, y * 2), (0, None), (0, None))(X, W)
    np.testing.assert_array_equal(shared[1], W * 2)
    found = nfuser.vmap(lambda: np.ones(2), axis_size=3)()
    np.testing.assert_array_equal(found, np.ones((3, 2)))
    assert nfuser.vmap(lambda x: 1.5)(X).tolist() == [1.5, 1.5]


def test_maps_of_maps_and_inside_of_fused_functions() -> None:
    every = nfuser.vmap(nfuser.vmap(dot, (None, 0)), (0, None))
    np.testing.assert_allclose(every(X, W.T), X @ W)

    @nfuser.fuse
    def outer(x: Any, w: Any) -> Any:
        return nfuser.vmap(lambda row: np.tanh(row @ w), 0)(x).sum(axis=0)

    np.testing.assert_allclose(outer(X, W), np.tanh(X @ W).sum(axis=0))


def test_new_sizes_run_what_was_traced() -> None:
    function = nfuser.vmap(dot)
    for n in (2, 5, 1, 0):
        x = np.ones((n, 3))
        np.testing.assert_array_equal(function(x, x), np.full(n, 3.0))
    assert function.cache_info().traces == 1
    assert nfuser.vmap(dot) is function
    assert pickle.loads(pickle.dumps(function))(X, X).tolist() == [5.0, 50.0]


def test_rows_of_no_elements_and_of_numbers() -> None:
    assert nfuser.vmap(lambda x: x * 2)(np.array([1, 2])).tolist() == [2, 4]
    assert nfuser.vmap(np.sum)(np.ones((0, 3))).shape == (0,)
    assert nfuser.vmap(lambda x: x.sum())(np.ones((2, 0))).tolist() == [0.0, 0.0]


def test_gradients_of_samples() -> None:
    def loss(w: Any, x: Any, y: Any) -> Any:
        return ((np.tanh(x @ w) - y) ** 2).sum()

    y = np.ones((2, 2))
    each = nfuser.vmap(nfuser.grad(loss), (None, 0, 0))(W, X, y)
    for k in range(2):
        np.testing.assert_allclose(each[k], nfuser.grad(loss)(W, X[k], y[k]))


def test_jacobians_of_nests() -> None:
    def function(p: Any, t: Any) -> Any:
        return {"a": np.tanh(p["w"] @ X[0]) * t, "b": (p["w"].sum() * p["c"],)}

    p = {"w": W.T, "c": np.array([1.0, 2.0])}
    forth = nfuser.jacfwd(function, argnums=(0, 1))(p, 2.0)
    back = nfuser.jacrev(function, argnums=[0, 1])(p, 2.0)
    slope = 1 - np.tanh(W.T @ X[0]) ** 2
    wanted = 2 * np.einsum("a,ab,c->abc", slope, np.eye(2), X[0])
    for found in (forth, back):
        assert found["a"][0]["w"].shape == (2, 2, 3)
        np.testing.assert_allclose(found["a"][0]["w"], wanted, atol=1e-15)
        np.testing.assert_array_equal(found["a"][0]["c"], np.zeros((2, 2)))
        np.testing.assert_allclose(found["a"][1], np.tanh(W.T @ X[0]))
        ((of_p, of_t),) = found["b"]
        np.testing.assert_allclose(of_p["c"], W.sum() * np.eye(2))
        np.testing.assert_array_equal(of_t, np.zeros(2))


def test_jacobians_with_something_beside() -> None:
    def function(x: Any) -> Any:
        return x * x, {"sum": x.sum()}

    for jacobian in (nfuser.jacfwd, nfuser.jacrev):
        found, aux = jacobian(function, has_aux=True)(X[0])
        np.testing.assert_array_equal(found, np.diag(2 * X[0]))
        assert aux == {"sum": 3.0}

    found, aux = nfuser.hessian(lambda x: ((x**3).sum(), x), has_aux=True)(X[1])
    np.testing.assert_allclose(found, np.diag(6 * X[1]))
    np.testing.assert_array_equal(aux, X[1])


def test_hessians_of_several_arguments() -> None:
    found = nfuser.hessian(lambda x, y: (x * y * y).sum(), (0, 1))(X[0], X[1])
    np.testing.assert_array_equal(found[0][0], np.zeros((3, 3)))
    np.testing.assert_allclose(found[0][1], np.diag(2 * X[1]))
    np.testing.assert_allclose(found[1][0], np.diag(2 * X[1]))
    np.testing.assert_allclose(found[1][1], np.diag(2 * X[0]))


def test_holomorphic_functions() -> None:
    z = np.array([1 + 2j, 0.5j])
    for jacobian in (nfuser.jacfwd, nfuser.jacrev):
        found = jacobian(lambda z: z**3, holomorphic=True)(z)
        np.testing.assert_allclose(found, np.diag(3 * z * z))
        with pytest.raises(DTypeError, match="holomorphic=True"):
            jacobian(lambda z: z**3)(z)
        with pytest.raises(DTypeError, match="leave holomorphic out"):
            jacobian(lambda z: z**3, holomorphic=True)(X[0])


def test_a_jacobian_runs_its_function_once() -> None:
    calls: list[int] = []

    def function(x: Any) -> Any:
        calls.append(1)
        return np.sin(x)

    traced = nfuser.jacrev(function)
    traced.lower(X[0])
    assert len(calls) <= 2  # once, or again for what a trace began anew asks


def _leaks(kept: list[Any]) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        kept.append(x * 2)
        return x

    return function


def test_what_is_refused() -> None:
    with pytest.raises(ArgumentError, match="expected 1 items, found 2"):
        nfuser.vmap(np.sin, (0, 0))(X)
    with pytest.raises(ArgumentError, match="nothing to map over"):
        nfuser.vmap(np.sin, None)(X)
    with pytest.raises(AxisError, match=r"in_axes=None .* an array of 0 axes"):
        nfuser.vmap(dot)(X, 2.0)
    with pytest.raises(ArgumentError, match=r"in_axes=None .* found str"):
        nfuser.vmap(lambda x, name: x)(X, "a")
    with pytest.raises(AxisError, match="an array of 2 axes"):
        nfuser.vmap(np.sin, 2)(X)
    with pytest.raises(AxisError, match="out_axes: axis 3"):
        nfuser.vmap(np.sin, 0, 3)(X)
    with pytest.raises(ShapeError, match="found 2 and 3 rows"):
        nfuser.vmap(dot)(X, X.T)
    with pytest.raises(ArgumentError, match=r"write out_axes=0"):
        nfuser.vmap(np.sin, 0, None)(X)
    with pytest.raises(ArgumentError, match=r"found {'a': 0} for an array"):
        nfuser.vmap(np.sin, ({"a": 0},))(X)
    with pytest.raises(ArgumentError, match=r"nfuser.vmap\(f\)\(x\)"):
        nfuser.vmap(3)  # pyright: ignore[reportArgumentType]


def test_writes_draws_and_leaks_are_refused() -> None:
    def writes(x: Any) -> Any:
        x[0] = 1.0
        return x

    with pytest.raises(MutationError, match=r"x = x\.copy\(\)"):
        nfuser.vmap(writes)(X)

    @nfuser.fuse
    def into_shared(x: Any) -> Any:
        total = np.zeros(3)

        def add(row: Any) -> Any:
            total[:] = total + row
            return row

        return nfuser.vmap(add)(x), total

    with pytest.raises(TraceError, match="all rows share it"):
        into_shared(X)

    @nfuser.fuse
    def leaking(x: Any) -> Any:
        kept: list[Any] = []
        nfuser.vmap(_leaks(kept))(x)
        return kept[0]

    with pytest.raises(TraceError, match="or the function of vmap"):
        leaking(X)

    @nfuser.fuse
    def drawing(x: Any, rng: Any) -> Any:
        return nfuser.vmap(lambda row: row + rng.normal(size=3))(x)

    with pytest.raises(TraceError, match="all rows would draw the same"):
        drawing(X, nfuser.random.default_rng(0))


def test_a_refused_map_leaves_the_trace_whole() -> None:
    @nfuser.fuse
    def function(x: Any) -> Any:
        try:
            y = nfuser.vmap(lambda row: row.reshape(5))(x)
        except ShapeError:
            y = x * 2
        return y + 1

    np.testing.assert_array_equal(function(X), X * 2 + 1)


def test_a_derivative_without_axes_is_what_the_argument_is() -> None:
    for jacobian in (nfuser.jacfwd, nfuser.jacrev):
        square = jacobian(lambda x: x * x)
        assert type(square(3.0)) is float
        assert isinstance(square(np.array(3.0)), np.ndarray)
        assert type(square(np.float32(3.0))) is np.float32
