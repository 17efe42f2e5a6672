# SPDX-License-Identifier: Apache-2.0
"""Draws in torch's words: a run repeats under ``torch.manual_seed``."""

# What is drawn has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.compiler.trace.captures.randomness import torch_seeds
from nfuser.errors import DTypeError, TraceError
from nfuser.frontend.call import draws
from tests.random.philox import words_of

if TYPE_CHECKING:
    from collections.abc import Callable

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
F: Any = torch.nn.functional

DRAWS: dict[str, Callable[[Any], Any]] = {
    "dropout": lambda x: F.dropout(x + 1, 0.25),
    "rand_like": lambda x: x + torch.rand_like(x),
    "randn_like": lambda x: x + torch.randn_like(x),
    "bernoulli": lambda x: torch.bernoulli(torch.sigmoid(x)),
    "two draws": lambda x: torch.rand_like(x) - torch.rand_like(x),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_run_repeats_after_a_seed_and_calls_differ(name: str) -> None:
    x = torch.zeros(40, 50)
    fused = nfuser.fuse(DRAWS[name])
    runs: list[list[Any]] = []
    for _ in range(2):
        torch.manual_seed(5)
        runs.append([fused(x) for _ in range(3)])
    for one, other in zip(*runs, strict=True):
        assert torch.equal(one, other)
    first, second, _ = runs[0]
    assert not torch.equal(first, second)
    assert fused.cache_info().traces == 1
    assert fused.explain(x).kernels == 1


def test_draws_are_of_their_distributions() -> None:
    torch.manual_seed(1)
    x = torch.ones(1 << 10, 1 << 10)
    kept = nfuser.fuse(lambda x: F.dropout(x, 0.3))(x)
    assert abs(float((kept == 0).double().mean()) - 0.3) < 0.003
    torch.testing.assert_close(kept[kept != 0], x[kept != 0] / 0.7)
    u = nfuser.fuse(lambda x: torch.rand_like(x, dtype=torch.float64))(x)
    assert u.dtype is torch.float64
    assert abs(float(u.mean()) - 0.5) < 0.002
    z = nfuser.fuse(lambda x: torch.randn_like(x))(x)
    assert abs(float(z.std()) - 1) < 0.005
    b = nfuser.fuse(lambda p: torch.bernoulli(p))(x * 0.2)
    assert abs(float(b.mean()) - 0.2) < 0.003


def test_a_module_drops_while_it_trains_alone() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.Dropout(0.5))
    x = torch.randn(32, 8)
    with torch.no_grad():
        fused = nfuser.fuse(module.forward)
        module.train()
        assert float((fused(x) == 0).double().mean()) > 0.3
        module.eval()
        torch.testing.assert_close(fused(x), module(x))


def test_a_generator_that_is_given_is_drawn_from() -> None:
    x = torch.zeros(20, 30)
    fused = nfuser.fuse(lambda x, g: torch.bernoulli(x + 0.5, generator=g))
    found: list[Any] = []
    for seed in (3, 3, 4):
        generator = torch.Generator()
        generator.manual_seed(seed)
        before = torch.default_generator.get_state()
        found.append(fused(x, generator))
        assert torch.equal(torch.default_generator.get_state(), before)
        assert not torch.equal(fused(x, generator), found[-1])
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])
    assert fused.cache_info().traces == 1


def test_a_call_without_training_draws_nothing() -> None:
    before = torch.default_generator.get_state()
    x = torch.ones(5, 5)
    found = nfuser.fuse(lambda x: F.dropout(x, 0.5, training=False) * 2)(x)
    assert torch.equal(found, x * 2)
    assert torch.equal(torch.default_generator.get_state(), before)


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        nfuser.fuse(lambda x: F.dropout(x + 0, 1.5))(torch.ones(3))
    with pytest.raises(DTypeError, match=r"torch\.float32"):
        nfuser.fuse(lambda x: torch.rand_like(x))(torch.ones(3, dtype=torch.int64))


def test_integers_are_not_dropped_nor_probabilities() -> None:
    x = torch.ones(4, dtype=torch.int32)
    with pytest.raises(DTypeError, match="dropout takes floats"):
        nfuser.fuse(lambda x: torch.nn.functional.dropout(x, 0.5))(x)
    with pytest.raises(DTypeError, match="probabilities are floats"):
        nfuser.fuse(torch.bernoulli)(x)


def test_what_dropout_keeps_of_bfloat16_is_rounded_once() -> None:
    x = torch.linspace(1, 2, 1000).bfloat16()
    found = nfuser.fuse(lambda x: torch.nn.functional.dropout(x, 0.1))(x)
    wanted = (x.float() * (1 / 0.9)).bfloat16()
    assert 850 < int((found != 0).sum()) < 950
    torch.testing.assert_close(
        found, torch.where(found == 0, 0, wanted), rtol=0, atol=0
    )


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
def test_a_key_on_the_device_is_read_there(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []

    def noted(generator: Any) -> Any:
        given.append(torch_seeds.tensor_of_torch(generator))
        return given[-1]

    monkeypatch.setattr(
        torch_seeds, "is_on_gpu", lambda g, _: torch_seeds.is_of_torch(g)
    )
    monkeypatch.setattr(draws, "tensor_of_torch", noted)
    fused = nfuser.fuse(lambda x: F.dropout(x + 1, 0.25), backend=backend)
    x = torch.ones(6, 700, requires_grad=True)
    for _ in range(3):
        torch.manual_seed(5)
        made, other = fused(x), fused(x)
        torch.manual_seed(5)
        keys = [int(torch.randint((1 << 63) - 1, ())) for _ in range(2)]
        assert list(map(int, given[-2:])) == keys
        for found, key in zip((made, other), keys, strict=True):
            kept = words_of(key, 0, (6, 700))(16) >= 1 << 14
            np.testing.assert_array_equal((found != 0).numpy(), kept)
            (grad,) = torch.autograd.grad(found.sum(), x, retain_graph=True)
            np.testing.assert_array_equal((grad != 0).numpy(), kept)
    assert fused.explain(x).kernels == 1


@pytest.mark.parametrize("is_given", [False, True])
def test_what_is_kept_names_a_key_on_the_device_without_reading_it(
    is_given: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        torch_seeds, "is_on_gpu", lambda g, _: torch_seeds.is_of_torch(g)
    )

    def layer(x: Any, y: Any, generator: Any) -> Any:
        mask = torch.bernoulli(torch.full_like(x, 0.5), generator=generator)
        return torch.sin((x * mask) @ y)

    fused = nfuser.fuse(layer)
    x, y = (torch.rand(6, 6, requires_grad=True) for _ in range(2))
    generator = torch.Generator().manual_seed(3) if is_given else None

    def unread(tensor: Any) -> Any:
        raise AssertionError(tensor.shape)

    seeded = generator or torch.default_generator
    seeded.manual_seed(5)
    with monkeypatch.context() as patch:
        for name in ("__repr__", "item", "tolist", "__int__"):
            patch.setattr(torch.Tensor, name, unread)
        value = fused(x, y, generator)
        kept = [t for t in value.grad_fn.saved_tensors if t is not None]
        assert sum(t.ndim == 0 for t in kept) == 3  # a likeness, a stamp, the key
        wanted = torch.autograd.grad(value.sum(), (x, y))
    seeded.manual_seed(5)
    again = torch.utils.checkpoint.checkpoint(
        fused, x, y, generator, use_reentrant=False
    )
    if is_given:  # torch does not set it back
        with pytest.raises(TraceError, match=r"^write nfuser\.checkpoint"):
            again.sum().backward()
        return
    found = torch.autograd.grad(again.sum(), (x, y))
    assert all(map(torch.equal, found, wanted))
