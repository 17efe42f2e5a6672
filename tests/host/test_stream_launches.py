# SPDX-License-Identifier: Apache-2.0
"""Fusions launched slice by slice on streams give what one launch gives."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
import nfuser.numpy as nn
from nfuser.errors import UnsupportedError
from nfuser.execution.host.passes.lower_streams import lower_streams
from tests.hand_built import traced

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.arange(84, dtype=np.float32).reshape(3, 7, 4) / 50
Y = np.arange(28, dtype=np.float32).reshape(7, 4) / 9
INDEX = np.array([2, 0, -1])


def _softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _program(
    function: Callable[..., Any], arrays: tuple[Any, ...], axes: tuple[int, ...]
) -> nfuser.HostProgram:
    hc = nfuser.HostIrContainer("launches")
    inputs = [hc.define_tensor([-1] * a.ndim, a.dtype) for a in arrays]
    found = hc.launch(traced(function, *arrays), *inputs)
    outputs = found if isinstance(found, tuple) else (found,)
    for output in outputs:
        hc.add_output(output)
    return lower_streams(hc.program(), dict(zip(outputs, axes, strict=True)))


# The arrays, and the stream axis of each result.
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], tuple[int, ...]]] = {
    "elementwise": (lambda x: np.exp(x) * 2, (X,), (1,)),
    "stretched": (lambda x, y: x * y + y[:, :1], (X, Y), (1,)),
    "batches": (lambda x, y: x * y + y[0], (X, Y), (0,)),
    "rows of a softmax": (_softmax, (X,), (1,)),
    "permuted": (lambda x: x.transpose(2, 0, 1) + 1, (X,), (2,)),
    "sums": (lambda x: x.sum(axis=1), (X,), (1,)),
    "two results": (lambda x: (x.sum(0), x.T * 2), (Y,), (0, 0)),
    "new axes": (lambda x: x[:, None] - x[:, :1, None], (X,), (0,)),
    "scan": (lambda x: np.cumsum(x, axis=1) * 0.5, (X,), (0,)),
    "parts": (lambda x: np.pad(x[:, 1:], ((0, 0), (1, 2))), (Y,), (0,)),
    "joined": (lambda x: np.concatenate([x, x * 2], axis=1), (Y,), (0,)),
    "taken": (lambda x, i: x[i], (Y, INDEX), (0,)),
    "taken elsewhere": (lambda x, i: np.take(x, i, axis=1), (Y, INDEX), (0,)),
    "mean of columns": (lambda x: x.mean(axis=1, keepdims=True) * x, (Y,), (0,)),
    "products": (lambda x, y: np.maximum(x @ y.T + 1, 0), (X, Y), (2,)),
}


@pytest.mark.parametrize("streams", [1, 3])
@pytest.mark.parametrize("name", CASES)
def test_slices_give_what_the_whole_gives(name: str, streams: int) -> None:
    function, arrays, axes = CASES[name]
    program = _program(function, arrays, axes)
    evaluator = nfuser.HostIrEvaluator(program, number_of_streams=streams)
    wanted = function(*arrays)
    listed = wanted if isinstance(wanted, tuple) else (wanted,)
    for found, expected in zip(evaluator.run(list(arrays)), listed, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_launches_share_a_loop_with_what_is_around_them(
    golden: Callable[[str], None],
) -> None:
    hc = nfuser.HostIrContainer("chain")
    x = hc.define_tensor([-1, -1])
    fusion = traced(_softmax, Y)
    first = hc.launch(fusion, x)
    middle = hc.set(first)
    second = hc.launch(fusion, middle)
    hc.add_output(second)
    program = lower_streams(hc.program(), {first: 0, middle: 0, second: 0})
    golden(re.sub(r"  # \S+:\d+$", "", str(program), flags=re.MULTILINE))
    (found,) = nfuser.HostIrEvaluator(program, number_of_streams=2).run([Y])
    np.testing.assert_allclose(found, _softmax(_softmax(Y)), rtol=1e-5)


REFUSED: list[tuple[Callable[..., Any], tuple[int, ...], str]] = [
    (_softmax, (2,), "otherwise"),
    (lambda x: x - x.sum(axis=1, keepdims=True), (1,), "otherwise"),
    (lambda x: np.cumsum(x, axis=1), (1,), "a scan"),
    (lambda x: np.concatenate([x, x], axis=1), (1,), "a concatenate"),
    (lambda x: x[:, ::-1], (1,), "a (slice|remap)"),
    (lambda x: x[:, 1:] * 2, (1,), "a slice"),
    (lambda x: np.roll(x, 1, axis=1), (1,), "a remap"),
    (lambda x: x.reshape(-1, 4) + 1, (0,), "a reshape"),
    (lambda x: x * x.shape[1], (1,), "the size as a number"),
    (lambda x: x * nn.ones(x.shape[1]).sum(), (1,), "the size as a number"),
    (lambda x: x * nn.arange(x.shape[1]).sum(), (1,), "the size as a number"),
    (lambda x: x * nn.broadcast_to(2, x.shape).sum(), (0,), "the size as a number"),
    (lambda x: nn.broadcast_to(x[0], (5, *x.shape[1:])) * 1, (0,), "an expand"),
    (lambda x: nn.broadcast_to(x.sum(0), x.shape) * 1, (0,), "an expand"),
    (lambda x: x * nn.arange(x.shape[1])[:, None], (1,), "an iota"),
    (lambda x: x * np.arange(7)[:, None], (1,), r"an? \w+"),
    (lambda x: np.take_along_axis(x, x.astype("i4"), axis=1), (1,), "a take"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case[2])
def test_what_needs_more_than_its_slice_is_refused(case: Any) -> None:
    function, axes, message = case
    with pytest.raises(UnsupportedError, match=f"{message} needs more than one slice"):
        _program(function, (X,), axes)


def test_an_input_of_fixed_size_is_not_sliced() -> None:
    with nfuser.FusionDefinition() as fd:
        t = fd.define_tensor(shape=[7, -1])
        fd.add_output(fd.ops.neg(t))
    hc = nfuser.HostIrContainer()
    made = hc.launch(fd.fusion, hc.define_tensor([7, -1]))
    hc.add_output(made)
    with pytest.raises(UnsupportedError, match="an input of fixed size"):
        lower_streams(hc.program(), {made: 0})


def test_all_results_are_sliced_or_none() -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1, -1])
    one, two = hc.launch(traced(lambda x: (x + 1, x.sum(1)), Y), x)
    hc.add_output(one)
    hc.add_output(two)
    with pytest.raises(UnsupportedError, match="all of its results have a stream axis"):
        lower_streams(hc.program(), {one: 0})
    with pytest.raises(UnsupportedError, match="differ in size"):
        lower_streams(hc.program(), {one: 1, two: 0})


def test_a_function_without_a_fusion_is_refused() -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1, -1])
    made = hc.launch(lambda x: x + 1, x, like=[(x.shape, np.float32)])
    hc.add_output(made)
    with pytest.raises(UnsupportedError, match="launch its fusion"):
        lower_streams(hc.program(), {made: 0})
