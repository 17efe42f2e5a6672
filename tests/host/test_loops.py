# SPDX-License-Identifier: Apache-2.0
"""What depends on a loop index is worked out anew in each iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
import nfuser.compiler.ir.scalars.functions as scalar_functions
from nfuser.compiler.ir.scalars import scalar as sc

if TYPE_CHECKING:
    from nfuser.compiler.concretize import ResizePolicy

POLICIES = pytest.mark.parametrize("resize", ["dynamic", "static"])
CACHED = pytest.mark.parametrize("cache", [True, False])
T = np.linspace(0, 3, 7 * 5, dtype=np.float32).reshape(7, 5)


def _evaluator(
    hc: nfuser.HostIrContainer, resize: ResizePolicy, *, cache: bool
) -> nfuser.HostIrEvaluator:
    # The interpreter needs no compiler: each uncached iteration would run it.
    return nfuser.HostIrEvaluator(
        hc.program(), resize=resize, cache=cache, backend="interpret"
    )


@POLICIES
@CACHED
def test_slices_by_the_index_are_added_up(resize: ResizePolicy, cache: bool) -> None:
    with nfuser.FusionDefinition() as f:
        part = f.define_tensor(shape=[-1, -1])
        f.add_output(f.ops.add(f.ops.mul(part, part), 1.0))
    hc = nfuser.HostIrContainer()
    t = hc.define_tensor([-1, -1])
    out = hc.binary("multiply", hc.slice(t, (0, 0), (1, t.shape[1])), 0.0)
    with hc.loop(7) as i:
        part = hc.slice(t, (i, 0), (i + 1, t.shape[1]))
        hc.binary("add", out, hc.launch(f.fusion, part), out=out)
    hc.add_output(out)
    (got,) = _evaluator(hc, resize, cache=cache).run([T])
    np.testing.assert_allclose(got, (T * T + 1).sum(0, keepdims=True), rtol=1e-5)


@POLICIES
@CACHED
def test_a_fusion_that_slices_by_the_index_is_not_frozen(
    resize: ResizePolicy, cache: bool
) -> None:
    with nfuser.FusionDefinition() as f:
        t = f.define_tensor(shape=[-1, -1])
        i = f.define_scalar(dtype=nfuser.DataType.Int)
        stop = f.ops.add(i, 1)
        part = f.ops.slice(t, [i, 0], [stop, 5])
        f.add_output(f.ops.mul(part, 2.0))
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1, 5])
    out = hc.allocate((1, 5), np.float32)
    hc.binary("multiply", hc.slice(x, (0, 0), (1, 5)), 0.0, out=out)
    with hc.loop(7) as index:
        y = hc.launch(f.fusion, x, index, like=[((1, 5), np.float32)])
        hc.binary("add", out, y, out=out)
    hc.add_output(out)
    evaluator = _evaluator(hc, resize, cache=cache)
    for _ in range(2):
        (got,) = evaluator.run([T])
        np.testing.assert_allclose(got, 2 * T.sum(0, keepdims=True), rtol=1e-5)


@POLICIES
@CACHED
def test_reshapes_by_the_index_are_not_frozen(
    resize: ResizePolicy, cache: bool
) -> None:
    with nfuser.FusionDefinition() as f:
        given = f.define_tensor(shape=[-1, -1])
        f.add_output(f.ops.sum(f.ops.exp(given), 0))
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([12])
    out = hc.define_tensor([12], name="out")
    sums = hc.set(out)
    with hc.loop(1, 13) as i, hc.when(scalar_functions.equal(sc.const(12) % i, 0)):
        columns = sc.const(12) // i
        laid = hc.launch(f.fusion, hc.reshape(x, (i, columns)))
        place = hc.slice(sums, (0,), (columns,))
        hc.binary("add", place, laid, out=place)
    hc.add_output(sums)
    array = np.linspace(0, 1, 12, dtype=np.float32)
    want = np.zeros(12, np.float32)
    for i in (1, 2, 3, 4, 6, 12):
        want[: 12 // i] += np.exp(array).reshape(i, -1).sum(0)
    zeros = np.zeros(12, np.float32)
    (got,) = _evaluator(hc, resize, cache=cache).run({"T0": array, "out": zeros})
    np.testing.assert_allclose(got, want, rtol=1e-5)
    assert not zeros.any()


def test_loops_count_in_steps_and_backwards() -> None:
    hc = nfuser.HostIrContainer()
    n = hc.define_integer("n")
    x = hc.define_tensor([8], "int64", name="x")
    up, down = hc.set(x), hc.set(x)
    with hc.loop(1, n, 3) as i:
        hc.binary("add", up, i, out=up)
    with hc.loop(n, 0, -2) as i:
        hc.binary("add", hc.row(down, i), i * i, out=hc.row(down, i))
    hc.add_output(up)
    hc.add_output(down)
    zeros = np.zeros(8, np.int64)
    first, second = nfuser.HostIrEvaluator(hc.program()).run([7, zeros])
    assert (first == 1 + 4).all()
    want: Any = zeros.copy()
    want[[7, 5, 3, 1]] = [49, 25, 9, 1]
    np.testing.assert_array_equal(second, want)


@POLICIES
@CACHED
def test_a_fusion_that_reshapes_by_the_index_is_not_frozen(
    resize: ResizePolicy, cache: bool
) -> None:
    with nfuser.FusionDefinition() as f:
        t = f.define_tensor(shape=[-1])
        rows = f.define_scalar(dtype=nfuser.DataType.Int)
        columns = f.define_scalar(dtype=nfuser.DataType.Int)
        f.add_output(f.ops.sum(f.ops.exp(f.ops.reshape(t, [rows, columns])), 0))
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1])
    sums = hc.binary("multiply", x, 0.0)
    with hc.loop(1, 13) as i, hc.when(scalar_functions.equal(sc.const(12) % i, 0)):
        columns = sc.const(12) // i
        place = hc.slice(sums, (0,), (columns,))
        laid = hc.launch(f.fusion, x, i, columns, like=[((columns,), np.float32)])
        hc.binary("add", place, laid, out=place)
    hc.add_output(sums)
    array = np.linspace(0, 1, 12, dtype=np.float32)
    want = np.zeros(12, np.float32)
    for i in (1, 2, 3, 4, 6, 12):
        want[: 12 // i] += np.exp(array).reshape(i, -1).sum(0)
    evaluator = _evaluator(hc, resize, cache=cache)
    for _ in range(2):
        (got,) = evaluator.run([array])
        np.testing.assert_allclose(got, want, rtol=1e-5)
