# SPDX-License-Identifier: Apache-2.0
"""Losses of ``torch.nn.functional``, with its reductions."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ops as ops
from nfuser.compiler.trace.torch.words.common import (
    in_dtype,
    one_of,
    refuse_others,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.trace.torch.words.common import Word
    from nfuser.compiler.trace.tracer import Tracer


def _reduced(t: Tracer, name: str, loss: Any, reduction: Any) -> Any:
    one_of(name, "reduction", reduction, ("none", "mean", "sum"))
    return loss if reduction == "none" else t.handlers[reduction](t, loss)


def _pointwise(name: str, formula: Callable[..., Any]) -> Word:
    def word(
        t: Tracer,
        x: Any,
        target: Any,
        size_average: Any = None,
        reduce: Any = None,
        reduction: Any = "mean",
        **options: Any,
    ) -> Any:
        refuse_others(name, size_average=size_average, reduce=reduce)
        return _reduced(t, name, formula(t, x, target, **options), reduction)

    return word


def _mse(t: Tracer, x: Any, target: Any, weight: Any = None) -> Any:
    del t
    refuse_others("mse_loss", weight=weight)
    return (x - target) * (x - target)


def _l1(t: Tracer, x: Any, target: Any, weight: Any = None) -> Any:
    refuse_others("l1_loss", weight=weight)
    return t.call(ops.absolute, x - target)


def _smooth_l1(t: Tracer, x: Any, target: Any, beta: Any = 1.0) -> Any:
    gap = t.call(ops.absolute, x - target)
    if beta == 0:
        return gap
    return np.where(gap < beta, 0.5 * gap * gap / beta, gap - 0.5 * beta)


def _huber(
    t: Tracer,
    x: Any,
    target: Any,
    reduction: Any = "mean",
    delta: Any = 1.0,
    weight: Any = None,
) -> Any:
    refuse_others("huber_loss", weight=weight)
    gap = t.call(ops.absolute, x - target)
    loss = np.where(gap <= delta, 0.5 * gap * gap, delta * (gap - 0.5 * delta))
    return _reduced(t, "huber_loss", loss, reduction)


def _kl_div(
    t: Tracer,
    x: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: Any = "mean",
    log_target: Any = False,
) -> Any:
    refuse_others("kl_div", size_average=size_average, reduce=reduce)
    if log_target:
        loss = t.call(ops.exp, target) * (target - x)
    else:
        inside = np.where(target > 0, target, 1.0)
        loss = np.where(target > 0, target * t.call(ops.log, inside), 0.0) - target * x
    if reduction == "batchmean":
        return t.handlers["sum"](t, loss) / x.shape[0]
    return _reduced(t, "kl_div", loss, reduction)


def _bce(
    t: Tracer,
    x: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: Any = "mean",
) -> Any:
    refuse_others("binary_cross_entropy", size_average=size_average, reduce=reduce)
    first = np.maximum(t.call(ops.log, x), -100.0)  # as torch bounds it
    second = np.maximum(t.call(ops.log1p, -x), -100.0)
    loss = -(target * first + (1 - target) * second)
    loss = loss if weight is None else loss * weight
    return _reduced(t, "binary_cross_entropy", loss, reduction)


def _bce_logits(
    t: Tracer,
    x: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: Any = "mean",
    pos_weight: Any = None,
) -> Any:
    name = "binary_cross_entropy_with_logits"
    refuse_others(name, size_average=size_average, reduce=reduce)
    grown = t.namespace.softplus(-x)
    if pos_weight is not None:
        grown = grown * ((pos_weight - 1) * target + 1)
    loss = (1 - target) * x + grown
    loss = loss if weight is None else loss * weight
    return _reduced(t, name, loss, reduction)


def _nll_loss(
    t: Tracer,
    x: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: Any = -100,
    reduce: Any = None,
    reduction: Any = "mean",
) -> Any:
    refuse_others("nll_loss", size_average=size_average, reduce=reduce)
    one_of("nll_loss", "reduction", reduction, ("none", "mean", "sum"))
    axis = 1 if x.ndim > 1 else 0
    counted = target != ignore_index
    safe = np.where(counted, target, 0)
    places = t.handlers["expand_dims"](t, safe, axis)
    chosen = t.handlers["take_along_axis"](t, x, places, axis)
    chosen = t.handlers["squeeze"](t, chosen, axis)
    share = in_dtype(t, counted, x.dtype)
    if weight is not None:
        share = np.where(counted, t.handlers["take"](t, weight, safe, 0), 0.0)
    loss = np.where(counted, -chosen * share, 0.0)
    if reduction == "mean":
        return t.handlers["sum"](t, loss) / t.handlers["sum"](t, share)
    return _reduced(t, "nll_loss", loss, reduction)


def _cross_entropy(
    t: Tracer,
    x: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: Any = -100,
    reduce: Any = None,
    reduction: Any = "mean",
    label_smoothing: Any = 0.0,
) -> Any:
    refuse_others("cross_entropy", size_average=size_average, reduce=reduce)
    axis = 1 if x.ndim > 1 else 0
    logs = t.namespace.log_softmax(x, axis=axis)
    if t.tensor(target).dtype.is_float:
        refuse_others("cross_entropy", weight=weight)
        count = x.shape[axis]
        target = target * (1 - label_smoothing) + label_smoothing / count
        loss = -t.handlers["sum"](t, logs * target, axis=axis)
        if reduction == "mean":
            batch = x.size if x.ndim == 1 else x.size // count
            return t.handlers["sum"](t, loss) / (1 if x.ndim == 1 else batch)
        return _reduced(t, "cross_entropy", loss, reduction)
    if label_smoothing == 0:
        given = {"ignore_index": ignore_index, "reduction": reduction}
        return _nll_loss(t, logs, target, weight, **given)
    refuse_others("cross_entropy", weight=weight)
    counted = target != ignore_index
    exact = _nll_loss(t, logs, target, ignore_index=ignore_index, reduction="none")
    smooth = np.where(counted, -t.handlers["mean"](t, logs, axis=axis), 0.0)
    loss = (1 - label_smoothing) * exact + label_smoothing * smooth
    if reduction == "mean":
        share = in_dtype(t, counted, x.dtype)
        return t.handlers["sum"](t, loss) / t.handlers["sum"](t, share)
    return _reduced(t, "cross_entropy", loss, reduction)


WORDS: dict[str, Word] = {
    "mse_loss": _pointwise("mse_loss", _mse),
    "l1_loss": _pointwise("l1_loss", _l1),
    "smooth_l1_loss": _pointwise("smooth_l1_loss", _smooth_l1),
    "huber_loss": _huber,
    "kl_div": _kl_div,
    "binary_cross_entropy": _bce,
    "binary_cross_entropy_with_logits": _bce_logits,
    "nll_loss": _nll_loss,
    "cross_entropy": _cross_entropy,
}
