# SPDX-License-Identifier: Apache-2.0
"""Two models that learn: digits made by a formula, and words that follow others.

The layers are torch's; what lies between them is a piece each, fused or torch's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

import nfuser

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Pieces = Mapping[str, Callable[..., Any]]

F: Any = torch.nn.functional


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
    f.__name__: nfuser.fuse(f)
    for f in (cross_entropy, rms_norm, swiglu, rotated, biased_tanh)
}


def without_autocast(pieces: Pieces) -> Pieces:
    """Return pieces that compute in the dtypes of their tensors under autocast."""

    def apart(piece: Callable[..., Any]) -> Callable[..., Any]:
        def call(*tensors: Any) -> Any:
            with torch.autocast("cpu", enabled=False):
                return piece(*tensors)

        return call

    return {name: apart(piece) for name, piece in pieces.items()}


def _torch_cross_entropy(logits: Any, hit: Any) -> Any:
    return F.cross_entropy(logits.flatten(0, -2), hit.argmax(-1).flatten())


def _torch_rotated(x: Any, cos: Any, sin: Any) -> Any:
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


EAGER: dict[str, Callable[..., Any]] = {
    "cross_entropy": _torch_cross_entropy,
    "rms_norm": lambda x, w: F.rms_norm(x, w.shape, w, 1e-6),
    "swiglu": lambda a, b: F.silu(a) * b,
    "rotated": _torch_rotated,
    "biased_tanh": lambda x, b: torch.tanh(x + b),
}


@dataclass(frozen=True)
class Size:
    """How much a model sees in a step, and how wide its layers are."""

    rows: int
    length: int
    width: int
    words: int = 20


@dataclass(frozen=True)
class Made:
    """A model: what it learns, and its loss."""

    parameters: list[Any]
    loss: Callable[[], Any]


class _Numbers:
    """Random parameters of one dtype, from one seed."""

    def __init__(self, seed: int, dtype: Any) -> None:
        self._source = torch.Generator().manual_seed(seed)
        self.dtype = dtype

    def __call__(self, *shape: int, scale: float = 1.0) -> Any:
        made = torch.randn(*shape, generator=self._source, dtype=torch.float64) * scale
        return made.to(self.dtype).requires_grad_()


def digits(count: int, dtype: Any) -> tuple[Any, Any]:
    """Return pictures of waves, eight by eight, and the one of ten that each is of."""
    kind = torch.arange(count) % 10
    at = torch.arange(64, dtype=torch.float64)
    waves = torch.sin((kind[:, None] + 1) * at / 9 + torch.arange(count)[:, None] % 7)
    return waves.to(dtype), F.one_hot(kind, 10).to(dtype)


def perceptron(pieces: Pieces, size: Size, seed: int, dtype: Any) -> Made:
    """Return a perceptron that tells digits."""
    random, width = _Numbers(seed, dtype), size.width
    first, bias = random(64, width, scale=0.1), random(width, scale=0.1)
    last = random(width, 10, scale=0.1)
    x, hit = digits(size.rows, dtype)

    def loss() -> Any:
        hidden = pieces["biased_tanh"](x @ first, bias)
        return pieces["cross_entropy"]((hidden @ last).to(dtype), hit)

    return Made([first, bias, last], loss)


def transformer(pieces: Pieces, size: Size, seed: int, dtype: Any) -> Made:
    """Return a transformer of two layers that says which word comes next."""
    random, width, length = _Numbers(seed, dtype), size.width, size.length
    text = torch.arange(size.rows)[:, None] * 3 + torch.arange(length + 1) ** 2
    text = text % size.words
    hit = F.one_hot(text[:, 1:], size.words).to(dtype)
    angle = torch.arange(length)[:, None] / 10 ** (torch.arange(width // 2) / 4)
    cos, sin = (f(angle).to(dtype).repeat(1, 2) for f in (torch.cos, torch.sin))
    scale = 0.8 / width**0.5
    table, head = random(size.words, width), random(width, size.words, scale=scale)
    layers = [_layer(random, width, scale) for _ in range(2)]
    mask = torch.full((length, length), -1e9, dtype=dtype).triu(1)

    def loss() -> Any:
        x = table[text[:, :-1]]
        for first, qkv, second, up, down in layers:
            q, key, v = (pieces["rms_norm"](x, first) @ qkv).chunk(3, dim=-1)
            q, key = (pieces["rotated"](t.contiguous(), cos, sin) for t in (q, key))
            weights = torch.softmax(q @ key.transpose(1, 2) / width**0.5 + mask, -1)
            x = x + weights @ v.to(weights.dtype)
            a, b = (pieces["rms_norm"](x, second) @ up).chunk(2, dim=-1)
            x = x + pieces["swiglu"](a, b) @ down
        return pieces["cross_entropy"]((x @ head).to(dtype), hit)

    return Made([table, head, *(w for layer in layers for w in layer)], loss)


def _layer(random: _Numbers, width: int, scale: float) -> list[Any]:
    """Return the weights of two norms, of attention, and of a gated layer."""
    ones = [torch.ones(width, dtype=random.dtype).requires_grad_() for _ in range(2)]
    qkv, up = (random(width, k * width, scale=scale) for k in (3, 4))
    return [ones[0], qkv, ones[1], up, random(2 * width, width, scale=scale)]


def trained(
    made: Made, steps: int, context: Callable[[], Any] | None = None
) -> list[float]:
    """Return the loss of each step; the parameters change."""
    optimizer = torch.optim.SGD(made.parameters, lr=0.1, momentum=0.9)
    return [step(made, optimizer, context) for _ in range(steps)]


def step(made: Made, optimizer: Any, context: Callable[[], Any] | None = None) -> float:
    """Take one step, with the loss in a ``context`` of torch's."""
    optimizer.zero_grad()
    if context is None:
        value = made.loss()
    else:
        with context():
            value = made.loss()
    value.backward()
    optimizer.step()
    return float(value.detach())
