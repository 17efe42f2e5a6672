# SPDX-License-Identifier: Apache-2.0
"""A part of what is stretched is a stretched part."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.compiler.ir.expr import Expand, Slice
from nfuser.execution.runtime.caches.shared_cache import forget_all
from tests.hand_built import traced

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.arange(6.0)
PARTS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "of a new axis": (lambda x: np.broadcast_to(x, (5, 6))[1:3], 0),
    "of an axis of 1": (
        lambda x: np.broadcast_to(x[:, None], (x.shape[0], 7))[:, ::2],
        0,
    ),
    "of one that is not": (
        lambda x: np.broadcast_to(x[:, None], (x.shape[0], 7))[2:, 1:4],
        1,
    ),
    "of a part": (
        lambda x: np.broadcast_to(x[:, None], (x.shape[0], 7))[:, 1:][:, :3],
        0,
    ),
    "one element": (lambda x: np.broadcast_to(x[:, None], (x.shape[0], 7))[:, 3], 0),
    "one row": (lambda x: np.broadcast_to(x[:, None], (x.shape[0], 7))[2], 1),
    "backwards": (lambda x: np.broadcast_to(x, (5, x.shape[0]))[::-1, ::-1], 1),
    "nothing": (lambda x: np.broadcast_to(x, (5, x.shape[0]))[3:3], 0),
}


@pytest.mark.parametrize("name", PARTS)
def test_only_axes_that_hold_elements_are_sliced(name: str) -> None:
    function, slices = PARTS[name]
    exprs = traced(function, X).exprs
    assert sum(isinstance(e, Slice) for e in exprs) == slices
    sliced = {e.source for e in exprs if isinstance(e, Slice)}
    assert not any(isinstance(e, Expand) and e.result in sliced for e in exprs)


@pytest.mark.parametrize("name", PARTS)
def test_the_elements_are_those_of_numpy(name: str) -> None:
    function, _ = PARTS[name]
    fused = nfuser.fuse(lambda x: function(x) + 0)
    np.testing.assert_array_equal(fused(X), function(X))


@pytest.mark.parametrize("extent", [1, 6])
def test_an_axis_that_is_stretched_in_some_calls_is_sliced(extent: int) -> None:
    def function(x: Any, n: int) -> Any:
        return np.broadcast_to(x, (n,))[2:5] + 1

    x = X[:extent]
    np.testing.assert_array_equal(nfuser.fuse(function)(x, 6), function(x, 6))


def test_lengths_of_stretched_parts_are_not_compiled_in() -> None:
    forget_all()  # another test may have compiled this kernel
    fused = nfuser.fuse(
        lambda x, k: np.broadcast_to(x, (40, x.shape[0]))[:k].sum(0), resize="static"
    )
    for k in (8, 9, 10):
        np.testing.assert_array_equal(fused(X, k), X * k)
    assert fused.cache_info().compiled == 1


def test_a_part_of_a_stretched_axis_of_a_definition_is_stretched() -> None:
    with nfuser.FusionDefinition() as fd:
        t = fd.define_tensor(shape=[-1, 1], contiguity=True, dtype="double")
        wide = fd.ops.expand(t, [-1, 8])
        part = fd.ops.slice(wide, [1, 2], [4, 7])
        fd.add_output(fd.ops.squeeze(part, [1], squeeze_expanded=True))
    (found,) = fd.execute([X[:, None]])
    np.testing.assert_array_equal(found, X[1:4])
