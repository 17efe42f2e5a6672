# SPDX-License-Identifier: Apache-2.0
"""Averages with weights, and what two samples have in common."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.ops import normal_axis
from nfuser.compiler.trace.numpy.composed.parts import array, conjugate
from nfuser.compiler.trace.numpy.dispatch.keywords import MISSING, given, keeps, plain
from nfuser.errors import ShapeError

if TYPE_CHECKING:
    from nfuser.compiler.trace.tracer import Tracer


def average(
    t: Tracer,
    a: Any,
    axis: Any = None,
    weights: Any = None,
    returned: Any = False,
    *,
    keepdims: Any = MISSING,
) -> Any:
    """Return ``numpy.average``; weights that sum to 0 divide by 0."""
    x, axis = array(t, a), plain(axis)
    kept = keeps(keepdims)
    if weights is None:
        found = np.mean(x, axis, keepdims=kept)
        scale = np.sum(np.ones_like(x, dtype=found.dtype), axis, keepdims=kept)
    else:
        share = _aligned(x, array(t, weights), axis)
        kinds = [x.dtype, share.dtype, *([np.float64] if x.dtype.kind in "biu" else [])]
        kind = np.result_type(*kinds)
        full = np.broadcast_to(share.astype(kind), x.shape)
        scale = np.sum(full, axis, keepdims=kept)
        found = np.sum(x.astype(kind) * full, axis, keepdims=kept) / scale
    return (found, scale) if returned else found


def _aligned(x: Any, weights: Any, axis: Any) -> Any:
    """Return ``weights`` with an axis of ``x`` for each of theirs."""
    if weights.ndim == x.ndim:
        _check_sizes(weights, x, range(x.ndim))
        return weights
    if axis is None:
        message = (
            "average: axis must be given where the weights, of "
            f"{weights.ndim} dimensions, are not shaped like the array, of {x.ndim}"
        )
        raise ShapeError(message)
    listed = axis if isinstance(axis, tuple) else (axis,)
    axes = [normal_axis(k, x.ndim) for k in listed]
    if len(axes) != weights.ndim:
        message = (
            f"average: expected weights of {len(axes)} dimensions, one for each axis "
            f"in {axis}, found {weights.ndim}"
        )
        raise ShapeError(message)
    order = sorted(range(len(axes)), key=axes.__getitem__)
    missing = tuple(k for k in range(x.ndim) if k not in axes)
    aligned = np.expand_dims(np.transpose(weights, order), missing)
    _check_sizes(aligned, x, axes)
    return aligned


def _check_sizes(weights: Any, x: Any, axes: Any) -> None:
    if any(weights.shape[k] != x.shape[k] for k in axes):
        message = (
            "average: expected weights of the sizes that the array has, found "
            f"{tuple(map(int, weights.shape))} beside {tuple(map(int, x.shape))}"
        )
        raise ShapeError(message)


def cov(
    t: Tracer,
    m: Any,
    y: Any = None,
    rowvar: Any = True,
    bias: Any = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Any:
    """Return ``numpy.cov`` without weights."""
    given("cov", {"fweights": fweights, "aweights": aweights})
    x = _observed(array(t, m), rowvar)
    x = x if y is None else np.concatenate([x, _observed(array(t, y), rowvar)])
    x = x.astype(np.result_type(x.dtype, np.float64) if dtype is None else dtype)
    ddof = (0 if bias else 1) if ddof is None else ddof
    centred = x - np.mean(x, 1, keepdims=True)
    freedom = x.shape[1] - ddof
    product = centred @ conjugate(centred).T
    return np.squeeze(product / (max(0, freedom)))


def _observed(x: Any, rowvar: Any) -> Any:
    """Return ``x`` with a row for each variable."""
    if x.ndim > 2:
        message = f"cov: expected at most two dimensions, found {x.ndim}"
        raise ShapeError(message)
    rows = np.atleast_2d(x)
    return rows if rowvar or x.ndim < 2 else rows.T


def corrcoef(
    t: Tracer, x: Any, y: Any = None, rowvar: Any = True, *, dtype: Any = None
) -> Any:
    """Return ``numpy.corrcoef``."""
    found = cov(t, x, y, rowvar, dtype=dtype)
    if not found.ndim:
        return found / found
    spread = np.sqrt(np.real(np.diagonal(found)))
    found = found / spread[:, None] / spread[None, :]
    if found.dtype.kind != "c":
        return np.clip(found, -1, 1)
    return np.clip(found.real, -1, 1) + 1j * np.clip(found.imag, -1, 1)


HANDLERS = {"average": average, "cov": cov, "corrcoef": corrcoef}
