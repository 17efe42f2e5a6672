# SPDX-License-Identifier: Apache-2.0
"""Ranks in a grid, tensors that one rank owns, and the exchanges that these need."""

from __future__ import annotations

from dataclasses import replace
from threading import Semaphore
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
import nfuser.execution.host.ir.statements as st
from nfuser.compiler.ir.tensor import tensor
from nfuser.errors import ArgumentError, HostError, UnsupportedError, VerifyError
from nfuser.execution.host.ir.verify import verify
from nfuser.execution.host.mesh.lower_shardings import lower_shardings
from nfuser.execution.host.mesh.merge_exchanges import merge_exchanges
from nfuser.execution.host.mesh.sharding import REPLICATED, Sharding
from nfuser.execution.host.mesh.virtual_ranks import VirtualRanks
from tests.host.spread import TOLERANCE, Case, array, random_case, text

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS, COLUMNS = Sharding(axis=0), Sharding(axis=1)
FIRST, THIRD = Sharding(owner=0), Sharding(owner=2)


def _along(case: Case) -> list[tuple[str, tuple[int, ...]]]:
    return [(s.kind, s.along) for s in case.exchanges()]


# -- one rank owns a tensor --------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "kinds"),
    [
        (FIRST, REPLICATED, ["broadcast"]),
        (FIRST, THIRD, ["send_receive"]),
        (FIRST, COLUMNS, ["scatter"]),
        (ROWS, THIRD, ["gather"]),
        (Sharding(partial="sum"), THIRD, ["reduce_sum"]),
        (Sharding(partial="max"), FIRST, ["reduce_max"]),
        (REPLICATED, THIRD, []),
        (THIRD, THIRD, []),
    ],
)
def test_what_owners_give_and_get(
    before: Sharding, after: Sharding, kinds: list[str]
) -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1, -1])
    moved = hc.set(x)
    hc.add_output(moved)
    case = Case(hc, {x: before, moved: after}, [array(8, 12)])
    assert case.collectives() == kinds
    case.check()


def _pipeline() -> Case:
    hc = nfuser.HostIrContainer("pipeline")
    x, w, v = (hc.define_tensor(shape) for shape in ([-1, 8], [8, 8], [8, 4]))
    hidden = hc.unary("tanh", hc.matmul(x, w))
    result = hc.unary("tanh", hc.matmul(hidden, v))
    hc.add_output(result)
    lies = {x: FIRST, w: FIRST, v: THIRD, result: REPLICATED}
    return Case(hc, lies, [array(16, 8), array(8, 8), array(8, 4)])


def test_each_stage_runs_where_its_weights_are(golden: Callable[[str], None]) -> None:
    case = _pipeline()
    assert case.collectives() == ["send_receive", "broadcast"]
    golden(text(case.lowered))
    case.check()


def test_only_the_owner_computes() -> None:
    seen: list[float] = []

    def note(x: Any) -> Any:
        seen.append(float(x.sum()))
        return x + 1

    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([3])
    made = hc.launch(note, x, like=[((3,), np.float32)])
    hc.add_output(made)
    evaluator = nfuser.HostIrEvaluator(
        lower_shardings(hc.program(), {x: THIRD, made: FIRST}, 4)
    )
    parts = VirtualRanks(4).run(
        lambda r: evaluator.run([np.full(3, r.rank, "f4")], communicator=r)[0]
    )
    assert seen == [6.0]
    np.testing.assert_array_equal(parts[0], np.full(3, 3, "f4"))


def test_only_the_two_ends_wait() -> None:
    ranks = VirtualRanks(3)
    done = Semaphore(0)

    def body(rank: Any) -> Any:
        if rank.rank == 0:  # comes when the others have gone on
            assert all(done.acquire(timeout=10) for _ in range(2))
        made = rank.communicate("send_receive", np.full(1, 7 + rank.rank), (), (1, 2))
        done.release()
        return made

    assert ranks.run(body)[2] == [8]


# -- meshes ------------------------------------------------------------------


def test_a_product_on_a_grid(golden: Callable[[str], None]) -> None:
    hc = nfuser.HostIrContainer("grid")
    x, w = hc.define_tensor([-1, 8]), hc.define_tensor([8, 12])
    made = hc.unary("tanh", hc.matmul(x, w))
    hc.add_output(made)
    lies = {
        x: (ROWS, COLUMNS),
        w: (REPLICATED, ROWS),
        made: (ROWS, REPLICATED),
    }
    case = Case(hc, lies, [array(16, 8), array(8, 12)], (2, 2))
    assert _along(case) == [("allreduce_sum", (1,))]
    golden(text(case.lowered))
    case.check()


def test_an_axis_split_twice_is_gathered_once() -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1, 5])
    hc.add_output(moved := hc.set(x))
    both = REPLICATED, REPLICATED
    case = Case(hc, {x: (ROWS, ROWS), moved: both}, [array(12, 5)], (2, 3))
    assert _along(case) == [("allgather", (0, 1))]
    case.check()


def test_a_sum_over_the_whole_mesh_is_completed_once() -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1, -1])
    hc.add_output(hc.reduce("sum", x, (0, 1)))
    case = Case(hc, {x: (ROWS, COLUMNS)}, [array(12, 6)], (2, 3))
    assert _along(case) == [("allreduce_sum", (0, 1))]
    assert "along" not in str(case.lowered)
    case.check()


def test_parts_of_parts_are_gathered_from_within() -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([12])
    hc.add_output(moved := hc.set(x))
    lies = {x: (ROWS, ROWS), moved: (REPLICATED, ROWS)}
    case = Case(hc, lies, [array(12)], (2, 3))
    # The inner parts lie together only within an outer one.
    assert _along(case) == [("allgather", (0, 1))]
    case.check()


def test_folds_that_differ_are_completed_from_within() -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([3])
    hc.add_output(moved := hc.set(x))
    lies = Sharding(partial="sum"), Sharding(partial="max")
    lowered = lower_shardings(
        hc.program(), {x: lies, moved: (REPLICATED, REPLICATED)}, (2, 2)
    )
    evaluator = nfuser.HostIrEvaluator(lowered)
    parts = [array(3) for _ in range(4)]
    want = np.maximum(parts[0], parts[1]) + np.maximum(parts[2], parts[3])
    for made in VirtualRanks(4).run(
        lambda r: evaluator.run([parts[r.rank]], communicator=r)[0]
    ):
        np.testing.assert_array_equal(made, want)


def test_a_slice_of_another_axis_needs_no_exchange() -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([8, 12])
    hc.add_output(made := hc.slice(x, (0, 5), (8, 12)))
    case = Case(hc, {x: ROWS, made: ROWS}, [array(8, 12)])
    assert case.collectives() == []
    case.check()


def test_gathers_in_another_order_stay_two() -> None:
    a, b, c = (tensor([n], nfuser.DataType.Float.value) for n in (2, 4, 12))
    first = st.Communicate("allgather", a, (0,), b, None, (), (2, 3), (0,))
    second = st.Communicate("allgather", b, (0,), c, None, (), (2, 3), (1,))
    assert merge_exchanges((first, second), [c]) == (first, second)
    both = merge_exchanges((first, second), [b, c])
    assert both == (first, second)


def test_an_axis_without_equal_parts_is_not_split() -> None:
    hc = nfuser.HostIrContainer()
    x, w = hc.define_tensor([1, 8]), hc.define_tensor([8, 8])
    hc.add_output(hc.matmul(x, w))
    case = Case(hc, {x: Sharding(partial="sum")}, [array(1, 8), array(8, 8)])
    assert case.collectives() == ["allreduce_sum"]
    case.check()


def test_data_and_model_are_split_at_once() -> None:
    hc = nfuser.HostIrContainer("mlp")
    x, w, v = (hc.define_tensor(shape) for shape in ([-1, 8], [8, 16], [16, 8]))
    out = hc.matmul(hc.unary("tanh", hc.matmul(x, w)), v)
    hc.add_output(loss := hc.reduce("sum", hc.binary("multiply", out, out), (0, 1)))
    both = REPLICATED, REPLICATED
    lies = {
        x: (ROWS, REPLICATED),
        w: (REPLICATED, COLUMNS),
        v: (REPLICATED, ROWS),
        loss: both,
    }
    arrays = [array(8, 8), array(8, 16), array(16, 8)]
    case = Case(hc, lies, arrays, (2, 2))
    assert _along(case) == [("allreduce_sum", (1,)), ("allreduce_sum", (0,))]
    case.check(1e-4)


def test_an_owner_along_one_dimension() -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1, 6])
    made = hc.unary("tanh", hc.reduce("sum", hc.unary("tanh", x), 0))
    hc.add_output(made)
    lies = {x: (Sharding(owner=1), ROWS), made: (REPLICATED, REPLICATED)}
    case = Case(hc, lies, [array(12, 6)], (2, 3))
    assert _along(case) == [("allreduce_sum", (1,)), ("broadcast", (0,))]
    guard = [s for s in case.lowered.body if isinstance(s, st.IfThenElse)]
    assert len(guard) == 1  # the sum is completed inside, by ranks of one row
    case.check()


@pytest.mark.parametrize("seed", range(24))
def test_random_programs_give_what_one_rank_gives(seed: int) -> None:
    random_case(seed).check(TOLERANCE)


# -- what is refused ---------------------------------------------------------


def test_layouts_that_do_not_fit_are_refused() -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([8, 8])
    hc.add_output(made := hc.set(x))
    program = hc.program()
    with pytest.raises(ArgumentError, match="a sharding for each of 2 dimensions"):
        lower_shardings(program, {x: ROWS}, (2, 2))
    with pytest.raises(ArgumentError, match="no rank 2 among 2"):
        lower_shardings(program, {x: (ROWS, THIRD)}, (2, 2))
    with pytest.raises(UnsupportedError, match="not made partial sum"):
        lower_shardings(program, {x: ROWS, made: Sharding(partial="sum")}, 2)
    case = Case(hc, {x: (ROWS, ROWS), made: (REPLICATED,) * 2}, [array(8, 8)], (2, 2))
    with pytest.raises(UnsupportedError, match="an exchange is not spread"):
        lower_shardings(case.lowered, {}, (2, 2))
    evaluator = nfuser.HostIrEvaluator(case.lowered)
    with pytest.raises(HostError, match="a program for 2x2 ranks was run by 3"):
        VirtualRanks(3).run(
            lambda r: evaluator.run([np.ones((2, 8), "f4")], communicator=r)
        )


WRONG: dict[str, tuple[str, dict[str, Any]]] = {
    "kind": ("allmean is no exchange", {"kind": "allmean"}),
    "fold": ("allreduce_mean is no exchange", {"kind": "allreduce_mean"}),
    "axes": ("names 1 axes and 0 ranks", {"axes": (0, 1)}),
    "outside": ("of an array of 2 axes", {"axes": (2,)}),
    "ends": ("names 0 axes and 1 ranks", {"kind": "broadcast"}),
    "rank": (
        "no rank 4 among 4",
        {"kind": "broadcast", "axes": (), "ends": (4,)},
    ),
    "mesh": ("dimensions .* of a mesh of 1", {"along": (1,)}),
    "shape": (
        "the result has another shape",
        {"result": tensor([2, 3], nfuser.DataType.Float.value)},
    ),
    "parts": (
        "size 2 has no 4 equal parts",
        {"kind": "reduce_scatter_sum"},
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_exchange_is_verified(name: str) -> None:
    message, change = WRONG[name]
    hc = nfuser.HostIrContainer("broken")
    x = hc.define_tensor([8, 3])
    hc.add_output(moved := hc.set(x))
    program = lower_shardings(hc.program(), {x: ROWS, moved: REPLICATED}, 4)
    first, *rest = program.body
    assert isinstance(first, st.Communicate)
    with pytest.raises(VerifyError, match=message):
        verify(replace(program, body=(replace(first, **change), *rest)))


def test_ranks_that_disagree_are_told() -> None:
    def body(rank: Any) -> Any:
        kind = "allreduce_sum" if rank.rank else "allreduce_max"
        return rank.communicate(kind, np.ones(2))

    with pytest.raises(ArgumentError, match=r"ranks disagree: .*allreduce_max"):
        VirtualRanks(2).run(body)


def test_a_broadcast_by_hand() -> None:
    hc = nfuser.HostIrContainer("by_hand")
    x = hc.define_tensor([-1])
    hc.add_output(hc.communicate("broadcast", x, (), x.shape, ends=(1,)))
    evaluator = nfuser.HostIrEvaluator(hc.program())
    found = VirtualRanks(3).run(
        lambda r: evaluator.run([np.full(2, r.rank, "f4")], communicator=r)[0]
    )
    for made in found:
        np.testing.assert_array_equal(made, np.ones(2, "f4"))
    # A rank that lets go of its array leaves the others theirs.
    assert not np.may_share_memory(found[0], found[2])
    assert "T1: f32[n0] = broadcast(T0, rank=1)" in text(hc.program())
