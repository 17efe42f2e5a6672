# SPDX-License-Identifier: Apache-2.0
"""The text of traced functions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

from nfuser import numpy as nnp
from nfuser.compiler.ir.text import text
from nfuser.compiler.trace import call_of, trace_function

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.ones((4, 8), np.float32)
V = X[0]
HALF = X.astype(np.float16)
BRAIN = X.astype(ml_dtypes.bfloat16)
COMPLEX = X.astype(np.complex64)


def gelu_bias(x: Any, b: Any) -> Any:
    y = x + b
    return 0.5 * y * (1 + np.tanh(0.7978845608 * (y + 0.044715 * y**3)))


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layer_norm(x: Any, w: Any, b: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    variance = x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * w + b


def norms(x: Any, w: Any) -> Any:
    return nnp.layer_norm(x, w), nnp.rms_norm(x, axis=0)


def rms_norm_residual(x: Any, residual: Any, w: Any) -> Any:
    h = x + residual
    scale = nnp.rsqrt(np.mean(h * h, axis=-1, keepdims=True) + 1e-6)
    return h * scale * w, h


def statistics(x: Any) -> Any:
    return {"mean": x.mean((0, 1)), "var": x.var(0, ddof=1), "top": x.argmax(1)}


def views(x: Any) -> Any:
    return x.T[::-1, None], np.broadcast_to(x[0], (3, *x.shape)), x[..., 1:-1:2]


def half(x: Any) -> Any:
    return nnp.silu(x) * 0.1


def integers(x: Any, n: int) -> Any:
    return (x // n) ^ 3, x % 7 > n, x / n


def scalars(x: Any, a: float, n: int) -> Any:
    if a > 1:
        x = x * a
    return x * (2 * a + n)


def sizes(x: Any) -> Any:
    rows, columns = x.shape
    return x.sum() / (rows * columns - 1), x.size


def complexes(x: Any) -> Any:
    return np.exp(x) * x.conj(), np.abs(x), x.sum(axis=0)


def structures(x: Any) -> Any:
    return [x, (x, None), {"n": 3, "half": x.astype("f2")}]


def mixed(x: Any, y: Any) -> Any:
    return np.where(x > y, x, 0), np.clip(x, 0, y), np.isclose(x, y)


def scans(x: Any) -> Any:
    shares = np.cumulative_sum(x, axis=1, include_initial=True)
    return x.cumsum(), np.maximum.accumulate(x > 0), shares


def products(x: Any, v: Any) -> Any:
    y = x[:, None] * 1
    y @= x.T @ (x * 0.5)
    return x.T @ x, np.matmul(x > 0, v), nnp.matmul(y, v)


def in_place(x: Any) -> Any:
    y = x * 2
    row = y[0]
    y += 1
    return y, row


CASES = {
    gelu_bias: (X, V),
    softmax: (X,),
    layer_norm: (X, V, V),
    norms: (X, V),
    rms_norm_residual: (X, X, V),
    statistics: (X,),
    views: (X,),
    half: (HALF,),
    integers: (X.astype(np.int32), 3),
    scalars: (X, 2.5, 4),
    sizes: (X,),
    complexes: (COMPLEX,),
    structures: (X,),
    mixed: (X, BRAIN),
    scans: (X,),
    products: (X, V),
    in_place: (X,),
}


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_the_text_of(
    function: Callable[..., Any], golden: Callable[[str], None]
) -> None:
    shown = text(trace_function(function, call_of(CASES[function])).fusion)
    golden(re.sub(r"  # test_text.py:\d+", "", shown))


def test_a_text_names_the_lines() -> None:
    shown = text(trace_function(in_place, call_of((X,))).fusion)
    first = in_place.__code__.co_firstlineno
    assert f"multiply(T0, T1)  # test_text.py:{first + 1}\n" in shown


def test_a_trace_has_one_text_whatever_the_sizes() -> None:
    small = trace_function(softmax, call_of((X,)))
    large = trace_function(softmax, call_of((np.ones((50, 70), np.float32),)))
    assert text(small.fusion) == text(large.fusion)
