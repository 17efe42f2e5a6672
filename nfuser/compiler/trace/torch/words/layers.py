# SPDX-License-Identifier: Apache-2.0
"""Layers of ``torch.nn.functional``: norms, and what compares rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ops as ops
from nfuser.compiler.dtypes import as_dtype
from nfuser.compiler.trace.torch.words.common import (
    axis_of,
)
from nfuser.compiler.trace.torch.words.folds import WORDS as FOLDS
from nfuser.errors import ArgumentError, UnsupportedError

if TYPE_CHECKING:
    from nfuser.compiler.trace.torch.words.common import Word
    from nfuser.compiler.trace.tracer import Tracer


def _normed_axes(name: str, x: Any, shape: Any) -> tuple[int, ...]:
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    found = tuple(x.shape)[x.ndim - len(shape) :]
    if len(shape) > x.ndim or any(a != b for a, b in zip(shape, found, strict=True)):
        message = (
            f"{name}: expected an input whose last sizes are {tuple(shape)}, found "
            f"one of shape {tuple(x.shape)}"
        )
        raise ArgumentError(message)
    return axes


def _layer_norm(
    t: Tracer,
    x: Any,
    normalized_shape: Any,
    weight: Any = None,
    bias: Any = None,
    eps: Any = 1e-05,
    cudnn_enable: Any = True,
) -> Any:
    del cudnn_enable
    axes = _normed_axes("layer_norm", x, normalized_shape)
    return _affine(_standard(t, x, axes, eps), weight, bias)


def _standard(t: Tracer, x: Any, axes: tuple[int, ...], eps: Any) -> Any:
    mean = t.handlers["mean"](t, x, axis=axes, keepdims=True)
    centred = x - mean
    power = t.handlers["mean"](t, centred * centred, axis=axes, keepdims=True)
    return centred * t.call(ops.rsqrt, power + eps)


def _affine(x: Any, weight: Any, bias: Any) -> Any:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def _rms_norm(
    t: Tracer, x: Any, normalized_shape: Any, weight: Any = None, eps: Any = None
) -> Any:
    axes = _normed_axes("rms_norm", x, normalized_shape)
    if eps is None:
        held = as_dtype(x.dtype)
        eps = float(t.namespace.finfo(held.compute.numpy).eps)
    power = t.handlers["mean"](t, x * x, axis=axes, keepdims=True)
    return _affine(x * t.call(ops.rsqrt, power + eps), weight, None)


def _group_norm(
    t: Tracer,
    x: Any,
    num_groups: Any,
    weight: Any = None,
    bias: Any = None,
    eps: Any = 1e-05,
    cudnn_enabled: Any = True,
) -> Any:
    del cudnn_enabled
    batch, channels, *rest = x.shape
    if channels % num_groups != 0:
        message = (
            f"group_norm: expected a number of channels that {num_groups} groups "
            f"divide, found {channels}"
        )
        raise ArgumentError(message)
    grouped = x.reshape(batch, num_groups, channels // num_groups, *rest)
    axes = tuple(range(2, x.ndim + 1))
    normed = _standard(t, grouped, axes, eps).reshape(batch, channels, *rest)
    return _affine(normed, _channels(weight, x), _channels(bias, x))


def _channels(weight: Any, x: Any) -> Any:
    """Return what is one number a channel, the axis 1, so that it meets ``x``."""
    return weight if weight is None else weight[(slice(None), *(None,) * (x.ndim - 2))]


def _batch_norm(
    t: Tracer,
    x: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    training: Any = False,
    momentum: Any = 0.1,
    eps: Any = 1e-05,
    cudnn_enabled: Any = True,
) -> Any:
    del momentum, cudnn_enabled
    if training and running_mean is not None:
        message = (
            "write model.eval(), or track_running_stats=False: a batch norm that "
            "updates its running statistics has no fused form"
        )
        raise UnsupportedError(message)
    if training or running_mean is None:
        axes = (0, *range(2, x.ndim))
        normed = _standard(t, x, axes, eps)
    else:
        scale = t.call(ops.rsqrt, running_var + eps)
        normed = (x - _channels(running_mean, x)) * _channels(scale, x)
    return _affine(normed, _channels(weight, x), _channels(bias, x))


def _normalize(t: Tracer, x: Any, p: Any = 2.0, dim: Any = 1, eps: Any = 1e-12) -> Any:
    size = FOLDS["norm"](t, x, p, dim, keepdim=True)
    return x / np.maximum(size, eps)


def _cosine_similarity(
    t: Tracer, x1: Any, x2: Any, dim: Any = 1, eps: Any = 1e-08
) -> Any:
    axis = axis_of(dim, max(x1.ndim, x2.ndim))
    product = t.handlers["sum"](t, x1 * x2, axis=axis)
    sizes = (FOLDS["norm"](t, x, 2, axis) for x in (x1, x2))
    first, second = (np.maximum(size, eps) for size in sizes)
    return product / (first * second)


WORDS: dict[str, Word] = {
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "group_norm": _group_norm,
    "batch_norm": _batch_norm,
    "normalize": _normalize,
    "cosine_similarity": _cosine_similarity,
}
