# SPDX-License-Identifier: Apache-2.0
"""The workloads in other words: the same function, which must cost the same."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from asv_bench.compare.contest import OURS, make_row
from asv_bench.compare.peers import bind_nfuser
from asv_bench.compare.workloads import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from asv_bench.compare.devices import Cpu


# -- gelu and swiglu -------------------------------------------------------------------


def gelu_by_power(x: Any, bias: Any) -> Any:
    y = x + bias
    return 0.5 * y * (1 + np.tanh(0.7978845608 * (y + 0.044715 * y**3)))


def gelu_by_sigmoid(x: Any, bias: Any) -> Any:
    y = x + bias
    return y / (1 + np.exp(-1.5957691216 * y * (1 + 0.044715 * y * y)))


def swiglu_by_product(x: Any, gate: Any) -> Any:
    return x * gate * (1 / (1 + np.exp(-gate)))


def swiglu_by_tanh(x: Any, gate: Any) -> Any:
    return x * (0.5 * gate * (1 + np.tanh(0.5 * gate)))


# -- softmax and what is like it -------------------------------------------------------


def softmax_by_inverse(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e * (1 / np.sum(e, axis=-1, keepdims=True))


def softmax_by_indices(x: Any) -> Any:
    shifted = x - x.max(-1)[..., None]
    e = np.exp(shifted)
    return e / e.sum(-1)[..., None]


def log_softmax_by_sum(x: Any) -> Any:
    largest = x.max(axis=-1, keepdims=True)
    total = np.exp(x - largest).sum(axis=-1, keepdims=True)
    return x - (np.log(total) + largest)


def log_softmax_by_quotient(x: Any) -> Any:
    shifted = x - x.max(-1)[..., None]
    return shifted - np.log(np.exp(shifted).sum(-1))[..., None]


def _wide(x: Any) -> Any:
    return x.astype(np.float32)


def cross_entropy_of_rows(x: Any, target: Any) -> Any:
    largest = _wide(x.max(axis=-1, keepdims=True))
    total = np.log(np.exp(x - largest).sum(-1)) + largest[..., 0]
    return (total - np.take_along_axis(x, target[:, None], axis=-1)[:, 0]).mean()


def cross_entropy_by_log_softmax(x: Any, target: Any) -> Any:
    shifted = x - x.max(axis=-1, keepdims=True)
    logarithms = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return -np.take_along_axis(logarithms, target[:, None], axis=-1)[:, 0].mean()


# -- norms -----------------------------------------------------------------------------


def layer_norm_by_variance(x: Any, weight: Any, bias: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * weight + bias


def layer_norm_by_root(x: Any, weight: Any, bias: Any) -> Any:
    centred = x - x.mean(axis=-1, keepdims=True)
    inverse = 1 / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
    return centred * inverse * weight + bias


def layer_norm_by_squares(x: Any, weight: Any, bias: Any) -> Any:
    mean = x.mean(axis=-1, keepdims=True)
    variance = (x * x).mean(axis=-1, keepdims=True) - mean * mean
    return (x - mean) / np.sqrt(variance + 1e-5) * weight + bias


def rms_norm_by_root(x: Any, weight: Any) -> Any:
    return x * (1 / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5)) * weight


def rms_norm_by_sum(x: Any, weight: Any) -> Any:
    mean = np.sum(np.square(x), axis=-1)[..., None] / x.shape[-1]
    return weight * (x / np.sqrt(mean + 1e-5))


def add_rms_norm_by_root(x: Any, residual: Any, weight: Any) -> Any:
    h = x + residual
    inverse = 1 / np.sqrt((h**2).mean(axis=-1, keepdims=True) + 1e-5)
    return h, h * inverse * weight


def add_rms_norm_by_sum(x: Any, residual: Any, weight: Any) -> Any:
    h = x + residual
    mean = np.sum(np.square(h), axis=-1)[..., None] / h.shape[-1]
    return h, weight * (h / np.sqrt(mean + 1e-5))


def batch_norm_by_scale(x: Any, weight: Any, bias: Any) -> Any:
    mean = x.mean(axis=(0, 2, 3))[:, None, None]
    scale = weight / np.sqrt(x.var(axis=(0, 2, 3)) + 1e-5)
    return (x - mean) * scale[:, None, None] + bias[:, None, None]


def batch_norm_by_centred(x: Any, weight: Any, bias: Any) -> Any:
    centred = x - x.mean(axis=(0, 2, 3), keepdims=True)
    variance = (centred * centred).mean(axis=(0, 2, 3), keepdims=True)
    inverse = 1 / np.sqrt(variance + 1e-5)
    return centred * inverse * weight[:, None, None] + bias[:, None, None]


def statistics_by_centred(x: Any) -> Any:
    mean = x.mean(axis=(0, 2, 3), keepdims=True)
    return mean[0, :, 0, 0], ((x - mean) ** 2).mean(axis=(0, 2, 3))


def statistics_by_sums(x: Any) -> Any:
    count = x.shape[0] * x.shape[2] * x.shape[3]
    mean = x.sum(axis=(0, 2, 3)) / count
    centred = x - mean[:, None, None]
    return mean, (centred * centred).sum(axis=(0, 2, 3)) / count


# -- moves -----------------------------------------------------------------------------


def rope_by_where(x: Any, cos: Any, sin: Any) -> Any:
    h = x.shape[-1] // 2
    is_left = np.arange(x.shape[-1]) < h
    turned = np.roll(x, h, axis=-1)
    return x * cos + np.where(is_left, -turned, turned) * sin


def rope_by_halves(x: Any, cos: Any, sin: Any) -> Any:
    h = x.shape[-1] // 2
    a, b = x[..., :h], x[..., h:]
    left = a * cos[..., :h] - b * sin[..., :h]
    return np.concatenate([left, b * cos[..., h:] + a * sin[..., h:]], axis=-1)


def cat_of_relus(x: Any, y: Any) -> Any:
    return np.concatenate([np.maximum(x, 0), np.maximum(y, 0)], axis=-1)


def cat_by_where(x: Any, y: Any) -> Any:
    joined = np.concatenate([x, y], axis=1)
    return np.where(joined > 0, joined, 0)


def pad_by_cat(x: Any, y: Any) -> Any:
    border = np.zeros((x.shape[0], 8), x.dtype)
    return y + np.concatenate([border, x, border], axis=1)


def bias_by_rows(x: Any, bias: Any) -> Any:
    return (x + bias.reshape(-1)).reshape(-1, bias.shape[0], bias.shape[1])


# Beside the words of the table: the workload that each name begins, and others for it.
SPELLINGS: dict[str, tuple[Callable[..., Any], ...]] = {
    "gelu(x+b)": (gelu_by_power, gelu_by_sigmoid),
    "swiglu": (swiglu_by_product, swiglu_by_tanh),
    "softmax bf": (softmax_by_inverse, softmax_by_indices),
    "softmax f": (softmax_by_inverse, softmax_by_indices),
    "log_softmax": (log_softmax_by_sum, log_softmax_by_quotient),
    "cross entropy": (cross_entropy_of_rows, cross_entropy_by_log_softmax),
    "layer norm": (layer_norm_by_variance, layer_norm_by_root, layer_norm_by_squares),
    "RMS norm bf": (rms_norm_by_root, rms_norm_by_sum),
    "RMS norm f": (rms_norm_by_root, rms_norm_by_sum),
    "add + RMS norm": (add_rms_norm_by_root, add_rms_norm_by_sum),
    "batch norm, ": (batch_norm_by_scale, batch_norm_by_centred),
    "batch norm's": (statistics_by_centred, statistics_by_sums),
    "RoPE bf": (rope_by_where, rope_by_halves),
    "RoPE f": (rope_by_where, rope_by_halves),
    "cat + relu": (cat_of_relus, cat_by_where),
    "pad + add": (pad_by_cat,),
    "reshape + bias": (bias_by_rows,),
}


def spelling_rows(
    device: Cpu, only: Sequence[str], done: Callable[[Any], None], *, is_timed: bool
) -> None:
    """Make a row for each workload that has other words, a column for each of them."""
    for workload in WORKLOADS:
        sizes = workload.sizes(device.name, "" if is_timed else "tiny")
        begun = [name for name in SPELLINGS if workload.name.startswith(name)]
        sizes = sizes and tuple(n + n % 2 for n in sizes)  # RoPE's heads have halves
        if not (sizes and begun and workload.name.startswith(tuple(only) or "")):
            continue
        ours = {OURS: bind_nfuser}
        for number, function in enumerate(SPELLINGS[begun[0]], 2):
            ours[f"{OURS} {number}"] = partial(bind_nfuser, function=function)
        done(make_row(device, workload, sizes, {}, ours, is_timed))
