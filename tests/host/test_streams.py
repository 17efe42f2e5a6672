# SPDX-License-Identifier: Apache-2.0
"""An axis bound to streams becomes a loop over that axis."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
import nfuser.execution.host.ir.statements as st
from nfuser.base.debug.timeline import Timeline
from nfuser.errors import ArgumentError, UnsupportedError
from nfuser.execution.host.passes.lower_streams import lower_streams
from tests.host.classic import CLASSIC, sets

if TYPE_CHECKING:
    from collections.abc import Callable


X = np.arange(28, dtype=np.float32).reshape(7, 4)


def _text(program: nfuser.HostProgram) -> str:
    return re.sub(r"  # \S+:\d+$", "", str(program), flags=re.MULTILINE)


@pytest.mark.parametrize("name", CLASSIC)
def test_the_classic_programs(name: str, golden: Callable[[str], None]) -> None:
    program = sets(*CLASSIC[name])
    golden(_text(program))
    for streams in (1, 3, 9):
        evaluator = nfuser.HostIrEvaluator(program, number_of_streams=streams)
        for array in (X, X[:1], X[:0], np.tile(X, (3, 2))):
            (got,) = evaluator.run([array])
            np.testing.assert_array_equal(got, array, strict=True)


def test_other_axes_do_not_share_a_loop() -> None:
    program = sets(0, 1)
    assert sum(isinstance(s, st.ForLoop) for s in program.body) == 2
    np.testing.assert_array_equal(nfuser.HostIrEvaluator(program).run([X])[0], X)


def test_an_inner_tensor_has_a_slice_for_each_stream() -> None:
    timeline = Timeline()
    array = np.ones((64, 1000), np.float32)
    evaluator = nfuser.HostIrEvaluator(sets(0, 0, 0), number_of_streams=4)
    evaluator.run([array], timeline=timeline)
    assert timeline.peak_bytes == array.nbytes + 2 * 4 * array[0].nbytes


def _chain(hc: nfuser.HostIrContainer, x: Any, y: Any) -> Any:
    product = hc.matmul(x, y)
    moved = hc.binary("add", product, hc.slice(y, (0, 0), (1, y.shape[1])))
    total = hc.reduce("sum", hc.unary("tanh", moved), 1)
    return total, {product: 0, moved: 0}


OPERATIONS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {
    "rows of a product": (lambda h, x, y: (m := h.matmul(x, y), {m: 0}), np.matmul),
    "columns of a product": (lambda h, x, y: (m := h.matmul(x, y), {m: 1}), np.matmul),
    "a product with itself": (
        lambda h, x, y: (m := h.matmul(h.matmul(x, y), h.matmul(x, y)), {m: 1}),
        lambda x, y: (x @ y) @ (x @ y),
    ),
    "the same square twice": (
        lambda h, x, y: (m := h.matmul(s := h.matmul(x, y), s), {s: 0, m: 0}),
        lambda x, y: (x @ y) @ (x @ y),
    ),
    "sums": (
        lambda h, x, y: (m := h.reduce("sum", x, 0), {m: 0}),
        lambda x, y: x.sum(0),
    ),
    "binary": (
        lambda h, x, y: (m := h.binary("add", x, h.row(x, 0)), {m: 0}),
        lambda x, y: x + x[0],
    ),
    "binary inner": (
        lambda h, x, y: (m := h.binary("add", h.row(x, 0), x), {m: -1}),
        lambda x, y: x + x[0],
    ),
    "chain": (_chain, lambda x, y: np.tanh(x @ y + y[:1]).sum(1)),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_slices_give_what_the_whole_gives(name: str) -> None:
    build, oracle = OPERATIONS[name]
    hc = nfuser.HostIrContainer()
    x, y = hc.define_tensor([7, 4]), hc.define_tensor([4, 7])
    result, bindings = build(hc, x, y)
    hc.add_output(result)
    program = lower_streams(hc.program(), bindings)
    assert any(isinstance(s, st.ForLoop) for s in program.body)
    y_array = np.linspace(-1, 1, 28, dtype=np.float32).reshape(4, 7)
    for streams in (1, 4):
        evaluator = nfuser.HostIrEvaluator(program, number_of_streams=streams)
        (got,) = evaluator.run([X, y_array])
        np.testing.assert_allclose(got, oracle(X, y_array), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_batched_products(axis: int) -> None:
    hc = nfuser.HostIrContainer()
    x, y = hc.define_tensor([2, 3, 4, 5]), hc.define_tensor([1, 5, 6])
    product = hc.matmul(x, y)
    hc.add_output(product)
    program = lower_streams(hc.program(), {product: axis})
    a = np.arange(120, dtype=np.float32).reshape(2, 3, 4, 5)
    b = np.arange(30, dtype=np.float32).reshape(1, 5, 6)
    (got,) = nfuser.HostIrEvaluator(program).run([a, b])
    np.testing.assert_allclose(got, a @ b)


def test_what_has_no_slices_is_refused() -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1, 4])
    merged = hc.reshape(x, (x.shape[0] * 4,))
    copied = hc.set(merged)
    hc.add_output(copied)
    program = hc.program()
    with pytest.raises(ArgumentError, match="an input cannot be parallel"):
        lower_streams(program, {x: 0})
    with pytest.raises(UnsupportedError, match="split or merge of a stream axis"):
        lower_streams(program, {merged: 0})
    with pytest.raises(ArgumentError, match="axis 1 of a tensor of 1 axes"):
        lower_streams(program, {copied: 1})
    assert lower_streams(program, {}) is program


def test_a_slice_may_not_write_what_others_read() -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([4, 4])
    square = hc.set(x)
    hc.matmul(square, x, out=square)
    hc.add_output(square)
    lower_streams(hc.program(), {square: 0})
    hc.matmul(x, square, out=square)
    with pytest.raises(UnsupportedError, match="may not write what other slices read"):
        lower_streams(hc.program(), {square: 0})


def test_the_callers_buffer_is_sliced() -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1, 4])
    doubled = hc.binary("multiply", x, 2.0)
    hc.add_output(doubled, alias_input=x)
    program = lower_streams(hc.program(), {doubled: 0})
    assert not any(isinstance(s, st.Allocate) for s in program.body)
    array = X.copy()
    assert nfuser.HostIrEvaluator(program).run([array])[0] is array
    np.testing.assert_array_equal(array, X * 2)


@pytest.mark.parametrize("axis", [0, -3])
def test_a_reshape_that_keeps_the_stream_axis_has_slices(axis: int) -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1, 6])
    split = hc.reshape(hc.unary("negative", x), (x.shape[0], 2, 3))
    total = hc.reduce("sum", split, 2)
    hc.add_output(split)
    hc.add_output(total)
    program = lower_streams(hc.program(), {split: axis, total: 0})
    assert any(isinstance(s, st.ForLoop) for s in program.body)
    array = np.arange(30, dtype=np.float32).reshape(5, 6)
    found = nfuser.HostIrEvaluator(program).run([array])
    np.testing.assert_array_equal(found[0], -array.reshape(5, 2, 3))
    np.testing.assert_array_equal(found[1], -array.reshape(5, 2, 3).sum(2))
