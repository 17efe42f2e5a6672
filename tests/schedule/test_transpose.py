# SPDX-License-Identifier: Apache-2.0
"""Tiles through shared memory: when, how large, and right however they are drawn."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfuser.compiler.ir.scalars.scalar_walk import evaluate_all
from nfuser.compiler.lower.kernel.text import text as kernel_text
from nfuser.compiler.lower.lowering import lower
from nfuser.compiler.schedule.heuristics.cuda import TransposeHeuristic
from nfuser.compiler.schedule.nest import Binding
from nfuser.compiler.schedule.pointwise import transpose
from nfuser.compiler.schedule.pointwise.flat_shape import flat_shape
from nfuser.compiler.schedule.printed import text
from nfuser.compiler.segment import Rejection
from tests.fuzz.arrays import build
from tests.schedule.run_schedule import Call

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.schedule.nest import Nest
    from nfuser.compiler.schedule.scheduled import Scheduled


def _array(*shape: int, dtype: str = "float32") -> Any:
    return build(dtype, shape, "small")


def _turned_sum(a: Any, b: Any) -> Any:
    return a + b.T


def _to_last(x: Any, b: Any) -> Any:
    return np.maximum(x.transpose(0, 2, 3, 1) + b, 0).copy("C")


def _both_ways(x: Any, y: Any) -> Any:
    return x + y.T, x.T - y


def _sums(*arrays: Any) -> Any:
    half = len(arrays) // 2
    total = arrays[0]
    for direct, turned in zip(arrays[:half], arrays[half:], strict=True):
        total = total + direct * turned.T
    return total


CALLS: dict[str, Callable[[], Call]] = {
    "turned_sum": lambda: Call(_turned_sum, _array(64, 72), _array(72, 64)),
    "images": lambda: Call(
        _to_last,
        _array(2, 64, 5, 13, dtype="float16"),
        _array(64, dtype="float16"),
    ),
    "both_ways": lambda: Call(
        _both_ways, _array(35, 64, dtype="float64"), _array(64, 35, dtype="float64")
    ),
    "bytes": lambda: Call(
        _turned_sum, _array(128, 64, dtype="uint8"), _array(64, 128, dtype="uint8")
    ),
}


def _scheduled(name: str) -> tuple[Call, Scheduled]:
    call = CALLS[name]()
    scheduled = call.apply(call.heuristic())
    assert isinstance(scheduled.heuristic, TransposeHeuristic)
    return call, scheduled


@pytest.mark.parametrize("name", CALLS)
def test_the_text_of(name: str, golden: Callable[[str], None]) -> None:
    _, scheduled = _scheduled(name)
    lines = (text(scheduled) + kernel_text(lower(scheduled))).splitlines()
    golden("".join(line.split("  # ")[0] + "\n" for line in lines))


@pytest.mark.parametrize("name", CALLS)
def test_the_chosen_tiles(name: str) -> None:
    call, scheduled = _scheduled(name)
    call.check(scheduled)


def _decision(function: Callable[..., Any], *arrays: Any) -> str:
    call = Call(function, *arrays)
    chosen = transpose.choose(call.fusion, flat_shape(call.fusion, call.facts))
    is_tiled = isinstance(call.heuristic(), TransposeHeuristic)
    assert is_tiled == isinstance(chosen, TransposeHeuristic)
    return chosen.reason if isinstance(chosen, Rejection) else str(chosen)


ONE_AXIS = "all accesses run along one axis"
SHORT = "rows so short share their sectors"
EMPTY = "its tiles would be mostly empty"


def test_tiles_where_accesses_lie_along_different_axes() -> None:
    x, y = _array(96, 64), _array(64, 96)
    tiled = "transpose(tile=64x64, widths=4x4, threads=256, staged=1)"
    assert _decision(_turned_sum, x, y) == tiled
    assert _decision(lambda x: (x.T * 2).copy("C"), x) == tiled
    assert _decision(lambda x, y: x[1:] + y.T[1:], x, y).startswith("transpose")
    assert _decision(lambda x, b: x + b[:, None], x, y[0]) == ONE_AXIS
    assert _decision(lambda x: x.transpose(1, 0, 2).copy("C"), _array(8, 9, 64)) == (
        ONE_AXIS
    )


def test_tiles_have_the_form_of_their_axes() -> None:
    def decision(along: int, across: int) -> str:
        return _decision(_turned_sum, _array(across, along), _array(along, across))

    assert decision(33, 33) == EMPTY
    assert decision(4000, 129).startswith("transpose(tile=64x64")
    assert decision(4000, 24).startswith("transpose(tile=64x32")
    assert decision(4000, 9).startswith("transpose(tile=128x16")
    assert decision(4000, 5).startswith("transpose(tile=256x8")
    assert decision(4000, 4) == ONE_AXIS
    # A block of the flat loop comes to the rest of its sectors itself.
    assert decision(16, 4000) == decision(32, 33) == SHORT


def test_what_is_read_under_a_guard_stays_where_it_is() -> None:
    x, y = _array(64, 64), _array(64, 64)
    joined = _decision(lambda x, y: np.concatenate([x, y.T]), x, y)
    assert joined == ONE_AXIS
    padded = _decision(lambda x, y: x + np.pad(y.T, 1)[1:-1, :-2], x, y)
    assert padded == ONE_AXIS


def test_shared_memory_bounds_the_tiles() -> None:
    many = [_array(64, 64) for _ in range(24)]
    assert "tile=64x64, widths=4x4, threads=256, staged=2" in _decision(
        _sums, *many[:4]
    )
    assert "tile=32x32, widths=4x4, threads=256, staged=3" in _decision(
        _sums, *many[:6]
    )
    assert "staged=9" in _decision(_sums, *many)
    call = Call(_sums, *many)
    call.check(call.apply(call.heuristic()))


def test_packets_are_as_wide_as_each_side_allows() -> None:
    def widths(a: tuple[int, int], dtype: str, other: str = "") -> str:
        x, y = _array(*a, dtype=dtype), _array(*a[::-1], dtype=other or dtype)
        return _decision(_turned_sum, x, y).split("widths=")[1].split(",")[0]

    assert widths((64, 64), "float16") == "8x8"
    assert widths((64, 64), "float64") == "2x2"
    assert widths((63, 64), "float32") == "4x1"
    assert widths((64, 63), "float32") == "1x4"
    assert widths((64, 64), "float32", "float16") == "4x8"


def _turned(x: Any) -> Any:
    return (x.T * 2).copy("C")


def _turned_sine(x: Any) -> Any:
    return np.sin(np.sin(np.sin(x.T))).copy("C")


def test_moves_of_single_elements_leave_registers_to_all_threads() -> None:
    def threads(
        function: Callable[..., Any], *shapes: tuple[int, int], dtype: str = "float16"
    ) -> int:
        arrays = (_array(*shape, dtype=dtype) for shape in shapes)
        made = Call(function, *arrays).heuristic()
        assert isinstance(made, TransposeHeuristic)
        return made.blocks * made.threads

    assert threads(_turned, (64, 63)) == 2048
    assert threads(_turned, (64, 63), dtype="float32") == 1024  # bytes enough
    assert threads(_turned, (63, 65)) == 1024  # written one by one
    assert threads(_turned, (64, 64)) == 0  # as many as their packets leave
    assert threads(_turned_sum, (64, 63), (63, 64)) == 1024
    assert threads(_turned_sine, (64, 63)) == 1024


def test_calls_of_one_layout_have_equal_heuristics() -> None:
    sizes = [(64, 96), (1000, 4000), (4000, 68)]
    found = [
        Call(_turned_sum, _array(a, b), _array(b, a)).heuristic() for a, b in sizes
    ]
    assert all(h == found[0] for h in found)


def _worst_conflict(nest: Nest, place: Scalar, itemsize: int, threads: int) -> int:
    """Return how many words of one bank a warp asks for at once, at most."""
    thread = nest.leaf(Binding.THREAD_X)
    item, lane = nest.leaf(Binding.UNROLLED), nest.lane
    assert thread is not None
    assert item is not None
    worst = 0
    for warp in range(0, threads, 32):
        # The hardware serves 8-byte accesses by half warps.
        for first in range(warp, warp + 32, 16 if itemsize == 8 else 32):
            count = 16 if itemsize == 8 else 32
            words: set[int] = set()
            for k in range(first, first + count):
                at: dict[Scalar, int] = {thread.index: k, item.index: 0}
                if lane is not None:
                    at[lane.index] = 0
                (slot,) = evaluate_all([place], at)
                byte = slot * max(itemsize, 4)
                words.update(byte // 4 + w for w in range(max(itemsize // 4, 1)))
            banks = [word % 32 for word in words]
            worst = max(worst, *(banks.count(b) for b in set(banks)))
    return worst


@pytest.mark.parametrize(
    "dtype", ["uint8", "float16", "int16", "float32", "int64", "float64"]
)
@pytest.mark.parametrize(
    "sizes", [(64, 64), (63, 61), (63, 64), (128, 63), (128, 128), (8, 512)]
)
def test_a_warp_meets_each_bank_once(dtype: str, sizes: tuple[int, int]) -> None:
    call = Call(
        _turned_sum, _array(*sizes, dtype=dtype), _array(*sizes[::-1], dtype=dtype)
    )
    scheduled = call.apply(call.heuristic())
    heuristic, tile = scheduled.heuristic, scheduled.tile
    assert tile is not None
    itemsize = call.fusion.outputs[0].dtype.compute.itemsize
    for nest, place in ((scheduled.nest, tile.place), (tile.nest, tile.other_place)):
        worst = _worst_conflict(nest, place, itemsize, heuristic.most_threads)
        assert worst == 1


SHAPES: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "sum": (_turned_sum, [(48, 52), (52, 48)]),
    "odd": (_turned_sum, [(49, 53), (53, 49)]),
    "both ways": (_both_ways, [(49, 56), (56, 49)]),
    "three": (
        lambda x, y, z: x * y.transpose(2, 0, 1) - z.transpose(2, 0, 1),
        [(52, 5, 10), (5, 10, 52), (5, 10, 52)],
    ),
    "moved": (lambda x, y: x[:, 1:] * y.T[:, 2:], [(49, 56), (57, 49)]),
}


@settings(max_examples=25)
@pytest.mark.parametrize("name", SHAPES)
@given(data=st.data())
def test_tiles_of_any_size(name: str, data: st.DataObject) -> None:
    function, shapes = SHAPES[name]
    rng = np.random.default_rng(0)
    call = Call(function, *(rng.standard_normal(s).astype("f4") for s in shapes))
    chosen = call.heuristic()
    assert isinstance(chosen, TransposeHeuristic)
    sides = st.sampled_from([4, 8, 16, 32])
    tile = (data.draw(sides), data.draw(sides))
    # Narrower packets than the chosen ones divide and are aligned too.
    widths = tuple(data.draw(st.sampled_from([1, w])) for w in chosen.widths)
    room = tile[0] * tile[1] // max(widths)
    drawn = replace(
        chosen,
        tile=tile,
        widths=widths,
        threads=min(data.draw(st.sampled_from([4, 32, 128])), room),
        wide_index=data.draw(st.booleans()),
    )
    call.check(call.apply(drawn))
