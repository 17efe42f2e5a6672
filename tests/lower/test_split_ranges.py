# SPDX-License-Identifier: Apache-2.0
"""Loops that end where a piece of what was joined or padded does."""
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
import nfuser.compiler.ir.scalars.functions as scalar_functions
import nfuser.compiler.ir.scalars.symbols as scalar_symbols
import nfuser.numpy as xp
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.lower.cpu.split_ranges import at_seams
from nfuser.compiler.lower.kernel.kernel_ir import (
    Buffer,
    For,
    If,
    LoopCounter,
    Number,
    Store,
)

if TYPE_CHECKING:
    from collections.abc import Callable

LENGTHS = (0, 1, 2, 7, 100, 1030, 8191, 8193, 20_000)


def _joined(x: Any, y: Any) -> Any:
    return np.maximum(np.concatenate([x, y], axis=-1), 0)


def _total(x: Any, y: Any) -> Any:
    return np.concatenate([x, y], axis=1).sum(axis=1)


def _rows(length: int) -> Any:
    return np.random.default_rng(length).standard_normal((2, length)).astype("f4")


def _body(function: Callable[..., Any], *arrays: Any) -> str:
    (kernel,) = nfuser.fuse(function).kernels(*arrays)
    return kernel.source.split("\ndef ")[1]


def test_a_loop_reads_one_piece_and_compares_nothing() -> None:
    body = _body(_joined, _rows(5), _rows(7))
    assert not re.search(r"\bif\b|\bselect\((?!i64)", body)
    loops = body.split("for i")[1:]
    read = [set(re.findall(r"load\((T\d)", loop)) for loop in loops]
    assert {frozenset(tensors) for tensors in read} == {
        frozenset({"T0"}),
        frozenset({"T1"}),
    }


def test_a_slice_between_two_others_has_no_less_than_no_elements() -> None:
    body = _body(np.gradient, np.arange(9.0))
    assert not re.search(r"\bif\b|\bselect\((?!i64)", body)
    fused = nfuser.fuse(np.gradient)
    for length in (2, 3, 8191, 8192, 8193, 20_000):
        x = np.random.default_rng(length).standard_normal(length)
        np.testing.assert_allclose(fused(x), np.gradient(x), rtol=1e-12)


def test_borders_are_loops_of_their_own() -> None:
    body = _body(lambda x: np.pad(x, ((0, 0), (2, 3))) + 1, _rows(9))
    assert not re.search(r"\bif\b", body)
    loops = body.split("for i")[1:]
    assert "load(" not in loops[0]
    assert "load(" not in loops[-1]
    assert any("load(" in loop for loop in loops[1:-1])


@pytest.mark.parametrize("length", LENGTHS)
def test_pieces_of_any_length_are_numpys(length: int) -> None:
    joined, total = nfuser.fuse(_joined), nfuser.fuse(_total)
    for other in LENGTHS:
        x, y = _rows(length), _rows(other)
        np.testing.assert_array_equal(joined(x, y), _joined(x, y))
        wanted = x.sum(1) + y.sum(1)
        np.testing.assert_allclose(total(x, y), wanted, rtol=1e-4, atol=1e-4)


FUNCTIONS: dict[str, Callable[[Any, int], Any]] = {
    "pad": lambda x, n: np.pad(x, ((1, 0), (n, 3)), constant_values=2) * 2,
    "roll": lambda x, n: np.roll(x, n, axis=1) - x,
    "triangle": lambda x, n: np.tril(x, n) + x,
    "mask": lambda x, n: np.where(xp.arange(x.shape[1]) < n, x, -x),
    "turned": lambda x, n: np.concatenate([x[:, ::-1], x * n], axis=1) + 1,
    "reflected": lambda x, n: np.pad(x, ((0, 0), (1, 2)), mode="symmetric") * n,
    "turned back": lambda x, n: np.pad(x, ((1, 1), (n % 7, 3)), mode="reflect") + 1,
    "mirrored": lambda x, n: np.pad(x, ((0, 0), (1, 1)), mode="edge") * n,
    "thrice": lambda x, n: np.concatenate([x, x + n, x * n], axis=1) * 2,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_seams_are_where_the_arguments_have_them(name: str) -> None:
    function = FUNCTIONS[name]
    f = nfuser.fuse(function)
    for length in LENGTHS[1:]:
        x = _rows(length)
        for n in (0, 1, 5, 9000):
            found = f(x, n)
            np.testing.assert_allclose(found, function(x, n), rtol=1e-6, atol=1e-6)


def test_what_is_reflected_is_read_forth_and_back() -> None:
    body = _body(lambda x: np.pad(x, ((0, 0), (2, 3)), mode="reflect") + 1, _rows(900))
    read = re.findall(r"load\(T0, ([^)]*)\)", body)
    assert read
    assert all(re.fullmatch(r"at(_\d+)? [+-] i\d", place) for place in read)
    assert {place.split()[1] for place in read} == {"+", "-"}


def test_a_seam_that_moves_inside_the_loop_is_none() -> None:
    size, lane = (
        scalar_symbols.size(0, 0),
        scalar_symbols.loop_index(1, scalar_symbols.size(0, 1)),
    )
    inner, buffer = scalar_symbols.loop_index(2, 3), Buffer(DType.F32, None, "out")
    zero = Number(0.0, DType.F32)
    for shift, pieces in ((inner, 1), (sc.const(3), 2)):
        stores = (
            If(scalar_functions.less(lane + shift, size), (Store(buffer, lane, zero),)),
        )
        loop = For(lane, lane.extent, (For(inner, inner.extent, stores),))
        assert len(at_seams(loop, LoopCounter(3))) == pieces
