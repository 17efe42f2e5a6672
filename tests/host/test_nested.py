# SPDX-License-Identifier: Apache-2.0
"""Programs that launch programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import ArgumentError, HostError
from nfuser.execution.host.passes.lower_streams import lower_streams
from tests.host.libraries import LIBRARIES, array_of

X = np.arange(24, dtype=np.float32).reshape(4, 6) / 7


def _power_sum() -> nfuser.HostProgram:
    """Return a program with a loop: the sum of x to the powers 1 up to n."""
    hc = nfuser.HostIrContainer("power_sum")
    x, n = hc.define_tensor([-1, -1]), hc.define_integer()
    power = hc.set(x)
    total = hc.set(x)
    with hc.loop(1, n):
        hc.binary("multiply", power, x, out=power)
        hc.binary("add", total, power, out=total)
    hc.add_output(total)
    return hc.program()


def _rows_on_streams() -> nfuser.HostProgram:
    hc = nfuser.HostIrContainer("rows")
    x = hc.define_tensor([-1, -1])
    first = hc.unary("exp", x)
    last = hc.binary("multiply", first, x)
    hc.add_output(last)
    return lower_streams(hc.program(), {first: 0, last: 0})


def _outer(inner: Any, rows: Any) -> nfuser.HostProgram:
    """Launch both in a loop: into a slice of what is allocated, and into new memory."""
    hc = nfuser.HostIrContainer("outer")
    x = hc.define_tensor([-1, -1])
    out = hc.allocate((3, *x.shape), np.float32)
    with hc.loop(3) as i:
        hc.launch(inner, hc.launch(rows, x), i + 1, out=hc.alias_select(out, 0, i))
    hc.add_output(out)
    return hc.program()


@LIBRARIES
@pytest.mark.parametrize("cache", [True, False])
def test_loops_and_streams_run_inside_another_program(
    library: str, cache: bool
) -> None:
    y = np.exp(X) * X
    want = np.stack([y, y + y * y, y + y * y + y * y * y])
    programs = _power_sum(), _rows_on_streams()
    evaluators = [nfuser.HostIrEvaluator(p, cache=cache) for p in programs]
    for given in (programs, evaluators):
        evaluator = nfuser.HostIrEvaluator(_outer(*given), cache=cache)
        for _ in range(3):
            (made,) = evaluator.run([array_of(library, X)])
            np.testing.assert_allclose(np.asarray(made), want, rtol=1e-5)


def test_what_is_given_back_is_copied() -> None:
    hc = nfuser.HostIrContainer("turn")
    x = hc.define_tensor([-1, -1])
    hc.add_output(hc.permute(x, (1, 0)))
    turn = hc.program()
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1, -1])
    work = hc.set(x)
    turned = hc.launch(turn, work)
    hc.binary("multiply", work, 0.0, out=work)
    hc.add_output(turned)
    (made,) = nfuser.HostIrEvaluator(hc.program()).run([X])
    np.testing.assert_array_equal(made, X.T)


def test_the_text_and_an_error_name_the_statement_inside() -> None:
    hc = nfuser.HostIrContainer("outer")
    x = hc.define_tensor([-1, -1])
    hc.add_output(hc.launch(_power_sum(), x, 2))
    program = hc.program()
    assert "T1: f32[n0, n1] = launch power_sum(T0, 2)" in str(program)
    with pytest.raises(ArgumentError, match="power_sum takes 2 operands, found 1"):
        hc.launch(_power_sum(), x)

    def fail(array: Any) -> Any:
        raise MemoryError("no more")

    inner = nfuser.HostIrContainer("inner")
    y = inner.define_tensor([-1, -1])
    inner.add_output(inner.launch(fail, y, like=[(y.shape, np.float32)]))
    hc = nfuser.HostIrContainer("outer")
    hc.add_output(hc.launch(inner.program(), hc.define_tensor([-1, -1])))
    with pytest.raises(HostError, match=r"inner: `.* = launch fail.*no more") as caught:
        nfuser.HostIrEvaluator(hc.program()).run([X])
    assert "inner.add_output(inner.launch(fail" in str(caught.value)
