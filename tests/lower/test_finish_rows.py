# SPDX-License-Identifier: Apache-2.0
"""Dear functions of what rows come to are computed for many rows at once."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.config import override

if TYPE_CHECKING:
    from collections.abc import Callable

RNG = np.random.default_rng(3)


def _likely(x: Any) -> Any:
    """Return row results of a logarithm, of several numbers, and a sum across rows."""
    largest = x.max(axis=-1)
    total = np.exp(x - largest[:, None]).sum(axis=-1)
    return np.log(total) + largest, total > 2, (x * x).sum(axis=0)


def _needed_again(x: Any) -> Any:
    """Return what has the logarithm in each element: it cannot wait."""
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True)), x.sum(axis=0)


def _cheap(x: Any) -> Any:
    return x.sum(axis=-1) * 2, x.sum(axis=0)


def _check(function: Callable[..., Any], fused: Any, x: Any) -> None:
    found, wanted = fused(x), function(x.astype(np.float64))
    for got, want in zip(found, wanted, strict=True):
        scale = np.abs(want).max(initial=1)
        np.testing.assert_allclose(got, want, 2e-5, 2e-5 * scale)


@pytest.mark.parametrize("columns", [1, 5, 16, 32, 40, 64, 700])
@pytest.mark.parametrize("function", [_likely, _needed_again, _cheap])
def test_rows_of_any_number_come_out_right(
    function: Callable[..., Any], columns: int
) -> None:
    fused = nfuser.fuse(function)
    for rows in (1, 16, 63, 64, 65, 1000, 20_000):
        _check(function, fused, RNG.standard_normal((rows, columns)).astype("f4"))


def test_what_elements_need_does_not_wait() -> None:
    x = RNG.standard_normal((300, 16)).astype("f4")
    for function, is_apart in ((_likely, True), (_needed_again, False)):
        source = nfuser.fuse(function).kernels(x)[0].source
        assert ("stack_f32(64)" in source) is is_apart


def test_what_is_written_in_place_is_read_before() -> None:
    @nfuser.fuse
    def step(x: Any, y: Any) -> Any:
        y[:] = np.log(np.exp(x).sum(axis=-1)) + y
        return x.sum(axis=0)

    x = RNG.standard_normal((200, 16)).astype("f4")
    y = RNG.standard_normal(200).astype("f4")
    wanted = np.log(np.exp(x).sum(axis=-1)) + y
    step(x, y)
    np.testing.assert_allclose(y, wanted, 1e-5, 1e-5)


def test_all_numbers_of_threads_give_the_same_bits() -> None:
    x = RNG.standard_normal((5000, 16)).astype("f4")
    with override(num_threads=1):
        one = nfuser.fuse(_likely)(x)
    with override(num_threads=7):
        many = nfuser.fuse(_likely)(x)
    for a, b in zip(one, many, strict=True):
        np.testing.assert_array_equal(a, b)


def test_rows_of_whole_vectors_take_them_one_after_the_other() -> None:
    fused = nfuser.fuse(lambda x: np.exp(x - x.max(axis=-1, keepdims=True)))
    for columns, is_short in ((15, False), (16, True), (40, False), (48, True)):
        x = RNG.standard_normal((100, columns)).astype("f4")
        explained = str(fused.explain(x))
        assert ("short" in explained) is is_short, columns
        np.testing.assert_allclose(fused(x), np.exp(x - x.max(-1, keepdims=True)), 1e-6)
