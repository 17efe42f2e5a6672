# SPDX-License-Identifier: Apache-2.0
"""Gradients that PyTorch computes of the random programs, under NumPy's names."""

# Tensors have no static type that a strict checker could use.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# pyright: reportMissingImports=false

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

torch: Any = pytest.importorskip("torch")


class Array(torch.Tensor):
    """A tensor with the methods of NumPy's arrays that the programs use."""

    def __getitem__(self, key: Any) -> Any:
        """Return a part, also along slices that go backwards."""
        keys = key if isinstance(key, tuple) else (key,)
        part: Any = self
        for axis, one in enumerate(keys):
            if isinstance(one, slice) and (one.step or 1) < 0:
                part = _taken(part, np.arange(part.shape[axis])[one], axis)
        forward = [
            slice(None) if isinstance(one, slice) and (one.step or 1) < 0 else one
            for one in keys
        ]
        return torch.Tensor.__getitem__(part, tuple(forward))

    def astype(self, name: str) -> Any:
        """Return the numbers in the dtype of this name."""
        return self.to(getattr(torch, name))


def _taken(x: Any, places: Any, axis: int) -> Any:
    return torch.index_select(x, axis, torch.from_numpy(places.copy()))


def _fold(fold: Callable[..., Any]) -> Callable[..., Any]:
    """Return the fold along an axis, or along all of them."""

    def call(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
        axes = tuple(range(x.ndim)) if axis is None else (axis,)
        return fold(x, dim=axes, keepdim=keepdims)

    return call


def _product(x: Any, dim: tuple[int, ...], keepdim: bool) -> Any:
    for axis in sorted(dim, reverse=True):
        x = torch.prod(x, axis, keepdim=keepdim)
    return x


def _padded(x: Any, widths: Any, mode: str) -> Any:
    """Return the array padded as NumPy pads: by places, but for zeros."""
    for axis, (before, after) in enumerate(widths):
        if mode == "constant":
            around = [0, 0] * (x.ndim - 1 - axis) + [before, after]
            x = torch.nn.functional.pad(x, around)
        else:
            places: Any = np.pad(np.arange(x.shape[axis]), (before, after), mode=mode)  # type: ignore[call-overload]
            x = _taken(x, places, axis)
    return x


def _between(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of two arrays that takes numbers too."""

    def call(x: Any, y: Any) -> Any:
        like = x if isinstance(x, torch.Tensor) else y
        return function(*(torch.as_tensor(v, dtype=like.dtype) for v in (x, y)))

    return call


_OWN: dict[str, Callable[..., Any]] = {
    "maximum": _between(torch.maximum),
    "minimum": _between(torch.minimum),
    "hypot": _between(torch.hypot),
    "arctan2": _between(torch.atan2),
    "cbrt": lambda x: torch.sign(x) * torch.abs(x) ** (1 / 3),
    "pad": _padded,
    "sum": _fold(torch.sum),
    "mean": _fold(torch.mean),
    "max": _fold(torch.amax),
    "min": _fold(torch.amin),
    "prod": _fold(_product),
    "var": _fold(partial(torch.var, correction=0)),
    "concatenate": torch.cat,
    "repeat": torch.repeat_interleave,
    "expand_dims": torch.unsqueeze,
    "transpose": torch.permute,
    "flip": lambda x, axis: torch.flip(x, (axis,)),
    "sort": lambda x, axis: torch.sort(x, dim=axis, stable=True).values,
}


class _Words:
    """NumPy's functions, by PyTorch's."""

    def __getattr__(self, name: str) -> Any:
        """Return PyTorch's function of the same name, unless it means another thing."""
        return _OWN.get(name) or getattr(torch, name)


WORDS = _Words()


def gradients_of(function: Callable[..., Any], xs: Sequence[Any]) -> list[Any]:
    """Return the gradients of a function of ``WORDS``, as JAX's are meant."""
    tensors = [torch.from_numpy(np.array(x, order="C")).as_subclass(Array) for x in xs]
    for tensor in tensors:
        tensor.requires_grad_()
    value = function(*tensors)
    found = torch.autograd.grad(value, tensors, materialize_grads=True)
    return [
        np.asarray(g.detach().as_subclass(torch.Tensor).conj().resolve_conj())
        for g in found
    ]
