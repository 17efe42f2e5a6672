# SPDX-License-Identifier: Apache-2.0
"""Tensors that torch makes inside of a function may be written, under every name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import nfuser
from nfuser.errors import MutationError

if TYPE_CHECKING:
    from collections.abc import Callable

torch: Any = pytest.importorskip("torch")


def updated(x: Any) -> Any:
    made = torch.zeros(x.shape[0])
    other = made
    made += x
    made *= 2
    return other


def viewed(x: Any) -> Any:
    made = torch.full((2, 3), 2.0)
    row = made[1]
    made.add_(x[:3])
    row *= 2
    return made, row


def listed(x: Any) -> Any:
    made = [torch.ones(3, dtype=torch.float64), torch.empty((3,))]
    made[1].copy_(x[:3])
    made[0] -= x[:3]
    return made


def an_item(x: Any) -> Any:
    made = torch.zeros(3)
    made[0] = x[1]
    made[1:] = 5
    return made


def counted(x: Any) -> Any:
    made = torch.arange(3.0)
    other = made
    made /= x[:3] + 1
    return other + torch.arange(3)


def number(x: Any) -> Any:
    total = torch.tensor(0.5)
    other = total
    total += x.sum()
    return other, total


def a_sum(x: Any) -> Any:
    total = x.sum()
    other = total
    total += 1
    return other


def a_loop(x: Any) -> Any:
    total = torch.zeros(())
    for i in range(x.shape[0]):
        total += x[i]
    return total


def bits(x: Any) -> Any:
    made = torch.ones(3, dtype=torch.bool)
    other = made
    made &= x[:3] > 1
    return other


@pytest.mark.parametrize(
    "function",
    [updated, viewed, listed, an_item, counted, number, a_sum, a_loop, bits],
)
@pytest.mark.parametrize("length", [4, 400])
def test_a_write_is_seen_through_every_name(
    function: Callable[[Any], Any], length: int
) -> None:
    fused = nfuser.fuse(function)
    for k in range(2):
        x = torch.arange(float(length)) + k
        torch.testing.assert_close(fused(x), function(x))


def test_a_tensor_that_torch_computed_inside_is_refused() -> None:
    def function(x: Any) -> Any:
        made = torch.arange(6).reshape(2, 3)
        made += x.long()
        return made

    with pytest.raises(MutationError, match="torch made while tracing"):
        nfuser.fuse(function)(torch.ones(3))


def test_what_is_put_into_a_dict_is_there() -> None:
    def step(state: Any, x: Any) -> Any:
        state["mean"] = state["mean"] * 0.5 + x
        state["seen"].append(x.sum())
        return state["mean"]

    fused = nfuser.fuse(step)
    theirs: dict[str, Any] = {"mean": torch.ones(3), "seen": []}
    mine: dict[str, Any] = {"mean": torch.ones(3), "seen": []}
    for k in range(3):
        wanted, found = step(theirs, torch.ones(3) * k), fused(mine, torch.ones(3) * k)
        torch.testing.assert_close(found, wanted)
        torch.testing.assert_close(mine, theirs)
        assert found is mine["mean"]


def test_a_dict_is_left_alone_where_torch_records() -> None:
    def step(state: Any, x: Any) -> Any:
        state["seen"] = x * 2
        return (x * x).sum()

    x = torch.ones(3, requires_grad=True)
    with pytest.raises(MutationError, match="lists and dicts"):
        nfuser.fuse(step)({}, x)
