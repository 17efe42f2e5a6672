# SPDX-License-Identifier: Apache-2.0
"""Any legal schedule of a fusion gives what NumPy gives for the unscheduled one."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfuser.compiler.schedule.heuristics.cuda import (
    CudaPointwise,
    CudaReduction,
    Geometry,
)
from nfuser.compiler.schedule.heuristics.heuristics import ScanHeuristic
from nfuser.compiler.schedule.nest import Binding, LastTile, NestBuilder
from nfuser.compiler.schedule.reduction.folding import is_single_pass
from nfuser.random import of
from tests.schedule.run_schedule import Call

if TYPE_CHECKING:
    from nfuser.compiler.schedule.facts.layout import Groups
    from nfuser.compiler.schedule.nest import LoopAxis, Nest
    from nfuser.compiler.schedule.scheduled import Scheduled


Draw = Callable[..., Any]


def _softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _normalised(x: Any, w: Any) -> Any:
    centred = x - x.mean(axis=1, keepdims=True)
    spread = x.var(axis=1, keepdims=True)
    return centred / np.sqrt(spread + 1e-5) * w, spread[:, 0]


def _rotated(x: Any, c: Any) -> Any:
    h = x.shape[-1] // 2
    return x * c + np.concatenate([-x[..., h:], x[..., :h]], axis=-1)


ARRAYS = {
    "matrix": (12, 40),
    "odd": (7, 45),
    "tall": (45, 8),
    "row": (40,),
    "column": (12, 1),
    "eight": (8,),
    "cube": (4, 5, 8),
}
POINTWISE: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "stretched": (lambda x, b, c: x * b + c, ("matrix", "row", "column")),
    "turned": (lambda x: x.T * 2 - 1, ("matrix",)),
    "mirrored": (lambda x: (x[:, ::-1] + x, -x), ("odd",)),
    "permuted": (lambda x: x.transpose(2, 0, 1) + 1, ("cube",)),
    "sliced": (lambda x: x[1:, ::2] * x[:-1, 1::2], ("matrix",)),
    "rotated": (_rotated, ("matrix", "row")),
    "rotated oddly": (_rotated, ("odd", "odd")),
    "noisy": (lambda x: x + of(7).random(x.shape, np.float32), ("odd",)),
    "noisy and turned": (lambda x: x.T * of(7).random(x.shape[::-1]), ("matrix",)),
    "rolled": (lambda x: np.concatenate([x[5:], x[:5]]) - x, ("matrix",)),
}
REDUCING: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "softmax": (_softmax, ("matrix",)),
    "softmax of odd rows": (_softmax, ("odd",)),
    "noise": (lambda x: (x + of(7).random(x.shape)).max(1), ("matrix",)),
    "norm": (_normalised, ("matrix", "row")),
    "columns": (lambda x: (x.sum(0), x.max(0)), ("matrix",)),
    "columns of tall": (lambda x: x / x.sum(0), ("tall",)),
    "everything": (lambda x: (x.sum(), x.max(), x.argmin()), ("odd",)),
    "middle": (lambda x: x.sum(1), ("cube",)),
    "outside": (lambda x: (x.mean((0, 2)), x.var((0, 2))), ("cube",)),
    "places": (lambda x: (x.argmax(1), x.min(1)), ("odd",)),
    "truth": (lambda x: ((x > 1).any(1), (x > -3).all(1)), ("odd",)),
}


SCANNING: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "running sums": (lambda x: np.cumsum(x, 1), ("matrix",)),
    "of odd rows": (lambda x: np.cumsum(x, 1) * 2 + x, ("odd",)),
    "of columns": (lambda x: np.cumsum(x, 0), ("matrix",)),
    "of tall columns": (lambda x, b: np.exp(x).cumsum(0) * b, ("tall", "eight")),
    "in the middle": (lambda x: np.maximum.accumulate(x, 1), ("cube",)),
    "of all": (lambda x: np.minimum.accumulate(x.reshape(-1)) + 1, ("odd",)),
    "of sums": (lambda x: (np.cumsum(np.cumsum(x, 1) - x, 1) / 40, -x), ("matrix",)),
}


def _call(case: tuple[Callable[..., Any], tuple[str, ...]]) -> Call:
    rng = np.random.default_rng(0)
    function, names = case
    shapes = (ARRAYS[name] for name in names)
    return Call(function, *(rng.standard_normal(s).astype(np.float32) for s in shapes))


def _cut(draw: Draw, groups: Groups) -> Groups:
    """Cut some groups in two; what steps as one loop also runs as two."""
    pieces: list[tuple[int, ...]] = []
    for group in groups:
        at = draw(st.integers(0, len(group) - 1))
        pieces += [group[:at], group[at:]] if at else [group]
    return tuple(pieces)


def _width(draw: Draw, widest: int) -> int:
    return draw(st.sampled_from([w for w in (1, 2, 4, 8) if w <= widest]))


@settings(max_examples=25)
@pytest.mark.parametrize("name", POINTWISE)
@given(data=st.data())
def test_pointwise_heuristics(name: str, data: st.DataObject) -> None:
    call = _call(POINTWISE[name])
    chosen = call.heuristic()
    assert isinstance(chosen, CudaPointwise)
    groups = _cut(data.draw, chosen.groups)
    is_whole = groups[-1] == chosen.groups[-1]
    threads = data.draw(st.sampled_from([1, 3, 32, 100, 256, 1024]))
    items, shared = data.draw(st.sampled_from([1, 2, 3])), -1
    if len(groups) > 1 and data.draw(st.booleans()):
        shared = data.draw(st.integers(0, len(groups) - 2))
        extent = prod(call.size(k) for k in groups[shared])
        items = data.draw(st.sampled_from([n for n in (1, 2, 3) if extent % n == 0]))
    drawn = replace(
        chosen,
        groups=groups,
        items=items,
        shared=shared,
        width=_width(data.draw, chosen.width) if is_whole else 1,
        threads=threads,
        wide_index=data.draw(st.booleans()),
    )
    call.check(call.apply(drawn))


THREADS = (Binding.THREAD_X, Binding.THREAD_Y)
BLOCKS = (Binding.BLOCK_X, Binding.BLOCK_Y)


def _drawn_nest(draw: Draw, scheduled: Scheduled) -> Nest:
    """Loops in any order, merged to one or two, tiled over blocks and threads."""
    space = scheduled.space
    builder = NestBuilder(space.kept, ())
    loops = draw(st.permutations(space.kept))
    cut = draw(st.integers(0, len(loops) - 1))
    parts = [part for part in (loops[:cut], loops[cut:]) if part]
    tiles: list[LoopAxis] = []
    for part in parts:
        whole = builder.merge([builder.axis(loop) for loop in part])
        tail = draw(st.sampled_from([LastTile.GUARD, LastTile.CLAMP]))
        tiles += builder.split(whole, draw(st.integers(1, 16)), tail)
    for k, tile in enumerate(tiles):
        builder.bind(tile, (THREADS if k % 2 else BLOCKS)[k // 2])
    return builder.freeze()


@settings(max_examples=25)
@pytest.mark.parametrize("name", POINTWISE)
@given(data=st.data())
def test_pointwise_nests(name: str, data: st.DataObject) -> None:
    call = _call(POINTWISE[name])
    scheduled = call.apply(replace(call.heuristic(), width=1))
    call.check(replace(scheduled, nest=_drawn_nest(data.draw, scheduled)))


def _drawn_reduction(draw: Draw, call: Call) -> CudaReduction:
    chosen = call.heuristic()
    assert isinstance(chosen, CudaReduction)
    kept, reduced = _cut(draw, chosen.kept), _cut(draw, chosen.reduced)
    inner = draw(st.booleans()) or not kept
    is_whole = (reduced, chosen.reduced) if inner else (kept, chosen.kept)
    fits = inner == chosen.inner and is_whole[0][-1:] == is_whole[1][-1:]
    width = _width(draw, chosen.width) if fits else 1
    fold = draw(st.sampled_from([32, 64, 128] if inner else [1, 2, 8, 32]))
    if inner and draw(st.booleans()):
        fold = draw(st.sampled_from([1, 2, 4, 8, 16]))
    keep = 1 if fold > 32 else max(1, 128 // fold) if inner else 32
    length = call.facts.size(_length(call))
    splits = draw(st.sampled_from([1, 2, 5]))
    least = -(-length // (fold * splits * (width if inner else 1)))
    steps = draw(st.sampled_from([0, least, least + 3]))
    if not (steps or is_single_pass(call.fusion)):
        splits = 1
    rounds = draw(st.sampled_from([1, 2, 3])) if steps and splits > 1 else 1
    geometry = known = Geometry(fold, keep, splits, rounds)
    most = draw(st.sampled_from([0, fold * keep]))
    if most:  # the same numbers, given at the launch
        known = Geometry(0, 0, min(splits, 2) % 2, min(rounds, 2) % 2)
    return replace(
        chosen,
        kept=kept,
        reduced=reduced,
        inner=inner,
        width=width,
        steps=steps,
        known=known,
        wide_index=draw(st.booleans()),
        threads=most,
        flight=draw(st.sampled_from([1, 2, 4])),
        blocks=draw(st.sampled_from([0, 1])),
        geometry=geometry,
    )


def _length(call: Call) -> Any:
    reduce = call.fusion.reductions[0]
    total: Any = 1
    for axis in reduce.axes:
        total = reduce.source.shape[axis] * total
    return total


@settings(max_examples=20)
@pytest.mark.parametrize("name", REDUCING)
@given(data=st.data())
def test_reductions(name: str, data: st.DataObject) -> None:
    call = _call(REDUCING[name])
    call.check(call.apply(_drawn_reduction(data.draw, call)))


def _drawn_scan(draw: Draw, call: Call) -> ScanHeuristic:
    chosen = call.heuristic()
    assert isinstance(chosen, ScanHeuristic)
    kept = _cut(draw, chosen.kept)
    inner = draw(st.booleans()) or not kept
    fits = inner == chosen.inner and (inner or kept[-1:] == chosen.kept[-1:])
    width = _width(draw, chosen.width) if fits else 1
    fold = draw(st.sampled_from([1, 2, 8, 32, 64, 128] if inner else [1, 2, 4, 16]))
    keep = 1 if fold > 32 else max(1, 128 // fold) if inner else 32
    return replace(
        chosen,
        kept=kept,
        inner=inner,
        width=width,
        fold=fold,
        keep=keep,
        items=draw(st.sampled_from([1, 2, 3, 4])),
        wide_index=draw(st.booleans()),
    )


@settings(max_examples=20)
@pytest.mark.parametrize("name", SCANNING)
@given(data=st.data())
def test_scans(name: str, data: st.DataObject) -> None:
    call = _call(SCANNING[name])
    call.check(call.apply(_drawn_scan(data.draw, call)))


@pytest.mark.parametrize("name", [*POINTWISE, *REDUCING, *SCANNING])
def test_the_chosen_schedule(name: str) -> None:
    call = _call((POINTWISE | REDUCING | SCANNING)[name])
    call.check(call.apply(call.heuristic()))
