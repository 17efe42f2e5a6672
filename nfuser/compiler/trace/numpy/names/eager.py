# SPDX-License-Identifier: Apache-2.0
"""The functions that NumPy lacks, on NumPy arrays, for code that runs unfused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nfuser.compiler.trace.numpy.movement.pads import widths
from nfuser.errors import ShapeError

_erf = np.vectorize(math.erf, otypes=[np.float64])
_erfc = np.vectorize(math.erfc, otypes=[np.float64])


def _wide(x: Any) -> tuple[Any, Any]:
    """Return ``x`` as f64, and the float dtype of the result."""
    x = np.asarray(x)
    result = np.exp(np.zeros((), x.dtype)).dtype
    return x.astype(np.float64), result


def _narrow(x: Any, dtype: Any) -> Any:
    return np.asarray(x).astype(dtype)[()]


def erf(x: Any) -> Any:
    """Return the error function."""
    wide, dtype = _wide(x)
    return _narrow(_erf(wide) if wide.size else wide, dtype)


def erfc(x: Any) -> Any:
    """Return 1 minus the error function."""
    wide, dtype = _wide(x)
    return _narrow(_erfc(wide) if wide.size else wide, dtype)


def rsqrt(x: Any) -> Any:
    """Return ``1 / sqrt(x)``."""
    wide, dtype = _wide(x)
    with np.errstate(all="ignore"):
        return _narrow(1 / np.sqrt(wide), dtype)


def sigmoid(x: Any) -> Any:
    """Return ``1 / (1 + exp(-x))``."""
    wide, dtype = _wide(x)
    with np.errstate(all="ignore"):
        return _narrow(1 / (1 + np.exp(-wide)), dtype)


def silu(x: Any) -> Any:
    """Return ``x * sigmoid(x)``."""
    wide, dtype = _wide(x)
    with np.errstate(all="ignore"):
        quotient = wide / (1 + np.exp(-wide))
    return _narrow(np.where(wide == -np.inf, -0.0, quotient), dtype)


def softplus(x: Any) -> Any:
    """Return ``log(1 + exp(x))``."""
    wide, dtype = _wide(x)
    return _narrow(np.logaddexp(wide, 0), dtype)


def relu(x: Any) -> Any:
    """Return ``x`` where it is positive, else 0."""
    x = np.asarray(x)
    return np.maximum(x, np.zeros((), x.dtype))


def gelu(x: Any, *, approximate: str = "none") -> Any:
    """Return ``x`` times the normal distribution at ``x``."""
    wide, dtype = _wide(x)
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)
        bend = np.tanh(inner)
    else:
        bend = erf(wide * math.sqrt(0.5))
    with np.errstate(all="ignore"):
        return _narrow(0.5 * wide * (1 + bend), dtype)


def _float(x: Any) -> Any:
    x = np.asarray(x)
    return x if x.dtype.kind not in "biu" else x.astype(np.float64)


def softmax(x: Any, axis: Any = -1) -> Any:
    """Return ``exp(x)`` over its sum along ``axis``."""
    x = _float(x)
    grown = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return grown / np.sum(grown, axis=axis, keepdims=True)


def log_softmax(x: Any, axis: Any = -1) -> Any:
    """Return the logarithm of ``softmax``."""
    x = _float(x)
    return x - logsumexp(x, axis, keepdims=True)


def logsumexp(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Return ``log(sum(exp(a)))``."""
    a = _float(a)
    top = np.max(a, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, np.zeros((), a.dtype))
    with np.errstate(all="ignore"):
        total = np.log(np.sum(np.exp(a - top), axis=axis, keepdims=True)) + top
    if keepdims:
        return total
    axes = tuple(range(a.ndim)) if axis is None else axis
    return np.squeeze(total, axis=axes)[()]


def layer_norm(
    x: Any, weight: Any = None, bias: Any = None, *, axis: Any = -1, eps: float = 1e-5
) -> Any:
    """Return ``x`` with mean 0 and variance 1 along ``axis``, scaled and shifted."""
    x = _float(x)
    mean = np.mean(x, axis=axis, keepdims=True, dtype=np.float64)
    variance = np.var(x, axis=axis, keepdims=True, dtype=np.float64)
    result = ((x - mean) / np.sqrt(variance + eps)).astype(x.dtype)
    result = result if weight is None else result * weight
    return result if bias is None else result + bias


def rms_norm(x: Any, weight: Any = None, *, axis: Any = -1, eps: float = 1e-6) -> Any:
    """Return ``x`` over its root mean square along ``axis``, scaled."""
    x = _float(x)
    square = np.mean(np.square(x.astype(np.float64)), axis=axis, keepdims=True)
    result = (x / np.sqrt(square + eps)).astype(x.dtype)
    return result if weight is None else result * weight


def var_mean(x: Any, axis: Any = None, **options: Any) -> Any:
    """Return variance and mean."""
    keepdims = options.get("keepdims", False)
    return np.var(x, axis=axis, **options), np.mean(x, axis=axis, keepdims=keepdims)


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """Return ``x`` with another dtype."""
    del device
    return np.asarray(x).astype(dtype, copy=copy)


def pad(array: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> Any:
    """Return ``numpy.pad``; in mode constant, negative widths drop elements."""
    array = np.asarray(array)
    if mode != "constant":
        return np.pad(array, pad_width, mode, **options)
    kept: list[slice] = []
    grown: list[tuple[Any, Any]] = []
    for axis, (left, right) in enumerate(widths(pad_width, array.ndim)):
        before, after = max(left, 0), max(right, 0)
        stop = array.shape[axis] + before + right
        if stop + min(left, 0) < 0:
            message = f"pad: negative widths drop more than there is along axis {axis}"
            raise ShapeError(message)
        grown.append((before, after))
        kept.append(slice(max(-left, 0), stop))
    return np.pad(array, grown, mode, **options)[tuple(kept)]


def sort(
    a: Any, axis: Any = -1, *given: Any, descending: bool = False, **options: Any
) -> Any:
    """Return ``numpy.sort``, from the largest on if asked."""
    found: Any = np.sort(a, axis, *given, **options)
    return np.flip(found, axis) if descending else found


def argsort(
    a: Any, axis: Any = -1, *given: Any, descending: bool = False, **options: Any
) -> Any:
    """Return ``numpy.argsort``; equal ones keep their order from the largest on."""
    if not descending:
        return np.argsort(a, axis, *given, **options)
    a, axis = (np.ravel(a), 0) if axis is None else (np.asarray(a), axis)
    options = options if given or "kind" in options else {"stable": True, **options}
    behind: Any = np.argsort(np.flip(a, axis), axis, *given, **options)
    return a.shape[axis] - 1 - np.flip(behind, axis)


FUNCTIONS = {
    verb.__name__: verb
    for verb in (
        erf,
        erfc,
        rsqrt,
        sigmoid,
        silu,
        softplus,
        relu,
        gelu,
        softmax,
        log_softmax,
        logsumexp,
        layer_norm,
        rms_norm,
        var_mean,
        astype,
        pad,
        sort,
        argsort,
    )
}
