# SPDX-License-Identifier: Apache-2.0
"""Where values lie is said by the schedule, and lowering does what is said."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from nfuser.compiler.ir.expr import results
from nfuser.compiler.ir.text import Names, expr_text
from nfuser.compiler.lower.kernel.kernel_ir import CopyPacket, LoadPacket
from nfuser.compiler.lower.kernel.walk import every
from nfuser.compiler.lower.lowering import lower
from nfuser.compiler.schedule.facts.target import CPU, H200
from nfuser.compiler.schedule.heuristics.cuda import Geometry
from nfuser.compiler.schedule.placement.placement import Placement, Route, Where
from nfuser.compiler.schedule.printed import text
from nfuser.compiler.schedule.scheduled import Scheduled
from tests.schedule.run_schedule import Call

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.schedule.facts.target import Target

X = np.linspace(-1, 1, 480, dtype=np.float32).reshape(12, 40)
SHARED: dict[str, Any] = {
    "steps": 2,
    "known": Geometry(fold=32, keep=1, splits=0, rounds=0),
}


def _softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _residual(x: Any, w: Any) -> Any:
    return (x - x.mean(axis=-1, keepdims=True)) * w, x.std(axis=-1)


def _scheduled(
    function: Callable[..., Any],
    *arrays: Any,
    target: Target = H200,
    **changes: Any,
) -> tuple[Call, Scheduled]:
    call = Call(function, *arrays)
    facts = replace(call.facts, target=target)
    heuristic = call.scheduler.heuristic(call.fusion, facts)
    chosen = replace(heuristic, **changes)
    made = call.scheduler.apply(call.fusion, chosen, target)
    assert isinstance(made, Scheduled)
    return call, made


def _placed(scheduled: Scheduled) -> dict[str, str]:
    """Return where each operation's result lies."""
    of = {t: e for e in scheduled.fusion.exprs for t in results(e)}
    return {
        expr_text(of[tensor], Names()).partition("(")[0] or "argument": str(placement)
        for (tensor, _), placement in scheduled.placements.items()
    }


def test_a_gpu_keeps_what_two_passes_need_in_registers() -> None:
    _, scheduled = _scheduled(_softmax, X)
    assert set(_placed(scheduled).values()) == {"in registers"}
    assert "exp" in _placed(scheduled)
    assert len(scheduled.placements) == 2  # the argument, and the exponentials


def test_a_cpu_keeps_only_what_was_dear() -> None:
    _, scheduled = _scheduled(_softmax, X, target=CPU)
    assert _placed(scheduled) == {"exp": "on the stack"}


def test_rows_that_blocks_share_are_copied_ahead_and_meet_in_global_memory() -> None:
    _, scheduled = _scheduled(_softmax, X, **SHARED)
    found = _placed(scheduled)
    assert found["exp"] == "in registers"
    assert found["max"] == found["sum"] == "in global memory"
    assert "in registers, copied ahead" in found.values()
    assert not scheduled.left_out


def test_what_shared_memory_has_no_room_for_is_left_out_and_said() -> None:
    tight = replace(H200, shared_bytes=9500)
    call, scheduled = _scheduled(_softmax, X, target=tight, **SHARED)
    (left,) = scheduled.left_out
    assert left.placement == Placement(Where.SHARED, Route.AHEAD)
    said = text(scheduled).splitlines()[-1].strip()
    assert said.startswith("left out: T0 in shared memory, copied ahead: ")
    assert said.endswith(" bytes, of which a block has 9500")
    kernel = lower(scheduled)
    kinds = {type(x) for x in every(kernel.body)}
    assert LoadPacket in kinds
    assert CopyPacket not in kinds
    call.check(scheduled)


def test_long_rows_are_copied_to_shared_memory_as_they_are_stored() -> None:
    _, scheduled = _scheduled(_softmax, X, steps=4, as_stored=True)
    assert set(_placed(scheduled).values()) == {"in shared memory, copied"}


def test_what_crosses_a_tile_is_laid_down_in_shared_memory() -> None:
    square = np.ones((256, 256), np.float32)
    _, scheduled = _scheduled(lambda x, y: x + y.T, square, square)
    (placement,) = set(scheduled.placements.values())
    assert placement == Placement(Where.SHARED, Route.LAID)


def test_maps_place_nothing() -> None:
    _, scheduled = _scheduled(lambda x: x * 2 + 1, X)
    assert not scheduled.placements


@pytest.mark.parametrize("kept", [0, 1])
@pytest.mark.parametrize("arrays", [(X,), (X, X[0])], ids=["softmax", "residual"])
def test_what_is_not_placed_is_computed_again(arrays: Any, kept: int) -> None:
    call, scheduled = _scheduled(_softmax if len(arrays) == 1 else _residual, *arrays)
    fewer = dict(list(scheduled.placements.items())[:kept])
    loads = [
        sum(isinstance(x, LoadPacket) for x in every(lower(s).body))
        for s in (scheduled, replace(scheduled, placements=fewer))
    ]
    assert loads[1] >= loads[0]
    call.check(replace(scheduled, placements=fewer))
