# SPDX-License-Identifier: Apache-2.0
"""What the strides of a call allow: patterns, one loop for several, packets."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nfuser
from nfuser.compiler.domains.space import Space, find_space
from nfuser.compiler.ir.scalars.scalar_walk import evaluate_all
from nfuser.compiler.schedule.facts.facts import accesses
from nfuser.compiler.schedule.facts.layout import (
    StrideStep,
    grouped,
    ordered,
    packet_width,
    pattern,
    strides_of,
)
from nfuser.compiler.schedule.facts.memory import patterns, strides
from nfuser.compiler.schedule.heuristics.cuda import CudaPointwise, CudaReduction
from nfuser.compiler.schedule.pointwise.pointwise import PointwiseScheduler
from nfuser.compiler.schedule.printed import text
from nfuser.compiler.schedule.reduction.reduction import Reduction
from nfuser.compiler.schedule.scan.scan import Scans
from tests.schedule.run_schedule import Call

if TYPE_CHECKING:
    from collections.abc import Callable


def _array(*shape: int, dtype: Any = np.float32) -> Any:
    return np.ones(shape, dtype)


def _kinds(array: Any) -> list[str]:
    call = Call(lambda x: x + 1, array)
    steps = pattern(call.fusion.arguments[0].result, call.facts)
    return [s.kind + (str(s.inner) if s.inner >= 0 else "") for s in steps]


def test_strides_are_known_by_their_pattern() -> None:
    assert _kinds(_array(4, 5, 6)) == ["chain1", "chain2", "unit"]
    assert _kinds(_array(4, 5, 6).transpose(2, 0, 1)) == ["unit", "chain2", "chain0"]
    assert _kinds(_array(4, 5, 12)[:, :, ::2]) == ["chain1", "chain2", "free"]
    assert _kinds(_array(4, 9)[:, :5]) == ["free", "unit"]
    assert _kinds(np.broadcast_to(_array(5), (4, 5))) == ["zero", "unit"]
    assert _kinds(_array(4, 5)[::-1, ::-1]) == ["free", "free"]
    assert _kinds(_array(4, 1, 5)) == ["chain2", "zero", "unit"]


def _free_strides(array: Any) -> int:
    fused = nfuser.fuse(lambda z: np.abs(z))
    np.testing.assert_allclose(fused(array), np.abs(array), rtol=1e-6)
    (kernel,) = fused.kernels(array)
    return len(set(re.findall(r"\bs\d+\b", kernel.source)))


def test_parts_of_complex_numbers_that_follow_each_other_are_two_apart() -> None:
    z = (np.arange(12) + 1j).astype(np.complex64).reshape(3, 4)
    assert _free_strides(z) == 0
    assert _free_strides(z.T) == 0
    assert _free_strides(z[:, ::2]) == 2
    assert _free_strides(z[:, :1]) == 2
    # The same steps through a real array stay parameters: they may be others.
    assert _kinds(_array(4, 2)[:, 0]) == ["free"]


@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    data=st.data(),
)
def test_a_pattern_gives_the_strides_back(
    shape: list[int], data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(shape))))
    cut = data.draw(st.integers(0, 2))
    whole = np.ones([n + cut for n in shape], np.float32)
    array = whole[tuple(slice(n) for n in shape)].transpose(order)
    call = Call(lambda x: x + 1, array)
    tensor = call.fusion.arguments[0].result
    steps = pattern(tensor, call.facts)
    free = {
        x: s
        for x, s, step in zip(
            strides_of(tensor, 0, [StrideStep("free")] * tensor.ndim),
            call.facts.layouts[tensor].strides,
            steps,
            strict=True,
        )
        if step.kind == "free"
    }
    values = {**call.facts.sizes, **free}
    described = evaluate_all(strides_of(tensor, 0, steps), values)
    actual = [s // array.itemsize for s in array.strides]
    pairs = zip(described, actual, array.shape, strict=True)
    assert all(a == b or n == 1 for a, b, n in pairs)


def _steps(call: Call) -> Any:
    return strides(call.fusion, patterns(call.fusion, call.facts))


def _groups(function: Callable[..., Any], *arrays: Any) -> tuple[tuple[int, ...], ...]:
    call = Call(function, *arrays)
    space = find_space(call.fusion)
    assert isinstance(space, Space)
    found = accesses(call.fusion, call.facts, _steps(call))
    return grouped(ordered(space.kept, found, call.facts), found, call.facts)


def test_contiguous_axes_run_as_one_loop() -> None:
    x = _array(3, 4, 5)
    assert _groups(lambda x: x + 1, x) == ((0, 1, 2),)
    assert _groups(lambda x, b: x + b, x, _array(5)) == ((0, 1), (2,))
    assert _groups(lambda x, b: x + b, x, _array(4, 5)) == ((0,), (1, 2))
    assert _groups(lambda x: x + 1, _array(3, 8, 5)[:, ::2]) == ((0, 1), (2,))


def _width(function: Callable[..., Any], *arrays: Any) -> int:
    heuristic = Call(function, *arrays).heuristic()
    assert isinstance(heuristic, CudaPointwise | CudaReduction)
    return heuristic.width


def test_packets_fill_16_bytes_where_everything_is_aligned() -> None:
    def double(x: Any) -> Any:
        return x * 2

    assert _width(double, _array(16, 64)) == 4
    assert _width(double, _array(16, 64, dtype=np.float64)) == 2
    assert _width(double, _array(16, 64, dtype=np.float16)) == 8
    assert _width(double, _array(16, 66)[:, :64]) == 2
    assert _width(double, _array(3, 7)) == 1
    assert _width(lambda x: x[:, ::-1] + 1, _array(16, 64)) in (1, 4)


def test_what_lies_askew_does_not_narrow_the_packets_of_the_rest() -> None:
    call = Call(lambda x: x[:, 1:] + 1, _array(16, 65))
    heuristic = call.heuristic()
    assert heuristic.width == 4
    assert {number for number, _ in heuristic.packed} == {1}


@pytest.mark.parametrize("columns", [2, 3, 4, 6, 8, 12])
def test_a_packet_divides_the_row(columns: int) -> None:
    width = _width(lambda x, b: x + b, _array(9, columns), _array(columns))
    assert columns % width == 0


def test_a_packet_is_no_wider_than_asked() -> None:
    call = Call(lambda x: x + 1, _array(16, 64))
    space = find_space(call.fusion)
    assert isinstance(space, Space)
    found = accesses(call.fusion, call.facts, _steps(call))
    widths = [packet_width(space.kept, found, call.facts, n) for n in (4, 8, 16)]
    assert widths == [1, 2, 4]


SHAPES: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "pointwise": (lambda x: x * 2, [(16, 64), (3, 400), (1000, 8)]),
    "rows": (lambda x: x.sum(1), [(512, 64), (999, 64)]),
    "softmax": (
        lambda x: np.exp(x - x.max(1, keepdims=True)),
        [(512, 64), (7000, 64)],
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_calls_of_one_form_have_equal_heuristics(name: str) -> None:
    function, shapes = SHAPES[name]
    # Groups name loops by number, patterns axes: nothing of one call's own.
    found = [Call(function, _array(*shape)).heuristic() for shape in shapes]
    assert len({hash(h) for h in found}) == 1
    assert all(h == found[0] for h in found)


def test_a_scheduler_says_what_it_will_not_take() -> None:
    plain = Call(lambda x: x + 1, _array(4, 5)).fusion
    folding = Call(lambda x: x.sum(1), _array(4, 5)).fusion
    assert PointwiseScheduler().can_schedule(plain) is None
    assert Reduction().can_schedule(folding) is None
    refused = PointwiseScheduler().can_schedule(folding)
    assert refused is not None
    assert (str(refused), refused.tensor) == (
        "pointwise: it reduces",
        folding.reductions[0].result,
    )
    assert str(Reduction().can_schedule(plain)) == "reduction: it does not reduce"
    scanning = Call(lambda x: np.cumsum(x, 0) + x, _array(4, 5)).fusion
    assert Scans().can_schedule(scanning) is None
    assert str(Scans().can_schedule(plain)) == "scan: it does not scan"
    assert str(PointwiseScheduler().can_schedule(scanning)) == "pointwise: it scans"


def _scheduled_text(function: Callable[..., Any], *arrays: Any) -> str:
    call = Call(function, *arrays)
    lines = text(call.apply(call.heuristic())).splitlines()
    return "".join(line.split("  # ")[0] + "\n" for line in lines)


def test_the_text_of_a_pointwise_schedule(golden: Callable[[str], None]) -> None:
    golden(_scheduled_text(lambda x, b: x * b, _array(16, 64), _array(64)))


def test_the_text_of_a_reduction_schedule(golden: Callable[[str], None]) -> None:
    golden(_scheduled_text(lambda x: (x.mean(1), x.var(1)), _array(16, 64)))


def test_the_text_of_a_scan_schedule(golden: Callable[[str], None]) -> None:
    golden(_scheduled_text(lambda x: np.cumsum(x, 1) * 2, _array(64, 512)))
