# SPDX-License-Identifier: Apache-2.0
"""Sums along both ways of an array: rows in one kernel, parts of columns after it."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.compiler.rewrite.passes import rewrite
from nfuser.compiler.schedule.registry import find_scheduler
from nfuser.compiler.segment import segment
from nfuser.compiler.segment.both_ways import LEAST, PARTS
from nfuser.config import override
from tests.hand_built import settle, traced

if TYPE_CHECKING:
    from collections.abc import Callable

RNG = np.random.default_rng(7)


def _centred(x: Any) -> Any:
    return x - x.mean(-1, keepdims=True)


def _scaled(x: Any, t: Any) -> Any:
    """Return the gradients of a scaled, shifted norm in its input, scale and shift."""
    y = _centred(x) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    across = tuple(range(x.ndim - 1))
    return t - (t * y).mean(-1, keepdims=True) * y, (t * y).sum(across), t.sum(across)


PAIRS: dict[str, Callable[..., Any]] = {
    "norm": _scaled,
    "both sums": lambda x, t: ((x * t).sum(0), (x + t).sum(-1)),
    "doubled": lambda x, t: (_centred(x), np.exp((x * t).sum(0)) * 2),
    "elementwise": lambda x, t: (np.tanh(x) * t, (np.tanh(x) + t).sum(0)),
    "of rows' results": lambda x, t: (_centred(x) * t).sum(0),
}
SHAPES = [(1, 1), (1, 40), (16, 7), (17, 33), (300, 64), (4097, 5), (20, 3000)]


def _check(function: Callable[..., Any], fused: Any, *arrays: Any) -> None:
    wide = (a.astype(np.float64) for a in arrays)
    exact: Any = function(*wide)
    found: Any = fused(*arrays)
    exact = exact if isinstance(exact, tuple) else (exact,)
    found = found if isinstance(found, tuple) else (found,)
    # Added up one after the other, f32 numbers lose a digit or two.
    bound = 1e-12 if arrays[0].dtype == np.float64 else 3e-5
    for got, want in zip(found, exact, strict=True):
        scale = max(np.abs(want).max(initial=0), np.sqrt(len(arrays[0])))
        np.testing.assert_allclose(got, want, rtol=0, atol=bound * scale)


def _arrays(shape: tuple[int, ...], dtype: str) -> list[Any]:
    return [RNG.standard_normal(shape).astype(dtype) for _ in range(2)]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", PAIRS)
def test_a_cpu_sums_both_ways(name: str, dtype: str) -> None:
    function = PAIRS[name]
    fused = nfuser.fuse(function)
    for shape in SHAPES:
        _check(function, fused, *_arrays(shape, dtype))


@pytest.mark.parametrize("name", PAIRS)
def test_so_does_a_gpu(name: str) -> None:
    function = PAIRS[name]
    fused = nfuser.fuse(function, backend="interpret")
    for shape in [(1, 40), (37, 33), (40, 64), (20, 1500)]:
        _check(function, fused, *_arrays(shape, "f4"))
    _check(function, fused, *_arrays((35, 48), "f8"))


def test_rows_that_fit_no_registers_add_to_memory() -> None:
    fused = nfuser.fuse(_scaled, backend="interpret")
    arrays = _arrays((18, 40_000), "f4")
    _check(_scaled, fused, *arrays)
    assert "looped" in fused.explain(*arrays).pieces[0].schedule


def test_sums_that_fit_no_registers_lie_in_shared_memory() -> None:
    fused = nfuser.fuse(_scaled, backend="interpret")
    arrays = _arrays((17, 16_384), "f4")
    _check(_scaled, fused, *arrays)
    assert "cuda.shared.array(0, float32)" in fused.kernels(*arrays)[0].source


def test_rows_are_copied_to_one_place_while_they_are_read_at_another() -> None:
    fused = nfuser.fuse(_scaled, backend="interpret")
    x, t = (a.astype(np.float16) for a in _arrays((35, 16_384), "f4"))
    dx, weight, shift = fused(x, t)
    schedule = str(fused.explain(x, t).pieces[0])
    assert "in shared memory, copied ahead in turn: x, t" in schedule
    assert "in registers, added up" in schedule
    (loop,) = fused.kernels(x, t)[0].source.split("while ")[1:]
    assert "load_packet" not in loop
    assert loop.index("copy_packet") < loop.index("take_packet")
    exact = _scaled(x.astype(np.float64), t.astype(np.float64))
    for got, want in zip((dx, weight, shift), exact, strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-3, atol=2e-3 * abs(want).max())


def test_axes_in_front_are_rows_together() -> None:
    arrays = _arrays((3, 7, 20), "f4")
    fused = nfuser.fuse(_scaled)
    _check(_scaled, fused, *arrays)
    assert len(fused.kernels(*arrays)) == 2


def test_columns_in_the_order_of_memory_are_right_too() -> None:
    x, t = _arrays((50, 20), "f4")
    fused = nfuser.fuse(_scaled)
    _check(_scaled, fused, np.asfortranarray(x), np.asfortranarray(t))
    _check(_scaled, fused, x[::-1], t[:, ::-1])


def test_halves_are_added_up_as_f32() -> None:
    x, t = (a.astype(np.float16) for a in _arrays((3000, 16), "f4"))
    fused = nfuser.fuse(_scaled)
    _, weight, shift = fused(x, t)
    assert weight.dtype == shift.dtype == np.float16
    wide = t.astype(np.float64).sum(0)
    np.testing.assert_allclose(shift, wide, rtol=2e-3, atol=1e-2)


def test_all_numbers_of_threads_give_the_same_bits() -> None:
    arrays = _arrays((2000, 60), "f4")
    with override(num_threads=1):
        one = nfuser.fuse(_scaled)(*arrays)
    with override(num_threads=7):
        many = nfuser.fuse(_scaled)(*arrays)
    for a, b in zip(one, many, strict=True):
        assert np.array_equal(a, b)


def test_the_two_are_two_kernels() -> None:
    arrays = _arrays((60, 20), "f4")
    for name, function in PAIRS.items():
        assert len(nfuser.fuse(function).kernels(*arrays)) == 2, name


def test_what_rows_need_of_columns_is_not_summed_on_the_way() -> None:
    def function(x: Any) -> Any:
        return (x - x.sum(0)).sum(1)

    fusion = rewrite(settle(traced(function, np.ones((6, 8))), (6, 8))).fusion
    segmented = segment(fusion, find_scheduler)
    assert not segmented.fusion.partial_sums
    assert len(segmented.segments) == 2


def test_parts_are_many_and_none_is_tiny() -> None:
    fused = nfuser.fuse(_scaled)
    for rows, parts in ((1, 1), (LEAST, 1), (LEAST + 1, 2), (1 << 14, PARTS)):
        written = fused.explain(*_arrays((rows, 4), "f4")).pieces[0].traffic.writes
        assert written == 4 * (rows * 4 + 2 * parts * 4)


def test_parts_are_not_cut_into_parts() -> None:
    def function(x: Any, y: Any) -> Any:
        rows = _centred(x)
        return rows, (rows * x).sum(0) * y.sum(1, keepdims=True), y.sum(0)

    arrays = _arrays((40, 40), "f8")
    _check(function, nfuser.fuse(function), *arrays)


def test_registers_keep_what_was_copied_if_they_have_room() -> None:
    fused = nfuser.fuse(_scaled, backend="interpret")
    arrays = _arrays((40, 1024), "f4")
    _check(_scaled, fused, *arrays)
    schedule = str(fused.explain(*arrays).pieces[0])
    assert "in registers, copied ahead in turn: x" in schedule
    (loop,) = fused.kernels(*arrays)[0].source.split("while ")[1:]
    assert "load_packet" not in loop
    assert loop.count("take_packet") == 2  # one for each array
