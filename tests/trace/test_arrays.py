# SPDX-License-Identifier: Apache-2.0
"""A traced array behaves as NumPy's does: operators, methods, protocols, names."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import copy
import operator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

import nfuser
from nfuser import numpy as nnp
from nfuser.compiler.trace import call_of, current_tracer, trace_function
from nfuser.errors import ArgumentError
from tests.trace.meaning import run

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.array([[1.5, -2.0, 3.0], [4.0, 0.5, -6.0]])
Y = np.array([2.0, -3.0, 0.5])
N = np.array([[1, -2, 3], [4, 5, -6]])


class Pair(NamedTuple):
    first: Any
    second: Any


def same(function: Callable[..., Any], *args: Any) -> None:
    copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    with np.errstate(all="ignore"):
        expected, actual = function(*copies), run(function, *args)
    many = isinstance(expected, tuple)
    pairs = zip(actual, expected, strict=True) if many else [(actual, expected)]
    for one, other in pairs:
        np.testing.assert_array_equal(one, other, strict=True)


@pytest.mark.parametrize(
    "name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "ge", "eq"]
)
def test_operators_and_their_reflections(name: str) -> None:
    apply = getattr(operator, name)
    same(lambda x, y: (apply(x, y), apply(abs(x), 2), apply(2.5, y)), X, Y)


@pytest.mark.parametrize("name", ["and_", "or_", "xor", "lshift", "rshift"])
def test_operators_of_integers(name: str) -> None:
    apply = getattr(operator, name)
    same(lambda n: (apply(n, 3), apply(7, abs(n)), apply(n, abs(n))), N)


def test_unary_operators_and_builtins() -> None:
    same(lambda x, n: (-x, +x, abs(x), ~n, divmod(x, 2)[1], sum(x)), X, N)
    same(lambda x: round(x.sum(), 1), X)


@pytest.mark.parametrize(
    "name", ["iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow"]
)
def test_in_place_operators_act_through_every_name(name: str) -> None:
    apply = getattr(operator, name)

    def function(x: Any, y: Any) -> Any:
        a = abs(x)
        b, row, turned = a, a[1], a.T[::-1]
        a = apply(a, y)
        return a, b, row * 1, turned * 1

    same(function, X, Y)


@pytest.mark.filterwarnings("ignore:fuse the body of this loop:RuntimeWarning")
def test_views_of_views_may_be_many() -> None:
    def function(x: Any) -> Any:
        a = x * 1
        views = [a]
        for _ in range(1001):
            views.append(views[-1].T)
        a += 1
        return views[-1] * 1, views[500] * 1

    same(function, X)


def test_writing_through_out_and_the_whole_slice() -> None:
    def function(x: Any, y: Any) -> Any:
        a = x * 1
        b = a
        np.multiply(a, y, out=a)
        np.add(a, 1, out=a, where=x > 0)
        a[...] = a + 1
        a[:] = a * 2
        return b

    same(function, X, Y)


def test_numbers_are_bound_anew() -> None:
    def function(x: Any) -> Any:
        total = x.sum()
        kept = total
        total += 1
        return total, kept

    same(function, X)


def test_in_place_keeps_the_narrower_dtype() -> None:
    def function(x: Any) -> Any:
        y = x.astype(np.float32)
        y += x
        return y

    same(function, X)


def test_methods_and_attributes() -> None:
    same(lambda x: (x.T, x.mT, x.real, x.imag, x.copy(), x.conj()), X)
    same(lambda x: (x.transpose(1, 0), x.transpose((1, 0)), x.swapaxes(0, 1)), X)
    same(lambda x: (x.clip(0, 1), x.round(), x.squeeze(), x.astype("f4")), X)
    same(lambda x: (x.sum(0), x.max(-1), x.argmin(1), x.std(), x.any()), X)
    same(lambda x: (x.prod(), x.min(0), x.argmax(), x.var(1), x.mean(), x.all()), X)
    same(lambda x: (copy.copy(x) + 1, copy.deepcopy(x) + 1), X)


def test_shape_dtype_and_size() -> None:
    def function(x: Any) -> Any:
        assert x.ndim == 2
        assert x.shape == (2, 3)
        assert x.size == 6
        assert (x.itemsize, x.nbytes, len(x)) == (8, 48, 2)
        assert x.dtype == np.float64
        assert np.shape(x) == (2, 3)
        assert np.size(x, 1) == 3
        assert np.ndim(x) == 2
        assert np.result_type(x, np.float32) == np.float64
        return x + 1

    same(function, X)


def test_axes_are_moved_added_and_dropped() -> None:
    same(lambda x: (np.moveaxis(x, 0, -1), np.swapaxes(x, 0, 1), np.flip(x)), X)
    same(
        lambda x: (np.expand_dims(x, (0, -1)), np.squeeze(x[None]), x[:, None, ::-1]), X
    )
    same(lambda x: (np.fliplr(x), np.flipud(x), np.permute_dims(x, (1, 0))), X)
    same(lambda x: np.broadcast_arrays(x, x[0], Y, 2.0), X)
    same(lambda x: np.moveaxis(x, destination=0, source=1), X)
    same(lambda x: (np.broadcast_to(x, (2, 2, 3)), np.matrix_transpose(x)), X)
    same(lambda x: (np.zeros_like(x), np.full_like(x, 2, dtype=int)), X)


def test_unpacking_and_iteration() -> None:
    def function(x: Any) -> Any:
        first, second = x
        total = 0
        for row in x:
            total = total + row
        return first * second, total, *second

    same(function, X)


def test_ufunc_reductions_and_keywords() -> None:
    same(lambda x: (np.add.reduce(x), np.maximum.reduce(x, axis=None)), X)
    same(lambda x: (np.exp(x, dtype=np.float64), np.multiply.reduce(x, 1)), X)
    same(lambda x: np.logical_and.reduce(x, axis=1, keepdims=True), X)


def test_arrays_beside_traced_ones_meet_them() -> None:
    same(lambda x: X * x + np.float32(2) * x + (np.int8(1) + x), X)


def test_scipy_ufuncs_are_matched_by_name() -> None:
    special = pytest.importorskip("scipy.special")
    for name in ("erf", "erfc", "expit", "log1p", "exp2", "cbrt"):
        actual = run(lambda x, f=getattr(special, name): f(x), Y)  # noqa: B008
        np.testing.assert_allclose(actual, getattr(special, name)(Y), rtol=1e-12)


def test_nests_come_back_as_they_went_out() -> None:
    def function(x: Any) -> Any:
        return Pair([x, None], {"a": (x, ())})

    given = run(function, X)
    assert isinstance(given, Pair)
    assert given.first[1] is None
    assert list(given.second) == ["a"]
    assert given.second["a"][1] == ()


def test_nests_of_arguments_are_taken_apart() -> None:
    def function(both: Any, *, scale: Any = None) -> Any:
        return both["x"] * both["y"][0] + scale.first

    arguments = ({"x": X, "y": [Y]},)
    actual = run(function, *arguments, scale=Pair(3.0, None))
    np.testing.assert_array_equal(actual, X * Y + 3)


def test_the_namespace_serves_traced_and_plain_arrays() -> None:
    def function(x: Any) -> Any:
        xp = x.__array_namespace__()
        return xp.permute_dims(xp.pow(x, 2), (1, 0)) + xp.ones(x.shape[0]) * xp.pi

    expected = np.permute_dims(X**2, (1, 0)) + np.ones(2) * np.pi
    np.testing.assert_array_equal(run(function, X), expected)
    assert type(nnp.exp(X)) is np.ndarray
    assert nnp.zeros((2, 3)).shape == (2, 3)
    assert nnp.asarray([1, 2]).dtype == np.int64


def test_a_trace_knows_that_it_runs() -> None:
    seen: list[Any] = []
    trace_function(lambda x: seen.append(current_tracer()) or x, call_of((X,)))
    assert seen[0] is not None
    assert current_tracer() is None


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x == [1.5, 4.0, 3.0],
        lambda x: np.not_equal((1.5, 4.0, 3.0), x),
        lambda x: np.where(x == [1.5, 4.0, 3.0], 1, -1),
        lambda x: [[1.0], [2.0]] - x * [1, 2, 3],
        lambda x: np.maximum(x, [0, 1, 2]),
    ],
)
def test_lists_of_numbers_are_operands(function: Callable[..., Any]) -> None:
    np.testing.assert_array_equal(nfuser.fuse(function)(X), function(X), strict=True)


@pytest.mark.parametrize("other", ["a", None, {1}], ids=str)
def test_what_is_no_number_compares_with_no_array(other: Any) -> None:
    with pytest.raises(ArgumentError, match="expected an array or a number"):
        run(lambda x: x == other, X)
