# SPDX-License-Identifier: Apache-2.0
"""Models whose pieces are fused learn as they do in torch alone."""

# torch has partial types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownParameterType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser

if TYPE_CHECKING:
    from collections.abc import Callable

torch: Any = pytest.importorskip("torch")


def cross_entropy(logits: Any, hit: Any) -> Any:
    top = np.max(logits, axis=-1, keepdims=True)
    total = np.log(np.exp(logits - top).sum(axis=-1, keepdims=True)) + top
    return ((total - logits) * hit).sum(axis=-1).mean()


def rms_norm(x: Any, w: Any) -> Any:
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-6) * w


def swiglu(a: Any, b: Any) -> Any:
    return a / (1 + np.exp(-a)) * b


def rotated(x: Any, cos: Any, sin: Any) -> Any:
    half = x.shape[-1] // 2
    turned = np.concatenate([-x[..., half:], x[..., :half]], axis=-1)
    return x * cos + turned * sin


def biased_tanh(x: Any, b: Any) -> Any:
    return np.tanh(x + b)


FUSED: dict[str, Callable[..., Any]] = {
    "cross_entropy": nfuser.fuse(cross_entropy),
    "rms_norm": nfuser.fuse(rms_norm),
    "swiglu": nfuser.fuse(swiglu),
    "rotated": nfuser.fuse(rotated),
    "biased_tanh": nfuser.fuse(biased_tanh),
}


def _eager_cross_entropy(logits: Any, hit: Any) -> Any:
    return torch.nn.functional.cross_entropy(
        logits.flatten(0, -2), hit.argmax(-1).flatten()
    )


def _eager_rotated(x: Any, cos: Any, sin: Any) -> Any:
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


EAGER: dict[str, Callable[..., Any]] = {
    "cross_entropy": _eager_cross_entropy,
    "rms_norm": lambda x, w: torch.nn.functional.rms_norm(x, w.shape, w, 1e-6),
    "swiglu": lambda a, b: torch.nn.functional.silu(a) * b,
    "rotated": _eager_rotated,
    "biased_tanh": lambda x, b: torch.tanh(x + b),
}


def _digits(count: int) -> tuple[Any, Any]:
    """Return pictures of waves, eight by eight, and the one of ten that each is of."""
    kind = torch.arange(count) % 10
    at = torch.arange(64, dtype=torch.float64)
    waves = torch.sin((kind[:, None] + 1) * at / 9 + torch.arange(count)[:, None] % 7)
    return waves, torch.nn.functional.one_hot(kind, 10).double()


def _random(*shape: int, scale: float = 1.0) -> Any:
    return (torch.randn(*shape, dtype=torch.float64) * scale).requires_grad_()


def _perceptron(pieces: dict[str, Callable[..., Any]]) -> tuple[list[Any], Any]:
    torch.manual_seed(0)
    w = [_random(64, 32, scale=0.1), _random(32, scale=0.1), _random(32, 10, scale=0.1)]
    x, hit = _digits(120)

    def loss() -> Any:
        hidden = pieces["biased_tanh"](x @ w[0], w[1])
        return pieces["cross_entropy"](hidden @ w[2], hit)

    return w, loss


def _transformer(pieces: dict[str, Callable[..., Any]]) -> tuple[list[Any], Any]:
    torch.manual_seed(1)
    length, width, words, layers = 12, 16, 20, 2
    text = (torch.arange(8)[:, None] * 3 + torch.arange(length + 1) ** 2) % words
    hit = torch.nn.functional.one_hot(text[:, 1:], words).double()
    angle = torch.arange(length)[:, None] / 10 ** (torch.arange(width // 2) / 4)
    cos, sin = (f(angle).double().repeat(1, 2) for f in (torch.cos, torch.sin))
    table, head = _random(words, width), _random(width, words, scale=0.2)
    shapes = [
        (width,),
        (width, 3 * width),
        (width,),
        (width, 4 * width),
        (2 * width, width),
    ]
    w = [
        _random(*s, scale=0.2) if len(s) > 1 else torch.ones(s, dtype=torch.float64)
        for _ in range(layers)
        for s in shapes
    ]
    for p in w:
        p.requires_grad_()
    mask = torch.full((length, length), -1e9, dtype=torch.float64).triu(1)

    def loss() -> Any:
        x = table[text[:, :-1]]
        for k in range(layers):
            first, qkv, second, up, down = w[5 * k : 5 * k + 5]
            q, key, v = (pieces["rms_norm"](x, first) @ qkv).chunk(3, dim=-1)
            q, key = (pieces["rotated"](t.contiguous(), cos, sin) for t in (q, key))
            weights = torch.softmax(q @ key.transpose(1, 2) / 4 + mask, dim=-1)
            x = x + weights @ v
            a, b = (pieces["rms_norm"](x, second) @ up).chunk(2, dim=-1)
            x = x + pieces["swiglu"](a, b) @ down
        return pieces["cross_entropy"](x @ head, hit)

    return [table, head, *w], loss


def _trained(
    model: Any, pieces: dict[str, Callable[..., Any]], steps: int
) -> tuple[list[float], Any]:
    parameters, loss = model(pieces)
    optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
    losses: list[float] = []
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        losses.append(float(value.detach()))
    return losses, parameters


@pytest.mark.parametrize(("model", "steps"), [(_perceptron, 200), (_transformer, 20)])
def test_the_steps_of_training_are_those_of_torch(model: Any, steps: int) -> None:
    found, ours = _trained(model, FUSED, steps)
    wanted, theirs = _trained(model, EAGER, steps)
    assert wanted[-1] < 0.9 * wanted[0]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-5)
