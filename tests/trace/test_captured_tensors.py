# SPDX-License-Identifier: Apache-2.0
"""Tensors from outside that a function writes hold what plain Python leaves in them."""

# torch has partial types, and what a traced function is given has none.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import nfuser
from nfuser.errors import MutationError

if TYPE_CHECKING:
    from collections.abc import Callable

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

G = torch.zeros(4)


def an_element(x: Any) -> Any:
    G[0] += 1
    return x * 2


def by_a_method(x: Any) -> Any:
    G.add_(1)
    return x * 2


def of_an_argument(x: Any) -> Any:
    G[1] = x.sum()
    return x * 2


def by_a_method_of_an_argument(x: Any) -> Any:
    G.add_(x.sum())
    return x * 2


def a_running_mean(x: Any) -> Any:
    G.mul_(0.5).add_(x.mean())
    return x + G


def a_part(x: Any) -> Any:
    y = G[2:]
    y[0] += 5
    return x * 2


FUNCTIONS = (
    *(an_element, by_a_method, of_an_argument, by_a_method_of_an_argument),
    *(a_running_mean, a_part),
)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_call_writes(function: Any) -> None:
    x = torch.tensor([1.0, -2.0, 3.0, 0.5])
    fused = nfuser.fuse(function)
    found: list[list[Any]] = []
    for called in (function, fused):
        G.zero_()
        found.append([])
        for _ in range(4):
            found[-1] += [called(x), G.clone()]
    for wanted, given in zip(*found, strict=True):
        torch.testing.assert_close(given, wanted)
    assert fused.cache_info().traces == 1


def test_a_module_keeps_its_running_mean() -> None:
    class Centred(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.full((4,), 2.0))
            self.register_buffer("mean", torch.zeros(4))

        @nfuser.fuse
        def forward(self, x: Any) -> Any:
            self.mean.mul_(0.9).add_(0.1 * x.detach().mean(0))
            return (x - self.mean) * self.weight

    module, mean = Centred(), torch.zeros(4)
    for k in range(4):
        x = torch.arange(8.0).reshape(2, 4) + k
        with torch.no_grad():
            made = module(x)
        mean.mul_(0.9).add_(0.1 * x.mean(0))
        torch.testing.assert_close(module.mean, mean)
        torch.testing.assert_close(made, (x - mean) * 2)


class Counting(torch.nn.Module):
    def __init__(self, write: Callable[[Any, Any], object]) -> None:
        super().__init__()
        self.register_buffer("held", torch.ones(4))
        self.write = write

    def forward(self, x: Any) -> Any:
        self.write(self.held, x)
        return x + self.held


def an_element_of(held: Any, x: Any) -> None:
    held[0] += len(x)


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda held, x: held.copy_(2 * x), id="an argument copied"),
        pytest.param(lambda held, x: held.lerp_(x, 0.5), id="a mean"),
        pytest.param(lambda held, _: held.add_(1), id="a number"),
        pytest.param(an_element_of, id="an element"),
    ],
)
def test_a_write_that_a_library_calls_is_refused(write: Any) -> None:
    inner, x = Counting(write), torch.arange(4.0)
    for fused in (nfuser.fuse(inner), nfuser.fuse(lambda x: inner(x) * 2)):
        with pytest.raises(MutationError, match=r"module\.forward\(x\)"):
            fused(x)
    inner.held.fill_(1)
    plain = Counting(write)
    called = nfuser.fuse(lambda x: inner.forward(x) * 2)
    for _ in range(2):
        torch.testing.assert_close(called(x), plain(x) * 2)
        torch.testing.assert_close(inner.held, plain.held)
