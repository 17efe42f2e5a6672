# SPDX-License-Identifier: Apache-2.0
"""The way back draws what the way there drew, whoever holds the generator by then."""

# What is drawn has no static type.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import types
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import ArgumentError, TraceError
from nfuser.nn import dropout
from nfuser.random import default_rng

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
F: Any = torch.nn.functional


def _leaf(*shape: int, dtype: Any = torch.float64) -> Any:
    return torch.rand(*shape, dtype=dtype).add_(0.5).requires_grad_()


def _seeded(fused: Any) -> Any:
    def call(*args: Any) -> Any:
        torch.manual_seed(3)
        return fused(*args)

    return call


@pytest.mark.parametrize("p", [0.0, 1e-6, 0.3, 1 - 1e-4, 1.0])
def test_torch_dropout_has_the_gradients_of_its_mask(p: float) -> None:
    fused = nfuser.fuse(lambda x, w: F.dropout(torch.tanh(x @ w), p) * x.sum())
    x, w = _leaf(7, 5), _leaf(5, 6)
    made = _seeded(fused)(x, w)
    mask = nfuser.fuse(lambda x: F.dropout(x, p))
    with torch.no_grad():
        kept = _seeded(mask)(torch.ones(7, 6, dtype=torch.float64))
    wanted = kept * torch.tanh(x @ w) * x.sum()
    torch.testing.assert_close(made, wanted)
    t = torch.rand(7, 6, dtype=torch.float64)
    torch.rand(4)  # the generator moves on before the way back
    found = torch.autograd.grad(made, (x, w), t)
    torch.testing.assert_close(found, torch.autograd.grad(wanted, (x, w), t))


def test_draws_pass_the_checks_of_first_and_second_derivatives() -> None:
    def function(x: Any) -> Any:
        y = F.dropout(torch.sin(x) * x, 0.4)
        return F.dropout(y * torch.rand_like(x), 0.2) * x + torch.randn_like(x) * x**2

    call = _seeded(nfuser.fuse(function))
    assert torch.autograd.gradcheck(call, _leaf(4, 3))
    assert torch.autograd.gradgradcheck(call, _leaf(4, 3))


def test_a_mask_is_drawn_again_and_not_saved() -> None:
    x = _leaf(50, 40)
    fused = nfuser.fuse(lambda x: F.dropout(torch.tanh(x), 0.5))
    made = fused(x)
    assert [k.name for k in fused.saved(x)] == ["x"]
    assert [tuple(s.shape) for s in made.grad_fn.saved_tensors] == [(50, 40)]
    before = torch.default_generator.get_state()
    for _ in range(2):  # as often as it is asked for
        (found,) = torch.autograd.grad(made.sum(), x, retain_graph=True)
        assert torch.equal(found == 0, made == 0)
    assert torch.equal(torch.default_generator.get_state(), before)


def test_without_training_nothing_is_dropped_from_gradients() -> None:
    fused = nfuser.fuse(lambda x, on: F.dropout(x * x, 0.5, training=on))
    x = _leaf(30)
    before = torch.default_generator.get_state()
    (found,) = torch.autograd.grad(fused(x, False).sum(), x)
    torch.testing.assert_close(found, 2 * x.detach())
    assert torch.equal(torch.default_generator.get_state(), before)
    made = fused(x, True)
    (found,) = torch.autograd.grad(made.sum(), x)
    torch.testing.assert_close(found, 4 * x.detach() * (made != 0))


def test_bfloat16_gradients_are_rounded_once() -> None:
    x = _leaf(40, 50, dtype=torch.bfloat16)
    made = nfuser.fuse(lambda x: F.dropout(x, 0.1))(x)
    (found,) = torch.autograd.grad(made.sum(), x)
    assert found.dtype is torch.bfloat16
    scale = torch.tensor(1 / 0.9, dtype=torch.bfloat16)
    torch.testing.assert_close(
        found, torch.where(made != 0, scale, 0.0), rtol=0, atol=0
    )


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_what_torch_computes_again_drops_the_same(use_reentrant: bool) -> None:
    checkpoint = pytest.importorskip("torch.utils.checkpoint").checkpoint
    fused = nfuser.fuse(lambda x: F.dropout(torch.sin(x), 0.5))
    x = _leaf(200)
    made = checkpoint(fused, x, use_reentrant=use_reentrant)
    made.sum().backward()
    assert torch.equal(x.grad == 0, made == 0)
    torch.testing.assert_close(x.grad, torch.cos(x) * 2 * (made != 0))


def test_torchs_checkpoint_of_another_generators_draws_is_refused() -> None:
    """Its second run draws other numbers: what it keeps is not that of the first."""
    checkpoint = pytest.importorskip("torch.utils.checkpoint").checkpoint

    def squared(x: Any, rng: Any) -> Any:
        dropped = dropout(x, 0.5, rng=rng)
        return dropped * (dropped * dropped).sum(0)

    fused, rng, x = nfuser.fuse(squared), default_rng(1), _leaf(20, 1)
    made = checkpoint(lambda x: fused(x, rng), x, use_reentrant=False)
    with pytest.raises(TraceError, match=r"write nfuser\.checkpoint"):
        made.sum().backward()
    fused(x, rng).sum().backward()


def test_what_nfuser_computes_again_drops_the_same() -> None:
    part = nfuser.checkpoint(lambda x: F.dropout(torch.sin(x), 0.5))
    x = _leaf(200)
    made = nfuser.fuse(lambda x: part(x) * 3)(x)
    made.sum().backward()
    torch.testing.assert_close(x.grad, torch.cos(x) * 6 * (made != 0))


def test_a_module_with_dropout_learns() -> None:
    module = torch.nn.Sequential(
        torch.nn.Linear(8, 64), torch.nn.Dropout(0.5), torch.nn.Linear(64, 3)
    ).double()
    x = torch.rand(32, 8, dtype=torch.float64)
    made = _seeded(nfuser.fuse(module.forward))(x)
    found = torch.autograd.grad((made**2).sum(), list(module.parameters()))
    with torch.no_grad():
        ones = torch.ones(32, 64, dtype=torch.float64)
        kept = _seeded(nfuser.fuse(lambda x: F.dropout(x, 0.5)))(ones)
    plain = module[2](module[0](x) * kept)
    torch.testing.assert_close(made, plain)
    wanted = torch.autograd.grad((plain**2).sum(), list(module.parameters()))
    torch.testing.assert_close(found, wanted)


def test_generators_that_are_given_and_found_draw_together() -> None:
    given, found = default_rng(3), default_rng(4)
    fused = nfuser.fuse(
        lambda x, g, rng: (
            torch.bernoulli(x * 0 + 0.5, generator=g)
            * dropout(x, 0.5, rng=rng)
            * dropout(x, 0.25, rng=found)
            * rng.random(x.shape, torch.float64)
        )
    )
    x = _leaf(500)
    made = fused(x, torch.Generator(), given)
    assert (given.state["call"], found.state["call"]) == (2, 1)
    fused(x, torch.Generator(), found)
    (grad,) = torch.autograd.grad(made.sum(), x)
    torch.testing.assert_close(grad * x / 2, made)
    assert 100 < int((made == 0).sum()) < 480


def test_a_generator_may_have_another_name_by_then() -> None:
    holder = types.SimpleNamespace(rng=default_rng(1))
    fused = nfuser.fuse(lambda x: dropout(x, 0.5, rng=holder.rng))
    x = _leaf(500)
    made = fused(x)
    holder.rng = default_rng(2)
    (grad,) = torch.autograd.grad(made.sum(), x)
    torch.testing.assert_close(grad * x, made)
    assert holder.rng.state["call"] == 0


def test_a_function_that_draws_something_else_by_then_is_refused() -> None:
    holder = types.SimpleNamespace(times=1)

    def function(x: Any, rng: Any) -> Any:
        for _ in range(holder.times):
            x = x * rng.random(x.shape, torch.float64)
        return x

    x = _leaf(5)
    made = nfuser.fuse(function)(x, default_rng(1))
    holder.times = 2
    with pytest.raises(TraceError, match="on the way there"):
        torch.autograd.grad(made.sum(), x)


def test_calls_that_native_code_served_before_have_gradients() -> None:
    fused = nfuser.fuse(lambda x, rng: dropout(x, 0.5, rng=rng) * 3)
    rng, x = default_rng(8), _leaf(300)
    for call in range(5):
        with torch.no_grad():
            for _ in range(4):
                fused(x, rng)
        made = fused(x, rng)
        (grad,) = torch.autograd.grad(made.sum(), x)
        torch.testing.assert_close(grad * x, made)
        assert rng.state["call"] == 5 * (call + 1)


def test_vjp_draws_again_from_generators_that_the_function_finds() -> None:
    rng = default_rng(5)
    x = np.linspace(1, 2, 400)
    value, pull = nfuser.vjp(lambda x: dropout(np.sin(x), 0.5, rng=rng), x)
    rng.random(3)
    for _ in range(2):
        (found,) = pull(np.ones(400))
        np.testing.assert_allclose(found, 2 * np.cos(x) * (value != 0))
    assert rng.state["call"] == 2


def test_threads_that_share_a_generator_get_gradients_of_their_own_draws() -> None:
    rng = default_rng(6)
    fused = nfuser.fuse(lambda x, rng: dropout(x, 0.5, rng=rng) * 3)

    def step(x: Any) -> bool:
        made = fused(x, rng)
        (grad,) = torch.autograd.grad(made.sum(), x)
        return torch.allclose(grad * x, made)

    with ThreadPoolExecutor(8) as pool:
        # Made before: what torch draws while another thread traces would be refused.
        assert all(pool.map(step, [_leaf(300) for _ in range(64)]))
    assert rng.state["call"] == 64


def test_generators_of_numpy_are_refused_where_gradients_are_asked_for() -> None:
    fused = nfuser.fuse(lambda x, rng: x * rng.normal(size=3))
    rng = np.random.default_rng(3)
    with pytest.raises(ArgumentError, match=r"nfuser\.random\.default_rng\(seed\)"):
        fused(_leaf(3), rng)
    assert rng.bit_generator.state == np.random.default_rng(3).bit_generator.state
