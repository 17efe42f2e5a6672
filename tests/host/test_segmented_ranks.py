# SPDX-License-Identifier: Apache-2.0
"""Fusions are cut where shardings change, and ranks exchange there."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser.numpy as nn
from nfuser.compiler.schedule.registry import find_scheduler
from nfuser.compiler.segment import REPLICATED, Sharding, Shardings, segment
from nfuser.compiler.segment.segmented import text as segments_text
from nfuser.errors import ArgumentError, UnsupportedError
from nfuser.execution.host.mesh.lower_segments import lower_segments
from tests.hand_built import traced
from tests.host.spread import array, text
from tests.host.spread_fusions import FusedCase, random_fused

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS, COLUMNS = Sharding(axis=0), Sharding(axis=1)


def _layer_norm(x: Any, w: Any, b: Any) -> Any:
    away = x - x.mean(axis=-1, keepdims=True)
    spread = np.sqrt((away * away).mean(axis=-1, keepdims=True) + 1e-5)
    return away / spread * w + b


def test_rows_of_a_layer_norm_are_one_launch() -> None:
    case = FusedCase(_layer_norm, [array(8, 12), array(12), array(12)], {0: (ROWS,)})
    assert len(case.lowered.body) == 1
    case.check()


def test_a_layer_norm_over_a_sharded_axis(golden: Callable[[str], None]) -> None:
    arrays = [array(8, 12), array(12), array(12)]
    case = FusedCase(_layer_norm, arrays, {0: (COLUMNS,), 1: (ROWS,)})
    assert case.exchanges() == ["allreduce_sum"] * 2
    cuts = re.sub(
        r"  # \S+:\d+$", "", segments_text(case.segmented), flags=re.MULTILINE
    )
    golden(cuts + "\n" + text(case.lowered))
    case.check()


@pytest.mark.parametrize(
    ("x", "w", "kinds"),
    [
        (ROWS, REPLICATED, ["allreduce_sum"]),
        (COLUMNS, ROWS, ["allreduce_sum"]),
        (REPLICATED, COLUMNS, []),
    ],
)
def test_a_product_and_the_sum_of_its_columns(
    x: Sharding, w: Sharding, kinds: list[str]
) -> None:
    arrays = [array(8, 12), array(12, 16), array(16)]
    case = FusedCase(
        lambda x, w, b: np.tanh(x @ w + b).sum(axis=0), arrays, {0: (x,), 1: (w,)}
    )
    assert case.exchanges() == kinds
    case.check()


def test_a_mesh_exchanges_along_what_is_folded() -> None:
    arrays = [array(8, 12), array(12), array(12)]
    layouts = {0: (ROWS, COLUMNS), 1: (REPLICATED, ROWS)}
    case = FusedCase(_layer_norm, arrays, layouts, mesh=(2, 3))
    assert case.exchanges() == ["allreduce_sum"] * 2
    case.check()


def test_outputs_and_what_lies_between_lie_as_bound() -> None:
    arrays = [array(8, 12)]
    outputs = {0: (ROWS,), 1: (COLUMNS,)}
    case = FusedCase(lambda x: (x.T + 1, x * 2), arrays, {0: (ROWS,)}, outputs)
    assert case.exchanges() == ["all_to_all"] * 2
    case.check()


def test_sizes_are_those_of_the_whole() -> None:
    case = FusedCase(
        lambda x: x[:, x.shape[0] // 2 :] * x.shape[0] + nn.arange(x.shape[0]).sum(),
        [array(8, 12)],
        {0: (ROWS,)},
    )
    assert case.exchanges() == []
    case.check()


def test_parts_of_sums_are_not_divided_by_what_may_be_zero() -> None:
    x, y = np.array([[5, 1], [-3, 1]], np.float32), np.array([0, 2], np.float32)
    case = FusedCase(lambda x, y: x.sum(axis=0) / y, [x, y], {0: (ROWS,)}, mesh=(2,))
    case.check()


@pytest.mark.parametrize("seed", [2, 5, 11, 17])
def test_random_fusions(seed: int) -> None:
    random_fused(seed).check(1e-9)


def test_what_cannot_be_spread_is_refused() -> None:
    fusion = traced(lambda x, s: x * s, array(8, 12), 2.0)
    x = fusion.arguments[0].result
    with pytest.raises(ArgumentError, match="a sharding for each of 2 dimensions"):
        segment(fusion, find_scheduler, shardings=Shardings((2, 2), {x: (ROWS,)}))
    with pytest.raises(ArgumentError, match="at least one rank in each dimension"):
        segment(fusion, find_scheduler, shardings=Shardings((), {}))
    stranger = traced(lambda x: x, array(8, 12)).arguments[0].result
    with pytest.raises(ArgumentError, match="name a tensor that is not in"):
        segment(fusion, find_scheduler, shardings=Shardings((2,), {stranger: (ROWS,)}))
    with pytest.raises(ArgumentError, match="expected a fusion cut with shardings"):
        lower_segments(segment(fusion, find_scheduler))
    cut = segment(fusion, find_scheduler, shardings=Shardings((2,), {x: (ROWS,)}))
    with pytest.raises(UnsupportedError, match="by value: not spread; pass an array"):
        lower_segments(cut)
