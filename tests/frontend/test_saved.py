# SPDX-License-Identifier: Apache-2.0
"""What a call keeps for the way back is little, and the way back is right with it."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
import nfuser.numpy as xp

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS, N = 64, 32
X = np.linspace(-2, 3, ROWS * N).reshape(ROWS, N)
W, B = np.linspace(1, 2, N), np.linspace(0, 1, N)
LABELS = np.arange(ROWS) % N
ROW = 8 * ROWS  # bytes of a number for each row


def layer_norm(x: Any, w: Any, b: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * w + b


def rms_norm(x: Any, w: Any) -> Any:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w


def cross_entropy(x: Any, labels: Any) -> Any:
    largest = x.max(-1, keepdims=True)
    total = np.log(np.exp(x - largest).sum(-1, keepdims=True)) + largest
    return (total - np.take_along_axis(x, labels[:, None], -1)).mean()


def batch_norm(x: Any, w: Any, b: Any) -> Any:
    centred = x - x.mean(0)
    return centred / np.sqrt((centred * centred).mean(0) + 1e-5) * w + b


def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def rope(x: Any, cos: Any, sin: Any) -> Any:
    cos, sin = nfuser.stop_gradient((cos, sin))
    half = x.shape[-1] // 2
    turned = np.concatenate([-x[:, half:], x[:, :half]], axis=-1)
    return x * cos + turned * sin


LEAST: dict[str, tuple[Callable[..., Any], tuple[Any, ...], int]] = {
    "softmax": (xp.softmax, (X,), X.nbytes),
    "layer norm": (layer_norm, (X, W, B), X.nbytes + W.nbytes + B.nbytes + 2 * ROW),
    "RMS norm": (rms_norm, (X, W), X.nbytes + W.nbytes + ROW),
    "cross entropy": (cross_entropy, (X, LABELS), X.nbytes + LABELS.nbytes + ROW),
    "SwiGLU": (lambda x, y: x / (1 + np.exp(-x)) * y, (X, X + 1), 2 * X.nbytes),
    "batch norm": (batch_norm, (X, W, B), X.nbytes + W.nbytes + 2 * 8 * N),
    "gelu": (gelu, (X,), X.nbytes),
    "RoPE": (rope, (X, W, B), W.nbytes + B.nbytes),
    "a sum": (lambda x: x.sum(0) * 3, (X,), 0),
    "a square of a sum": (lambda x: x.sum(0) ** 2, (X,), 8 * N),
    "a part": (lambda x: x[:2] ** 2, (X,), 8 * 2 * N),
}


def test_folds_of_long_rows_are_kept() -> None:
    x = np.ones((3, 4096), np.float32)
    argument, *rows = nfuser.fuse(xp.softmax).saved(x)
    assert argument.bytes == x.nbytes
    assert [(row.shape, row.dtype.itemsize) for row in rows] == [((3,), 4)] * 2
    assert len(nfuser.fuse(xp.softmax).saved(x[:, :4095])) == 1


@pytest.mark.parametrize("name", LEAST)
def test_the_bytes_are_few(name: str) -> None:
    function, arrays, most = LEAST[name]
    saved = nfuser.fuse(function).saved(*arrays)
    assert sum(kept.bytes for kept in saved) <= most, [*map(str, saved)]


@pytest.mark.parametrize("name", LEAST)
def test_what_is_pulled_back_is_right_with_it(name: str) -> None:
    function, arrays, _ = LEAST[name]
    rest = [a for a in arrays if a.dtype.kind != "f"]
    floats = [a for a in arrays if a.dtype.kind == "f"]

    def value(*primals: Any) -> Any:
        return function(*primals, *rest)

    def inside(t: Any, *primals: Any) -> Any:
        return nfuser.vjp(value, *primals)[1](t)

    found, pull = nfuser.vjp(value, *floats)
    t = np.cos(np.arange(np.size(found))).reshape(np.shape(found))
    for got, want in zip(pull(t), nfuser.fuse(inside)(t, *floats), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def test_dropout_keeps_nothing() -> None:
    fused = nfuser.fuse(lambda x, rng: nfuser.nn.dropout(x, 0.5, rng=rng))
    assert fused.saved(X, nfuser.random.default_rng(0)) == []


def test_products_sorts_and_results_are_not_computed_twice() -> None:
    product = nfuser.fuse(lambda x, w: np.tanh(x @ w) * 2)
    assert [s.name for s in product.saved(X, X.T.copy())][:2] == ["x", "w"]
    kept = product.saved(X, X.T.copy())[2]
    assert (kept.shape, kept.bytes) == ((ROWS, ROWS), 8 * ROWS * ROWS)
    assert "product, which is not computed twice" in str(kept)
    result = nfuser.fuse(lambda x, w: np.tanh(x @ w)).saved(X, X.T.copy())[2]
    assert result.name == "result 0"
    assert any("sort" in s.why for s in nfuser.fuse(_sorted).saved(X))


def _sorted(x: Any) -> Any:
    return np.sort(x * x, -1) ** 2


def test_the_way_back_multiplies_no_more_than_it_must() -> None:
    x, w, v = X[:, :8].copy(), X[:8].copy(), X[:32, :4].copy()

    def function(x: Any, w: Any, v: Any) -> Any:
        return np.tanh(np.tanh(x @ w) @ v)

    value, pull = nfuser.vjp(function, x, w, v)
    hidden = np.tanh(x @ w)
    after = 1 - value**2
    found = pull(np.ones_like(value))
    inner = (after @ v.T) * (1 - hidden**2)
    for got, want in zip(
        found, (inner @ w.T, x.T @ inner, hidden.T @ after), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11)


def test_results_may_be_changed_before_the_way_back() -> None:
    x, w = X[:, :8].copy(), X[:8].copy()
    value, pull = nfuser.vjp(lambda x, w: np.tanh(x @ w), x, w)
    slope = 1 - value**2
    value *= 0
    np.testing.assert_allclose(pull(np.ones_like(value))[0], slope @ w.T, atol=1e-12)


def test_halves_are_kept_as_arguments_alone() -> None:
    saved = nfuser.fuse(rms_norm).saved(X.astype(np.float16), W.astype(np.float16))
    assert [s.name for s in saved] == ["x", "w"]


def test_sums_of_columns_are_kept_in_the_digits_they_were_found_in() -> None:
    halves = [a.astype(np.float16) for a in (X, W, B)]
    x, w, *sums = nfuser.fuse(batch_norm).saved(*halves)
    assert (x.name, w.name, len(sums)) == ("x", "w", 2)
    assert {(str(s.dtype), s.shape) for s in sums} == {("f32", (N,))}
    assert all("does not read its source twice" in s.why for s in sums)
    value, pull = nfuser.vjp(batch_norm, *halves)
    t = np.cos(np.arange(X.size)).reshape(X.shape)
    wanted = nfuser.vjp(batch_norm, *(a.astype(np.float64) for a in halves))[1](t)
    for got, want in zip(pull(t.astype(np.float16)), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=4e-3, atol=2e-3 * abs(want).max())
    assert value.dtype == np.float16


def test_other_sizes_and_branches_have_plans_of_their_own() -> None:
    def function(x: Any, w: Any) -> Any:
        y = x @ w
        return np.exp(y) if x.shape[0] > 3 else np.sin(y) * y

    for rows in (2, 5, 3, 9, 2):
        x, w = X[:rows, :4].copy(), X[:4, :6].copy()
        value, pull = nfuser.vjp(function, x, w)
        y = x @ w
        slope = np.exp(y) if rows > 3 else np.cos(y) * y + np.sin(y)
        np.testing.assert_allclose(pull(np.ones_like(value))[0], slope @ w.T)


def test_a_call_without_floats_says_so() -> None:
    with pytest.raises(nfuser.NfuserError, match="pass an array of floats"):
        nfuser.fuse(lambda n: n + 1).saved(np.arange(3))
