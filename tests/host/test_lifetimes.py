# SPDX-License-Identifier: Apache-2.0
"""Frees by lifetime, and streams for what does not depend on each other."""

from __future__ import annotations

import gc
import random
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
import nfuser.execution.host.ir.statements as st
from nfuser.base.debug.timeline import Timeline
from nfuser.execution.host.passes.assign_streams import assign_streams
from nfuser.execution.runtime.host.link import MOST_STATEMENTS
from tests.host.peak import reference_of

if TYPE_CHECKING:
    from collections.abc import Callable


def _text(program: nfuser.HostProgram) -> str:
    return re.sub(r"  # \S+:\d+$", "", str(program), flags=re.MULTILINE)


def _chains() -> nfuser.HostProgram:
    hc = nfuser.HostIrContainer("chains")
    x, y = hc.define_tensor([-1]), hc.define_tensor([-1])
    left = hc.unary("exp", hc.unary("sin", x))
    right = hc.unary("exp", hc.unary("sin", y))
    hc.add_output(hc.binary("add", left, right))
    return hc.program()


def test_each_array_goes_after_its_last_use() -> None:
    timeline = Timeline()
    x = np.ones(1000, np.float32)
    nfuser.HostIrEvaluator(_chains()).run([x, x], timeline=timeline)
    assert timeline.peak_bytes == 3 * x.nbytes  # of six arrays


def test_a_long_line_holds_no_more_than_is_left_to_read() -> None:
    hc = nfuser.HostIrContainer("long")
    x = hc.define_tensor([-1])
    last = hc.set(x)
    for _ in range(5):
        last = hc.unary("sin", last)
    total = hc.reduce("sum", last, 0)
    with hc.loop(2 * MOST_STATEMENTS):
        hc.binary("add", total, 1.0, out=total)
    hc.add_output(total)
    evaluator = nfuser.HostIrEvaluator(hc.program(), backend="interpret")
    timeline, x = Timeline(), np.ones(1000, np.float32)
    evaluator.run([x], timeline=timeline)
    assert timeline.peak_bytes == 2 * x.nbytes  # of six arrays
    gc.collect()
    gc.disable()  # what ran goes without it
    try:
        evaluator.run([x])
        assert not gc.collect()
    finally:
        gc.enable()


def test_independent_chains_run_on_two_streams(golden: Callable[[str], None]) -> None:
    program = assign_streams(_chains())
    golden(_text(program))
    waits = [s for s in program.body if isinstance(s, st.Wait)]
    assert len(waits) == 2  # for the inputs, and for the other operand
    assert assign_streams(program) is program


def test_one_chain_stays_on_the_callers_stream() -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1])
    hc.add_output(hc.unary("exp", hc.unary("sin", x)))
    program = hc.program()
    assert assign_streams(program) is program


def test_nothing_is_freed_that_the_next_iteration_reads() -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([4, 3])
    total = hc.binary("multiply", hc.row(x, 0), 0.0)
    factor = hc.unary("exp", hc.row(x, 1))
    with hc.loop(4) as i:
        part = hc.binary("multiply", hc.row(x, i), factor)
        hc.binary("add", total, hc.unary("sin", part), out=total)
    hc.add_output(hc.set(total))
    array, timeline = np.linspace(0, 1, 12, dtype=np.float32), Timeline()
    array = array.reshape(4, 3)
    evaluator = nfuser.HostIrEvaluator(hc.program())
    (got,) = evaluator.run([array], timeline=timeline)
    assert timeline.peak_bytes == 4 * array[0].nbytes
    want = np.sin(array * np.exp(array[1])).sum(0)
    np.testing.assert_allclose(got, want, rtol=1e-5)


def _random(seed: int) -> tuple[nfuser.HostProgram, Callable[[Any], list[Any]]]:
    """Return a program of operations, views and in-place updates, and its meaning."""
    dice = random.Random(seed)
    hc = nfuser.HostIrContainer(f"random{seed}")
    terms: list[Any] = [hc.define_tensor([6, 6])]
    steps: list[Callable[[list[Any]], None]] = []
    updated: set[int] = set()
    for _ in range(dice.randrange(3, 12)):
        a, b = (dice.randrange(len(terms)) for _ in range(2))
        kind = dice.choice(["add", "sin", "turn", "product", "update"])
        if kind == "add":
            terms.append(hc.binary("add", terms[a], terms[b]))
            steps.append(lambda v, a=a, b=b: v.append(v[a] + v[b]))
        elif kind == "sin":
            terms.append(hc.unary("sin", terms[a]))
            steps.append(lambda v, a=a: v.append(np.sin(v[a])))
        elif kind == "turn":
            terms.append(hc.permute(terms[a], (1, 0)))
            steps.append(lambda v, a=a: v.append(v[a].T))
        elif kind == "product":
            terms.append(hc.matmul(hc.unary("sin", terms[a]), terms[b]))
            steps.append(lambda v, a=a, b=b: v.append(np.sin(v[a]) @ v[b]))
        elif a and a not in updated:
            hc.binary("multiply", terms[a], 0.5, out=terms[a])
            updated.add(a)
            steps.append(lambda v, a=a: _halve(v[a]))
    for number in {len(terms) - 1, dice.randrange(len(terms))}:
        hc.add_output(terms[number])
    numbers = sorted({terms.index(t) for t in hc.program().outputs})

    def meaning(x: Any) -> list[Any]:
        values = [x]
        for step in steps:
            step(values)
        return [values[k] for k in numbers]

    program = hc.program()
    order = sorted(
        range(len(program.outputs)), key=lambda k: terms.index(program.outputs[k])
    )
    assert [terms.index(program.outputs[k]) for k in order] == numbers
    outputs = tuple(program.outputs[k] for k in order)
    return nfuser.HostProgram(
        program.name, program.inputs, outputs, program.body, {}
    ), meaning


def _halve(array: Any) -> None:
    array *= np.float32(0.5)


@pytest.mark.parametrize("seed", range(100))
def test_streams_change_no_result_and_memory_goes_in_time(seed: int) -> None:
    program, meaning = _random(seed)
    x = np.random.default_rng(seed).normal(size=(6, 6)).astype(np.float32)
    peaks: list[int] = []
    for changed in (program, assign_streams(program)):
        timeline = Timeline()
        given = x.copy()
        made = nfuser.HostIrEvaluator(changed).run([given], timeline=timeline)
        for got, want in zip(made, meaning(x.copy()), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
        peaks.append(timeline.peak_bytes)
    made = (t for s in st.walk(program.body) for t in st.writes(s))
    assert max(peaks) <= reference_of(program, dict.fromkeys(made, x.nbytes))
