# SPDX-License-Identifier: Apache-2.0
"""Each kind of expression has a rule: all rows are as each by itself."""

# Arrays of any library have no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import pytest

import nfuser
import nfuser.compiler.transforms.batch.step as rules
from nfuser import lax
from nfuser.compiler.ir.expr import Called, Expr, Leaf, PartialSum
from tests.differentiate.numeric import gradients, meaning, numbers

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS, COUNT = 3, 4
X, Y = numbers(ROWS, COUNT), numbers(ROWS, COUNT, seed=1)
V, W = numbers(COUNT, seed=2), numbers(COUNT, 2, seed=3)
STACK = numbers(2, COUNT, COUNT, seed=4)
I = np.array([[0, 3], [-1, 1], [2, 2]])  # noqa: E741
ON, OFF = 0, None


def _assigned(x: Any) -> Any:
    y = np.zeros(6)
    y[1:5] = x
    y[::5] = x.sum()
    return y


def _assigned_by_index(x: Any, i: Any) -> Any:
    y = np.zeros(COUNT)
    y[i] = x[:2]
    return y


def _added_by_index(x: Any, i: Any) -> Any:
    y = x.copy()
    np.add.at(y, i, x[1:3])
    return y


def _grown(x: Any) -> Any:
    return lax.while_loop(lambda s: s.sum() < 20, lambda s: 1.5 * s, x)


def _counted(x: Any, y: Any) -> Any:
    return lax.fori_loop(0, 3, lambda i, s: (s[0] + x * i, s[1] * 2), (y, 1.0))


def _scanned(x: Any, y: Any) -> Any:
    return lax.scan(lambda c, r: (c + r[0] * V, (c * r[1], r[0])), V, (x, y))


def _chosen(x: Any) -> Any:
    return lax.cond(x[0] > 0.5, lambda x: x.cumsum(), lambda x: -x, x)


def _branched(x: Any) -> Any:
    if x[0] > 0.5:
        return np.sin(x).sum()
    return x.sum()


def _turned(x: Any) -> Any:
    total = np.zeros(COUNT)
    for k in range(x.shape[0]):
        total = total * 0.5 + x * k
    return total


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...]]] = {
    "point": (lambda x, y: np.sin(x) * y + 1, (X, Y), (ON, ON)),
    "point of ranks": (lambda x, y: x[:, None] * y + V, (X, Y), (ON, ON)),
    "number and rows": (lambda x, y: x * y, (V[:3], Y), (ON, ON)),
    "expand": (lambda x: np.broadcast_to(x, (2, COUNT)) * W.T, (X,), (ON,)),
    "expand_dims": (lambda x: x[None, :, None], (X,), (ON,)),
    "squeeze": (lambda x: x[:1].squeeze(0), (X,), (ON,)),
    "permute": (lambda x: np.outer(x, V).T, (X,), (ON,)),
    "slice": (lambda x: x[-1:0:-2], (X,), (ON,)),
    "reshape": (lambda x: x.reshape(2, -1), (X,), (ON,)),
    "remap": (lambda x: np.roll(np.tile(x, 2), 3), (X,), (ON,)),
    "borders": (lambda x: np.pad(x, 2, mode="reflect"), (X,), (ON,)),
    "pad": (lambda x: np.pad(x, (1, 2)), (X,), (ON,)),
    "pad by a row": (
        lambda x, y: np.pad(x, (1, 2), constant_values=y),
        (X, V[:3]),
        (ON, ON),
    ),
    "pad of shared": (
        lambda x, y: np.pad(x, (1, 2), constant_values=y),
        (V, V[:3]),
        (OFF, ON),
    ),
    "concatenate": (lambda x, y: np.concatenate([x, V, y]), (X, W[0]), (ON, OFF)),
    "concatenate rows": (lambda x: np.stack([x, x * V], axis=1), (X,), (ON,)),
    "sum": (lambda x: (x * W.T).sum(axis=0), (X,), (ON,)),
    "moments": (lambda x: x.var() + x.std(), (X,), (ON,)),
    "maximum": (lambda x: x.max() * x.argmax(), (X,), (ON,)),
    "argument of many axes": (lambda x: (x * W.T).argmin(), (X,), (ON,)),
    "scan": (lambda x: np.cumprod(x), (X,), (ON,)),
    "sort": (lambda x: np.sort(x)[::-1], (X,), (ON,)),
    "take places": (lambda x: x[np.argsort(x)], (X,), (ON,)),
    "along": (lambda x, i: np.take_along_axis(x, i, 0), (X, I), (ON, ON)),
    "along shared": (lambda x, i: np.take_along_axis(x, i, 0), (V, I), (OFF, ON)),
    "take": (lambda x, i: x[i], (X, I[0]), (ON, OFF)),
    "take of shared": (lambda x, i: x[i], (W, I), (OFF, ON)),
    "take columns of shared": (
        lambda x, i: np.take(x, i, axis=1),
        (W.T, I),
        (OFF, ON),
    ),
    "take of rows": (lambda x, i: x[i], (X, I), (ON, ON)),
    "take columns of rows": (
        lambda x, i: np.take(np.outer(V, x), i, axis=1),
        (X, I),
        (ON, ON),
    ),
    "assign": (_assigned, (X,), (ON,)),
    "assign by index": (_assigned_by_index, (X, I), (ON, ON)),
    "add by index": (_added_by_index, (X, I), (ON, ON)),
    "matrix": (lambda x, w: x @ w, (X, W), (ON, OFF)),
    "matrix on rows": (lambda x, w: w @ x, (X, W.T), (ON, OFF)),
    "vector": (lambda x, v: x @ v, (X, V), (ON, OFF)),
    "vector of shared": (lambda x, v: v @ x, (X, V), (ON, OFF)),
    "vectors": (lambda x, y: x @ y, (X, Y), (ON, ON)),
    "matrices": (lambda x, y: np.outer(x, V) @ np.outer(V, y), (X, Y), (ON, ON)),
    "matrix and vector": (lambda x, y: np.outer(x, V) @ y, (X, Y), (ON, ON)),
    "vector and matrix": (lambda x, y: x @ np.outer(V, y), (X, Y), (ON, ON)),
    "stack": (lambda x, s: np.outer(x, x) @ s, (X, STACK), (ON, OFF)),
    "stack of shared": (lambda x, s: s @ np.outer(x, x), (X, STACK), (ON, OFF)),
    "vector and stack": (lambda x, s: x @ s, (X, STACK), (ON, OFF)),
    "stack and vector": (lambda x, s: s @ x, (X, STACK), (ON, OFF)),
    "einsum": (lambda x, s: np.einsum("i,aij,j->a", x, s, x), (X, STACK), (ON, OFF)),
    "fori_loop": (lambda x, y: _counted(x, y)[0], (X, Y), (ON, OFF)),
    "shared of a loop": (lambda x, y: _counted(x, y)[1] + x, (X, Y), (ON, OFF)),
    "scan of lax": (lambda x, y: _scanned(x, y)[1][0], (X, Y), (ON, ON)),
    "carried by scan": (lambda x, y: _scanned(x, y)[0], (X, Y), (ON, ON)),
    "scan of shared": (lambda x, y: _scanned(x, y)[1][1] * x, (X, V), (ON, OFF)),
    "cond": (_chosen, (X,), (ON,)),
    "while_loop": (_grown, (X,), (ON,)),
    "branch": (_branched, (X,), (ON,)),
    "plain loop": (_turned, (X,), (ON,)),
}
LOOPS = {
    *("fori_loop", "shared of a loop", "scan of lax", "carried by scan"),
    *("scan of shared", "cond", "while_loop", "branch", "plain loop"),
}


def _row(xs: Any, axes: Any, k: int) -> list[Any]:
    pairs = zip(xs, axes, strict=True)
    return [x if axis is None else np.take(x, k, axis) for x, axis in pairs]


def _count(xs: Any, axes: Any) -> int:
    pairs = zip(xs, axes, strict=True)
    return next(x.shape[axis] for x, axis in pairs if axis is not None)


@pytest.mark.parametrize("name", CASES)
def test_all_rows_are_as_each_by_itself(name: str) -> None:
    function, xs, axes = CASES[name]
    found = nfuser.vmap(function, in_axes=axes)(*xs)
    wanted = [function(*_row(xs, axes, k)) for k in range(_count(xs, axes))]
    np.testing.assert_allclose(found, np.stack(wanted), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", [name for name in CASES if name not in LOOPS])
def test_slopes_of_rows_and_through_rows(name: str) -> None:
    function, xs, axes = CASES[name]
    floats = tuple(k for k, x in enumerate(xs) if x.dtype == np.float64)

    def loss(*args: Any) -> Any:
        made = function(*args)
        return (made * np.cos(made)).sum()

    slope = nfuser.grad(loss, floats)
    found = nfuser.vmap(slope, in_axes=axes)
    through = nfuser.grad(
        lambda *args: nfuser.vmap(loss, in_axes=axes)(*args).sum(), floats
    )
    count = _count(xs, axes)
    each = [meaning(slope, *_row(xs, axes, k)) for k in range(count)]
    pairs = zip(floats, meaning(found, *xs), meaning(through, *xs), strict=True)
    for number, (k, rows, total) in enumerate(pairs):
        parts = [np.asarray(e[number]) for e in each]
        axis = axes[k]
        np.testing.assert_allclose(rows, np.stack(parts), rtol=1e-12, atol=1e-12)
        wanted = sum(parts) if axis is None else np.stack(parts, axis=axis)
        np.testing.assert_allclose(total, wanted, rtol=1e-12, atol=1e-12)


def test_every_kind_of_expression_was_raised(monkeypatch: Any) -> None:
    seen: set[type] = set()
    step = rules.step

    def noted(rows: Any, expr: Any) -> Any:
        seen.add(type(expr))
        return step(rows, expr)

    monkeypatch.setattr("nfuser.compiler.transforms.batch.rows.step", noted)
    for function, xs, axes in CASES.values():
        meaning(nfuser.vmap(function, in_axes=axes), *xs)
    # What stretches to sizes that are not known yet, on its way back.
    meaning(
        nfuser.vmap(nfuser.grad(lambda x, y: ((x * y) ** 2).sum()), (0, None)), X, V
    )
    # Functions of the array library are refused by name.
    kinds = set(get_args(Expr)) - set(get_args(Leaf)) - {Called}
    flat = {k for kind in kinds for k in (get_args(kind) or (kind,))}
    flat.remove(PartialSum)  # segmentation makes it, and nothing is raised after that
    assert {k.__name__ for k in flat - seen} == set()


def test_an_index_outside_of_its_row_reads_the_end_of_that_row() -> None:
    bad = np.array([[0, 7], [-1, 4], [2, -9]])
    function = nfuser.fuse(lambda x, i: x[i])
    wanted = np.stack([function(x, i) for x, i in zip(X, bad, strict=True)])
    np.testing.assert_array_equal(nfuser.vmap(function)(X, bad), wanted)


@pytest.mark.parametrize("bad", [4, -5])
def test_an_index_outside_of_its_row_is_written_to_by_nobody(bad: int) -> None:
    index = np.array([[0, 3], [-1, bad], [2, 2]])
    with pytest.raises(IndexError):
        nfuser.vmap(_added_by_index)(X, index)


def test_products_with_what_rows_share_are_one_product() -> None:
    kernels = nfuser.vmap(lambda x, w: np.tanh(x @ w), (0, None)).explain(X, W)
    assert "1 call of the array library" in str(kernels)


def test_a_way_back_of_its_own_holds_for_rows() -> None:
    @nfuser.custom_vjp
    def scaled(x: Any, w: Any) -> Any:
        return x * w

    def forth(x: Any, w: Any) -> Any:
        return x * w, (x, w)

    def back(kept: Any, t: Any) -> Any:
        x, w = kept
        return 10 * t * w, 100 * (t * x)

    scaled.defvjp(forth, back)

    def loss(x: Any, w: Any) -> Any:
        return (scaled(x, w) ** 2).sum()

    each = nfuser.vmap(nfuser.grad(loss, (0, 1)), in_axes=(0, None))(X, V)
    np.testing.assert_allclose(each[0], 20 * X * V * V)
    np.testing.assert_allclose(each[1], 200 * X * X * V)
    through = gradients(lambda x, w: nfuser.vmap(loss, (0, None))(x, w).sum(), X, V)
    np.testing.assert_allclose(through[0], 20 * X * V * V)
    np.testing.assert_allclose(through[1], (200 * X * X * V).sum(axis=0))


def test_constants_to_derivatives_are_so_in_rows() -> None:
    def loss(x: Any) -> Any:
        return (x * nfuser.stop_gradient(x * 3)).sum()

    found = nfuser.grad(lambda x: nfuser.vmap(loss)(x).sum())(X)
    np.testing.assert_allclose(found, 3 * X)


def test_choices_in_rows_leak_nothing() -> None:
    def loss(x: Any) -> Any:
        return np.where(x > 0, np.sqrt(x), 0.0).sum()

    x = np.array([[0.0, 4.0], [1.0, -1.0]])
    wanted = [[0.0, 0.25], [0.5, 0.0]]
    np.testing.assert_array_equal(nfuser.vmap(nfuser.grad(loss))(x), wanted)
    through = nfuser.grad(lambda x: nfuser.vmap(loss)(x).sum())
    np.testing.assert_array_equal(through(x), wanted)


@pytest.mark.parametrize("wrong", [-1, 4])
def test_what_counts_refuses_a_number_of_another_row(wrong: int) -> None:
    counts = nfuser.vmap(lambda x: np.bincount(x, minlength=4))
    x = np.array([[0, 1, 1], [3, 3, 2]])
    np.testing.assert_array_equal(counts(x), [[1, 2, 0, 0], [0, 0, 1, 2]])
    x[1, 1] = wrong
    with pytest.raises(ValueError, match="bincount"):
        counts(x)
