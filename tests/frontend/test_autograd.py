# SPDX-License-Identifier: Apache-2.0
"""A fused call with tensors that require gradients is an operation of torch's graph."""

# torch has partial types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import weakref
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
import nfuser.numpy as xp
from nfuser.errors import ArgumentError

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
    "powers": lambda x, y: x**2.5 + y**3 + x**y,
    "roots": lambda x, y: np.sqrt(x) * np.cbrt(y) + np.square(x),
    "exponentials": lambda x, y: np.expm1(x) * np.exp2(y) + np.log1p(x) * np.log2(y),
    "angles": lambda x, y: np.arctan2(x, y) + np.hypot(x, y) + np.arcsin(x / 3),
    "hyperbolic": lambda x, y: np.cosh(x) * np.arcsinh(y) + np.sinh(y) / np.cosh(x),
    "trigonometric": lambda x, y: (
        np.tan(x) * np.arctan(y) + np.cos(x) * np.arccos(y / 3)
    ),
    "logarithms": lambda x, y: np.logaddexp(x, y) + np.log10(x + y),
    "reciprocals": lambda x, y: 1 / x + np.reciprocal(y) - x / y,
    "remainders": lambda x, y: np.fmod(x * 3, 0.7) * y + np.remainder(y, 0.3),
    "activations": lambda x, y: x / (1 + np.exp(-x)) * y,
    "gelu": lambda x, y: 0.5 * x * (1 + np.tanh(0.8 * (x + 0.04 * x**3))) + y,
    "errors": lambda x, y: xp.erf(x) * y,
    "folds": lambda x, y: (x * y).sum(0) + x.mean(1) - y.prod(0),
    "moments": lambda x, y: np.var(x * y, axis=0) + np.std(x, axis=1),
    "largest": lambda x, y: x.amax(-1) * y.amin(0),
    "norms": lambda x, y: np.sqrt((x * x).sum(-1)) * np.abs(y).sum(0),
    "of all": lambda x, y: (x.sum() * y - y.mean()).std(),
    "scanned": lambda x, y: np.cumsum(x * y, 1) - np.cumprod(y, 0),
    "sorted": lambda x, y: np.sort(x * 3 + y, axis=-1) * x,
    "taken": lambda x, y: np.take(x, [2, 0, 2], axis=0) * y[:, [1, 1, 0]],
    "by places": lambda x, y: np.take_along_axis(x, np.argsort(y, axis=1), 1) * y,
    "rolled": lambda x, y: np.roll(x, 1, 0) * np.flip(y, 1),
    "repeated": lambda x, y: np.repeat(x, 2, 1).sum(1) * np.tile(y, 2).sum(1),
    "reshaped": lambda x, y: x.reshape(9) * np.transpose(y).reshape(-1),
    "triangles": lambda x, y: np.tril(x) @ np.triu(y),
    "strided": lambda x, y: x[::2, 1:] * y[1:, ::2] - np.diagonal(x)[:2],
    "split": lambda x, y: np.concatenate(np.split(x, 3, 1)[::-1], 1) * y,
    "contracted": lambda x, y: np.einsum("ij,kj->ik", x, y) + np.outer(x[0], y[1]),
    "chained": lambda x, y: (x @ y @ x).T / 3,
    "vectors": lambda x, y: np.dot(x[0], y[1]) * (x @ y[0]) + np.inner(x, y[2]),
    "differences": lambda x, y: np.diff(x, axis=0) * np.diff(y, axis=0),
    "bounded": lambda x, y: np.clip(x * 2, 0.3, 1.2) * np.maximum(x, y) + np.fmin(x, y),
}
assert len(_FUNCTIONS) == 40


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


def _layers(x: Any, b: Any) -> Any:
    y = np.tanh(x + b)
    return y, y * b, np.exp(y.sum(-1))


def _layers_of_torch(x: Any, b: Any) -> Any:
    y = torch.tanh(x + b)
    return y, y * b, torch.exp(y.sum(-1))


def test_a_result_is_saved_in_the_place_of_what_it_is_computed_of() -> None:
    x, b = _leaf(3, 4), _leaf(4)
    fused = nfuser.fuse(lambda x, b: np.tanh(x + b))
    assert _saved(fused(x, b)) == [(3, 4)]
    found: list[list[Any]] = []
    for call in (fused, lambda x, b: torch.tanh(x + b)):
        value, slopes = call(x, b), []
        for k in range(4):  # derivatives of derivatives, to the fourth
            total = (value * torch.cos(torch.arange(12.0).reshape(3, 4) + k)).sum()
            value, of_b = torch.autograd.grad(total, (x, b), create_graph=True)
            slopes += [value.detach(), of_b.detach()]
        found.append(slopes)
    for ours, theirs in zip(*found, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-12)


@pytest.mark.parametrize("asking", [(True, True), (True, False), (False, True)])
def test_gradients_of_gradients_go_to_results_that_others_are_made_of(
    asking: tuple[bool, bool],
) -> None:
    given = [_leaf(3, 4).requires_grad_(asking[0]), _leaf(4).requires_grad_(asking[1])]
    asked = [x for x in given if x.requires_grad]
    found: list[list[Any]] = []
    for call in (nfuser.fuse(_layers), _layers_of_torch):
        slopes, kept = list(call(*given)), []
        for _ in range(3):
            total = sum((k + 1) * torch.tanh(t / 9).sum() for k, t in enumerate(slopes))
            slopes = torch.autograd.grad(total, asked, create_graph=True)
            kept += [t.detach() for t in slopes]
        found.append(kept)
    for ours, theirs in zip(*found, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-9)


def _normed_sum(x: Any, y: Any, weight: Any) -> Any:
    held = x + y
    return held / torch.sqrt((held * held).mean(-1, keepdim=True) + 0.1) * weight


@pytest.mark.parametrize("columns", [6, 4200], ids=["short rows", "long rows"])
def test_a_sum_is_saved_in_the_place_of_its_terms(columns: int) -> None:
    fused = nfuser.fuse(_normed_sum)
    leaves = _leaf(3, columns), _leaf(3, columns), _leaf(columns)
    x, y = (x * 1 for x in leaves[:2])
    held = [weakref.ref(x), weakref.ref(y)]
    value = fused(x, y, leaves[2])
    assert _saved(value)[:2] == [(columns,), (3, columns)]
    assert sum(map(prod, _saved(value))) <= 4 * columns + 3
    del x, y
    assert [ref() for ref in held] == [None, None]
    t = torch.rand(3, columns, dtype=torch.float64)
    found: list[Any] = []
    for result in (value, _normed_sum(*leaves)):
        slopes = torch.autograd.grad(result, leaves, t, create_graph=True)
        total = sum((slope * slope).sum() for slope in slopes)
        found.append([*slopes, *torch.autograd.grad(total, leaves)])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_a_term_may_be_weighted_by_an_integer_in_memory() -> None:
    x, y, n = _leaf(4, 4), _leaf(4, 4), torch.tensor(3)
    fused = nfuser.fuse(lambda x, y, n: np.sin(x * n + y))
    assert _saved(fused(x, y, n)) == [(), (4, 4)]
    assert torch.autograd.gradgradcheck(lambda x, y: fused(x, y, n), (x, y))


def test_a_sum_of_halves_is_rounded_as_torch_rounds_it() -> None:
    shapes = (5, 8), (5, 8), (8,)
    one, other, weight = (_leaf(*shape, dtype=torch.bfloat16) for shape in shapes)
    value = nfuser.fuse(_normed_sum)(one, other, weight)
    kept = [x for x in value.grad_fn.saved_tensors if x is not None][-1]
    assert torch.equal(kept, one + other)
    x, y, w = (x.detach().double().requires_grad_() for x in (one, other, weight))
    wanted = torch.autograd.grad(_normed_sum(x, y, w).sum(), [x, y, w])
    found = torch.autograd.grad(value.sum(), (one, other, weight))
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours.double(), theirs, rtol=0.02, atol=0.02)


_MADE_OF_TWO: dict[str, tuple[Callable[..., Any], int]] = {
    "a difference": (lambda x, y: np.exp(np.sin(x - 2 * y)), 1),
    "a choice by place": (lambda x, y: np.sin(np.tril(x) + y / 3), 1),
    "moved terms": (lambda x, y: np.sin(x.T[::-1] - y), 1),
    "a product": (lambda x, y: np.sin(x * y), 2),
    "a choice by value": (lambda x, y: np.sin(np.where(x > y, x, y)), 2),
    "a term that is read": (lambda x, y: np.sin(x + y) * x, 2),
}


@pytest.mark.parametrize("name", _MADE_OF_TWO)
def test_what_is_no_sum_keeps_its_arguments(name: str) -> None:
    function, count = _MADE_OF_TWO[name]
    x, y = _leaf(4, 4), _leaf(4, 4)
    fused = nfuser.fuse(function)
    assert len(_saved(fused(x, y))) == count
    assert torch.autograd.gradcheck(fused, (x, y))
    assert torch.autograd.gradgradcheck(fused, (x, y))


def test_what_depends_on_no_tensor_asks_for_no_gradient() -> None:
    @nfuser.fuse
    def parts(x: Any, y: Any) -> Any:
        return x * y, y + 1, np.floor(x), nfuser.stop_gradient(x) * 2

    x, y = _leaf(3), torch.rand(3, dtype=torch.float64)
    asked = [part.requires_grad for part in parts(x, y)]
    theirs = x * y, y + 1, torch.floor(x), x.detach() * 2
    assert asked == [part.requires_grad for part in theirs]
    parts(x, y)[0].sum().backward()
    torch.testing.assert_close(x.grad, y)


def test_terms_of_one_shape_have_one_gradient() -> None:
    fused = nfuser.fuse(lambda x, y, z: torch.tanh(x + y) * z)
    x, y, z = (torch.randn(3, 5, requires_grad=True) for _ in range(3))
    of_x, of_y, of_z = torch.autograd.grad(fused(x, y, z).sum(), [x, y, z])
    assert of_x is of_y
    assert of_x is not of_z
    row = torch.randn(1, 5, requires_grad=True)
    found = torch.autograd.grad(fused(x, row, z).sum(), [x, row])
    wanted = torch.autograd.grad((torch.tanh(x + row) * z).sum(), [x, row])
    for t, w in zip(found, wanted, strict=True):
        torch.testing.assert_close(t, w)


def test_who_changes_one_gradient_leaves_its_like_alone() -> None:
    fused = nfuser.fuse(lambda x, y: torch.tanh(x + y))
    x, y = (torch.zeros(5, requires_grad=True) for _ in range(2))
    fused(x, y).sum().backward()
    assert x.grad is not None
    x.grad.add_(1)
    fused(x, y).sum().backward()
    assert (x.grad == 3).all()
    assert (y.grad == 2).all()


@pytest.mark.filterwarnings("ignore:.*jit.script:DeprecationWarning")  # torch's own
def test_tangents_of_forward_mode_are_refused() -> None:
    forward = torch.autograd.forward_ad
    fused = nfuser.fuse(lambda x: torch.sin(x) * 2)
    x = torch.linspace(0, 1, 5)
    plain, *_ = [fused(x) for _ in range(4)]  # the last ones are native
    with forward.dual_level():
        torch.testing.assert_close(fused(x), plain)
        dual = forward.make_dual(x, torch.ones(5))
        with pytest.raises(ArgumentError, match=r"take nfuser\.jvp"):
            fused(dual)
        torch.testing.assert_close(fused(forward.unpack_dual(dual).primal), plain)
    torch.testing.assert_close(fused(x), plain)
