# SPDX-License-Identifier: Apache-2.0
"""A fused call with tensors that require gradients is an operation of torch's graph."""

# torch has partial types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownParameterType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
import nfuser.numpy as xp

if TYPE_CHECKING:
    from collections.abc import Callable

torch: Any = pytest.importorskip("torch")


def _leaf(*shape: int, dtype: Any = None) -> Any:
    made = torch.rand(*shape, dtype=dtype or torch.float64) + 0.1
    return made.requires_grad_()


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "elementwise": lambda x, y: np.sin(x) * y / (1 + x * x),
    "stretched": lambda x, y: x[:, None] * y[:, :1] + y,
    "normalized": lambda x, y: (x - x.mean(-1, keepdim=True)) / np.sqrt(y.var(-1) + 1),
    "product": lambda x, y: np.tanh(x @ y.T),
    "nest": lambda x, y: {"a": (x * y).sum(), "b": (x.cumsum(0), 3)},
    "moved": lambda x, y: np.concatenate([x[::-1], np.pad(y, 1)[1:, 1:-1]]) ** 2,
    "softmax": lambda x, y: xp.softmax(x * y) * y,
    "chosen": lambda x, y: np.where(x > y, np.log(x), y * y),
}


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_gradients_and_their_gradients_pass_the_checks_of_torch(name: str) -> None:
    fused = nfuser.fuse(_FUNCTIONS[name])

    def tensors(x: Any, y: Any) -> Any:
        found = fused(x, y)
        if isinstance(found, dict):
            return found["a"], found["b"][0]
        return found

    torch.manual_seed(0)
    x, y = _leaf(3, 3), _leaf(3, 3)
    assert torch.autograd.gradcheck(tensors, (x, y))
    assert torch.autograd.gradgradcheck(tensors, (x, y))


class _Norm(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(4))
        self.bias = torch.nn.Parameter(torch.rand(4))
        self.register_buffer("shift", torch.rand(4))

    @nfuser.fuse
    def forward(self, x: Any) -> Any:
        return self.plain(x)

    def plain(self, x: Any) -> Any:
        centred = x - x.mean(-1, keepdim=True)
        spread = (centred * centred).mean(-1, keepdim=True)
        return centred / (spread + 1e-5) ** 0.5 * self.weight + self.bias + self.shift


@pytest.mark.parametrize("leaf", [True, False], ids=["of x, too", "of parameters"])
def test_parameters_that_are_captured_get_their_gradients(leaf: bool) -> None:
    torch.manual_seed(0)
    module, x = _Norm(), torch.rand(5, 4, requires_grad=leaf)
    inputs = [*module.parameters(), *([x] if leaf else [])]
    for _ in range(3):
        found = torch.autograd.grad((module(x) ** 2).sum(), inputs)
        wanted = torch.autograd.grad((module.plain(x) ** 2).sum(), inputs)
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
        with torch.no_grad():  # other numbers in the same tensors
            module.weight.mul_(2)
    module.bias.requires_grad_(False)
    (found,) = torch.autograd.grad(module(x).sum(), [module.weight])
    (wanted,) = torch.autograd.grad(module.plain(x).sum(), [module.weight])
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def test_methods_and_modules_that_are_fused_as_objects_train() -> None:
    class Scale(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = torch.nn.Parameter(torch.rand(6, 3))

        def forward(self, x: Any) -> Any:
            return x @ self.w

    x, module = torch.rand(4, 6), Scale()
    for fused in (nfuser.fuse(module), nfuser.fuse(module.forward)):
        for _ in range(3):
            module.w.grad = None
            fused(x).sum().backward()
            found, module.w.grad = module.w.grad, None
            module.forward(x).sum().backward()
            torch.testing.assert_close(found, module.w.grad)
            with torch.no_grad():
                module.w += 0.1


def test_a_training_loop_goes_as_the_plain_one() -> None:
    losses: list[list[float]] = []
    for call in (_Norm.forward, _Norm.plain):
        torch.manual_seed(0)
        module, x = _Norm(), torch.rand(16, 4)
        optimizer = torch.optim.SGD(module.parameters(), 0.05)
        history: list[float] = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = (call(module, x) - 1.0).square().mean()
            loss.backward()
            optimizer.step()
            history.append(loss.item())
        losses.append(history)
    np.testing.assert_allclose(*losses, rtol=1e-5)


def test_hooks_checkpoints_and_versions_work_as_for_torchs_own() -> None:
    fused = nfuser.fuse(lambda x, y: x * x * y)
    x, y = _leaf(3), _leaf(3)
    seen: list[Any] = []
    made = fused(x, y)
    made.register_hook(lambda t: seen.append(t) or t * 2)
    (found,) = torch.autograd.grad(made.sum(), x, retain_graph=True)
    torch.testing.assert_close(found, 4 * x * y)
    assert len(seen) == 1
    saved = torch.utils.checkpoint.checkpoint(fused, x, y, use_reentrant=False)
    torch.testing.assert_close(*torch.autograd.grad(saved.sum(), y), x * x)
    with torch.no_grad():
        y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        made.sum().backward()


def test_what_is_not_asked_for_is_not_computed_or_recorded() -> None:
    fused = nfuser.fuse(lambda x, y: (x * y, x > y, 2))
    x, y = _leaf(3), torch.rand(3, dtype=torch.float64)
    product, larger, two = fused(x, y)
    assert product.requires_grad
    assert not larger.requires_grad
    assert two == 2
    torch.testing.assert_close(*torch.autograd.grad(product.sum(), x), y)
    with torch.no_grad():
        assert not fused(x, y)[0].requires_grad
    assert not fused(x.detach(), y)[0].requires_grad


def test_complex_gradients_are_those_of_torch() -> None:
    def function(x: Any, z: Any) -> Any:
        return np.exp(z * x) * z.conj()

    x, z = _leaf(3), _leaf(3, dtype=torch.complex128)
    fused = nfuser.fuse(function)
    found = torch.autograd.grad(fused(x, z).abs().sum(), (x, z))
    plain = (torch.exp(z * x) * z.conj()).abs().sum()
    torch.testing.assert_close(found, torch.autograd.grad(plain, (x, z)))


def test_a_dropout_drops_the_same_on_the_way_back() -> None:
    fused = nfuser.fuse(lambda x, rng: nfuser.nn.dropout(x, 0.5, rng=rng) * 3)
    rng, x = nfuser.random.default_rng(3), _leaf(1000)
    made = fused(x, rng)
    (found,) = torch.autograd.grad(made.sum(), x)
    torch.testing.assert_close(found * x, made)
    assert rng.state["call"] == 1
    inside = nfuser.fuse(lambda x: nfuser.nn.dropout(x, 0.5, rng=rng))
    with pytest.raises(nfuser.NfuserError, match="pass the generator"):
        inside(x)


def test_what_writes_into_its_arguments_is_refused_before_it_writes() -> None:
    def doubled(x: Any, y: Any) -> Any:
        y *= 2
        return x * y

    fused = nfuser.fuse(doubled)
    x, y = _leaf(3), torch.ones(3, dtype=torch.float64)
    with pytest.raises(nfuser.NfuserError, match="write into a copy"):
        fused(x, y)
    assert (y == 1).all()
    with torch.no_grad():
        fused(x, y)
    assert (y == 2).all()


@pytest.mark.parametrize("name", ["grad", "vmap", "jacrev"])
def test_transforms_of_functions_are_refused_by_name(name: str) -> None:
    fused = nfuser.fuse(lambda x, y: np.sin(x) * y)
    y = torch.ones(3)
    transformed = getattr(torch.func, name)(lambda x: fused(x, y).sum())
    with pytest.raises(nfuser.NfuserError, match=r"tracer of torch\.func"):
        transformed(torch.rand(2, 3))


def _saved(value: Any) -> list[tuple[int, ...]]:
    return [tuple(x.shape) for x in value.grad_fn.saved_tensors if x is not None]


def test_what_the_way_back_does_not_read_is_not_saved() -> None:
    def turned(x: Any, cos: Any) -> Any:
        return x * cos + np.roll(x, 2, axis=-1)

    x, cos = _leaf(5, 4), torch.rand(4, dtype=torch.float64)
    value = nfuser.fuse(turned)(x, cos)
    assert _saved(value) == [(4,)]
    t = torch.rand(5, 4, dtype=torch.float64)
    (found,) = torch.autograd.grad(value, x, t)
    assert torch.allclose(found, t * cos + torch.roll(t, -2, -1))


def test_products_are_saved_and_gradients_of_gradients_go_through_them() -> None:
    def layer(x: Any, w: Any) -> Any:
        return np.tanh(x @ w) * 2

    x, w = _leaf(5, 4), _leaf(4, 3)
    assert _saved(nfuser.fuse(layer)(x, w)) == [(5, 4), (4, 3), (5, 3)]
    found: list[Any] = []
    for call in (nfuser.fuse(layer), lambda x, w: torch.tanh(x @ w) * 2):
        (slope,) = torch.autograd.grad(call(x, w).sum(), x, create_graph=True)
        found.append(torch.autograd.grad((slope * slope).sum(), (x, w)))
    for ours, theirs in zip(*found, strict=True):
        assert torch.allclose(ours, theirs)
