# SPDX-License-Identifier: Apache-2.0
"""Passes over host programs work in proportion to the program, not to its square."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

import nfuser
from nfuser.execution.host.mesh.lower_shardings import lower_shardings
from nfuser.execution.host.mesh.sharding import Sharding
from nfuser.execution.host.passes.assign_streams import assign_streams
from nfuser.execution.host.passes.lower_streams import lower_streams

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from _typeshed import TraceFunction

    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.execution.host.ir.host_ir import HostProgram

    Pass = Callable[[HostProgram, list[TensorView]], object]

PASSES: dict[str, Pass] = {
    "verify": lambda program, _: nfuser.HostIrEvaluator(program),
    "streams": lambda program, _: assign_streams(program),
    "stream axes": lambda p, terms: lower_streams(p, dict.fromkeys(terms[1:], 0)),
    "ranks": lambda p, terms: lower_shardings(p, {terms[0]: Sharding(axis=0)}, 2),
}


@pytest.mark.parametrize("name", PASSES)
def test_four_times_the_program_is_four_times_the_work(name: str) -> None:
    small, large = (_work(PASSES[name], count) for count in (60, 240))
    assert large < 5 * small


def _work(change: Pass, count: int) -> int:
    """Return how many functions and lines a pass runs: time that no clock blurs."""
    hc = nfuser.HostIrContainer()
    terms = [hc.define_tensor([-1])]
    for k in range(count):
        terms.append(hc.binary("add", terms[-1], terms[k // 2]))
    hc.add_output(terms[-1])
    program = hc.program()
    work = 0

    def trace(_: FrameType, __: str, ___: object) -> TraceFunction:
        nonlocal work
        work += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        change(program, terms)
    finally:
        sys.settrace(before)
    return work
