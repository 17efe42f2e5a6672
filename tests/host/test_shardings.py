# SPDX-License-Identifier: Apache-2.0
"""Programs over several ranks give what one gives, with the fewest collectives."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
import nfuser.numpy as nn
from nfuser.errors import ArgumentError, HostError, ShapeError, UnsupportedError
from nfuser.execution.host.mesh.lower_shardings import lower_shardings
from nfuser.execution.host.mesh.sharding import REPLICATED, Sharding
from nfuser.execution.host.mesh.virtual_ranks import VirtualRanks
from tests.hand_built import traced
from tests.host.spread import RANKS, Case, array, text

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS, COLUMNS = Sharding(axis=0), Sharding(axis=1)


def _gelu_program(
    x_lies: Sharding, w_lies: Sharding, bias: bool = True
) -> tuple[Case, Any]:
    with nfuser.FusionDefinition() as gelu:
        t = gelu.define_tensor(shape=[-1, -1])
        gelu.add_output(gelu.ops.gelu(t))
    hc = nfuser.HostIrContainer("mlp")
    x, w, b = hc.define_tensor([-1, 8]), hc.define_tensor([8, 12]), None
    made = hc.matmul(x, w)
    arrays = [array(16, 8), array(8, 12)]
    if bias:
        b = hc.define_tensor([12])
        made = hc.binary("add", made, b)
        arrays.append(array(12))
    made = hc.launch(gelu.fusion, made)
    total = hc.reduce("sum", made, 0)
    hc.add_output(total)
    return Case(hc, {x: x_lies, w: w_lies}, arrays), total


def test_rows_of_a_product_to_the_sum_of_columns(golden: Callable[[str], None]) -> None:
    case, _ = _gelu_program(ROWS, REPLICATED)
    assert case.collectives() == ["allreduce_sum"]
    golden(text(case.lowered))
    case.check()


@pytest.mark.parametrize(
    ("x", "w", "kinds"),
    [
        (REPLICATED, COLUMNS, []),
        (COLUMNS, ROWS, ["allreduce_sum"]),
        (REPLICATED, ROWS, ["allreduce_sum"]),
        (ROWS, COLUMNS, ["allgather"]),
        (REPLICATED, REPLICATED, []),
    ],
)
def test_other_ways_of_spreading_a_product(
    x: Sharding, w: Sharding, kinds: list[str]
) -> None:
    case, _ = _gelu_program(x, w)
    assert case.collectives()[: len(kinds)] == kinds
    assert len(case.collectives()) <= len(kinds) + 1
    case.check()


def test_a_product_that_ends_in_parts() -> None:
    hc = nfuser.HostIrContainer()
    x, w = hc.define_tensor([16, 8]), hc.define_tensor([8, 12])
    product = hc.matmul(x, w)
    result = hc.unary("tanh", product)
    hc.add_output(result)
    shardings = {x: COLUMNS, w: ROWS, result: ROWS}
    case = Case(hc, shardings, [array(16, 8), array(8, 12)])
    assert case.collectives() == ["reduce_scatter_sum"]
    case.check()


@pytest.mark.parametrize("axis", [0, 1])
def test_layer_norm(axis: int, golden: Callable[[str], None]) -> None:
    hc = nfuser.HostIrContainer("layer_norm")
    x = hc.define_tensor([-1, -1])
    rows, columns = x.shape
    mean = hc.binary("divide", hc.reduce("sum", x, 1), columns)
    away = hc.binary("subtract", x, hc.reshape(mean, (rows, 1)))
    squares = hc.reduce("sum", hc.binary("multiply", away, away), 1)
    spread_ = hc.unary(
        "sqrt", hc.binary("add", hc.binary("divide", squares, columns), 1)
    )
    hc.add_output(hc.binary("divide", away, hc.reshape(spread_, (rows, 1))))
    case = Case(hc, {x: Sharding(axis=axis)}, [array(8, 20)])
    # The mean and the deviation of whole rows need what all ranks have of them.
    assert case.collectives() == ["allreduce_sum"] * (2 * axis)
    case.check()
    golden(text(case.lowered))


def test_transposing_shardings_is_one_exchange() -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1, -1, 5])
    moved = hc.set(x)
    hc.add_output(moved)
    back = hc.binary("add", moved, 1.0)
    hc.add_output(back)
    shardings = {x: ROWS, moved: COLUMNS, back: COLUMNS}
    case = Case(hc, shardings, [array(8, 12, 5)])
    assert case.collectives() == ["all_to_all"]
    case.check()


def test_a_permuted_axis_needs_no_exchange() -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1, -1])
    turned = hc.permute(x, (1, 0))
    hc.add_output(turned)
    hc.add_output(hc.reduce("max", turned, 0))
    case = Case(hc, {x: ROWS, turned: COLUMNS}, [array(8, 6)])
    assert case.collectives() == []
    case.check()


def test_what_is_needed_twice_is_exchanged_once() -> None:
    hc = nfuser.HostIrContainer()
    x, w = hc.define_tensor([-1, 8]), hc.define_tensor([8, 8])
    first = hc.matmul(x, w)
    second = hc.matmul(hc.permute(w, (1, 0)), hc.permute(x, (1, 0)))
    for made in (first, second):
        hc.add_output(made)
    case = Case(
        hc,
        {x: ROWS, first: REPLICATED, second: REPLICATED, w: REPLICATED},
        [array(8, 8), array(8, 8)],
    )
    case.check()
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1, -1])
    total = hc.reduce("sum", x, 0)
    for name in ("exp", "tanh", "sin"):
        hc.add_output(hc.unary(name, total))
    case = Case(hc, {x: ROWS}, [array(8, 6)])
    assert case.collectives() == ["allreduce_sum"]
    case.check()


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all"])
def test_folds_are_completed(name: str) -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1, -1])
    hc.add_output(hc.reduce(name, x, (0, 1)))
    case = Case(hc, {x: ROWS}, [array(8, 6)])
    assert case.collectives() == [f"allreduce_{name}"]
    case.check()


def _launched(function: Callable[..., Any], lies: Sharding, *sample: Any) -> Case:
    hc = nfuser.HostIrContainer("launched")
    x = hc.define_tensor([-1] * sample[0].ndim)
    hc.add_output(hc.launch(traced(function, *sample), x))
    return Case(hc, {x: lies}, list(sample))


def _shares(x: Any) -> Any:
    return np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True)


@pytest.mark.parametrize(
    ("function", "lies", "kinds"),
    [
        (_shares, ROWS, []),
        (_shares, COLUMNS, ["all_to_all"]),
        (lambda x: x.T.cumsum(axis=0) + 1, ROWS, []),
        (lambda x: x.sum(axis=0), COLUMNS, []),
        (lambda x: x.sum(axis=0), ROWS, ["allreduce_sum"]),
        (lambda x: np.exp(x).max(axis=1, keepdims=True), COLUMNS, ["allreduce_max"]),
        (lambda x: x.mean(axis=0), ROWS, ["all_to_all"]),
        (lambda x: x / x.shape[0], ROWS, ["all_to_all"]),
        (lambda x: x / nn.ones(x.shape[0]).sum(), ROWS, ["all_to_all"]),
        (lambda x: x - nn.arange(x.shape[0]).sum(), ROWS, ["all_to_all"]),
        (lambda x: (x - x.mean()).sum(axis=1), ROWS, ["allgather"]),
    ],
)
def test_launches_run_on_parts_where_they_may(
    function: Callable[..., Any], lies: Sharding, kinds: list[str]
) -> None:
    made = _launched(function, lies, array(8, 12))
    assert made.collectives() == kinds
    made.check()


def test_parts_of_different_folds_are_not_multiplied() -> None:
    hc = nfuser.HostIrContainer()
    x, y = hc.define_tensor([3]), hc.define_tensor([3])
    hc.add_output(hc.binary("multiply", x, y))
    lies = {x: Sharding(partial="sum"), y: Sharding(partial="max")}
    lowered = lower_shardings(hc.program(), lies, 2)
    a, b = ([array(3), array(3)] for _ in range(2))
    evaluator = nfuser.HostIrEvaluator(lowered)
    for (made,) in VirtualRanks(2).run(
        lambda r: evaluator.run([a[r.rank], b[r.rank]], communicator=r)
    ):
        np.testing.assert_array_equal(made, (a[0] + a[1]) * np.maximum(*b))


def test_what_cannot_be_spread_is_refused() -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([6, 4])
    hc.add_output(hc.set(x))
    with pytest.raises(ShapeError, match="size 6 has no 4 equal parts"):
        lower_shardings(hc.program(), {x: ROWS}, 4)
    with pytest.raises(ArgumentError, match="has no axis 2"):
        lower_shardings(hc.program(), {x: Sharding(axis=2)}, 2)
    for output in (Sharding(axis=2), Sharding(axis=-1)):
        with pytest.raises(ArgumentError, match="a tensor of 2 axes has no axis"):
            lower_shardings(hc.program(), {hc.program().outputs[0]: output}, 2)
    for mesh in (0, (2, 0), ()):
        with pytest.raises(ArgumentError, match="at least one rank in each dimension"):
            lower_shardings(hc.program(), {}, mesh)
    stranger = nfuser.HostIrContainer().define_tensor([6, 4])
    with pytest.raises(ArgumentError, match="name a tensor that is not in"):
        lower_shardings(hc.program(), {stranger: ROWS}, 2)
    for wrong in (Sharding(axis=0, partial="sum"), Sharding(axis=0, owner=1)):
        with pytest.raises(ArgumentError, match="a sharding has an axis, an owner, or"):
            lower_shardings(hc.program(), {x: wrong}, 2)
    with pytest.raises(ArgumentError, match="found axis=None, partial='mean'"):
        lower_shardings(hc.program(), {x: Sharding(partial="mean")}, 2)
    work = hc.allocate((6, 4), np.float32)
    hc.set(x, out=work)
    with pytest.raises(UnsupportedError, match="Allocate: not spread over ranks"):
        lower_shardings(hc.program(), {x: ROWS}, 2)


def test_a_rank_that_fails_stops_the_others() -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1])
    hc.add_output(hc.reduce("sum", x, 0))
    program = lower_shardings(hc.program(), {x: ROWS}, RANKS)
    evaluator = nfuser.HostIrEvaluator(program)

    def body(rank: Any) -> Any:
        if rank.rank == 2:
            raise RuntimeError("rank 2 is gone")
        return evaluator.run([np.ones(3, np.float32)], communicator=rank)

    with pytest.raises(RuntimeError, match="rank 2 is gone"):
        VirtualRanks(RANKS).run(body)
    with pytest.raises(HostError, match="was run without ranks"):
        evaluator.run([np.ones(3, np.float32)])


def test_what_has_no_equal_parts_is_refused_when_it_runs() -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1])
    made = hc.set(x)
    hc.add_output(made)
    evaluator = nfuser.HostIrEvaluator(lower_shardings(hc.program(), {made: ROWS}, 2))
    failed: list[int] = []

    def body(rank: Any) -> Any:
        with pytest.raises(HostError, match=r"expected an array of shape \(2,\)"):
            evaluator.run([np.ones(5, np.float32)], communicator=rank)
        failed.append(rank.rank)

    VirtualRanks(2).run(body)
    assert sorted(failed) == [0, 1]


@pytest.mark.parametrize("early", [0, 1])
def test_a_rank_that_ends_early_stops_the_others(early: int) -> None:
    def body(rank: Any) -> Any:
        if rank.rank != early:
            rank.communicate("allreduce_sum", np.ones(2, np.float32))

    with pytest.raises(ArgumentError, match=f"rank {early} has ended, and others wait"):
        VirtualRanks(3).run(body)


@pytest.mark.parametrize("other", [np.ones(3, np.float32), np.ones(2)])
@pytest.mark.parametrize("kind", ["allreduce_sum", "allgather", "broadcast"])
def test_parts_that_differ_are_refused(kind: str, other: Any) -> None:
    ends, axes = ((0,), ()) if kind == "broadcast" else ((), (0,))

    def body(rank: Any) -> Any:
        given = other if rank.rank else np.ones(2, np.float32)
        rank.communicate(kind, given, axes, ends)

    with pytest.raises(ArgumentError, match="ranks disagree"):
        VirtualRanks(2).run(body)


@pytest.mark.parametrize("divisor", ["tensor", "integer"])
def test_parts_of_sums_are_not_divided_by_what_may_be_zero(divisor: str) -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1, 2])
    y = hc.define_tensor([2]) if divisor == "tensor" else hc.define_integer()
    hc.add_output(hc.binary("divide", hc.reduce("sum", x, 0), y))
    program = lower_shardings(hc.program(), {x: ROWS}, 2)
    given = np.array([0, 2], np.float32) if divisor == "tensor" else 0
    evaluator = nfuser.HostIrEvaluator(program)
    parts = np.array([[[5, 1]], [[-3, 1]]], np.float32)

    def body(rank: Any) -> Any:
        with np.errstate(divide="ignore", invalid="ignore"):
            return evaluator.run([parts[rank.rank], given], communicator=rank)[0]

    want = np.array([np.inf, 1 if divisor == "tensor" else np.inf], np.float32)
    for made in VirtualRanks(2).run(body):
        np.testing.assert_array_equal(made, want)
