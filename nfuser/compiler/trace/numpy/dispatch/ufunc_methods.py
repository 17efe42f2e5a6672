# SPDX-License-Identifier: Apache-2.0
"""``reduce`` and ``accumulate`` of ufuncs whose fold is another function's, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.trace.numpy.names.refusals as refusals
from nfuser.compiler.trace.numpy.composed.parts import array
from nfuser.compiler.trace.numpy.dispatch.keywords import given, keeps, plain

if TYPE_CHECKING:
    from nfuser.compiler.trace.tracer import Tracer

_OF_BOOL = {
    "bitwise_or": "any",
    "bitwise_and": "all",
    "bitwise_xor": "logical_xor.reduce",
}


def _folding(fold: str) -> Any:
    def handler(t: Tracer, x: Any, axis: Any = 0, **options: Any) -> Any:
        return t.handlers[fold](t, x, axis, **options)

    return handler


def _exclusive_or(
    t: Tracer, x: Any, axis: Any = 0, keepdims: Any = False, **options: Any
) -> Any:
    """Return ``numpy.logical_xor.reduce``: whether an odd number is true."""
    given("logical_xor.reduce", options)
    x = array(t, x)
    count = np.count_nonzero(x, axis=plain(axis), keepdims=keeps(keepdims))
    return count % 2 == 1


def _logaddexp(
    t: Tracer, x: Any, axis: Any = 0, keepdims: Any = False, **options: Any
) -> Any:
    """Return ``numpy.logaddexp.reduce``."""
    given("logaddexp.reduce", options)
    x = array(t, x)
    x = x.astype(np.fabs(x).dtype) if x.dtype.kind in "biu" else x
    return t.handlers["logsumexp"](t, x, plain(axis), keepdims=keeps(keepdims))


def _of_bits(name: str) -> Any:
    def handler(t: Tracer, x: Any, axis: Any = 0, **options: Any) -> Any:
        x = array(t, x)
        if x.dtype != bool:
            raise refusals.function(f"{name}.reduce")
        return t.handlers[_OF_BOOL[name]](t, x, axis, **options)

    return handler


def _of_truth(name: str, fold: str) -> Any:
    """Return the handler of ``accumulate`` of a logical function."""

    def handler(t: Tracer, x: Any, axis: Any = 0, **options: Any) -> Any:
        given(f"{name}.accumulate", options)
        truth = array(t, x).astype(bool)
        return t.handlers[f"{fold}.accumulate"](t, truth, axis).astype(bool)

    return handler


HANDLERS = {
    "fmax.reduce": _folding("nanmax"),
    "fmin.reduce": _folding("nanmin"),
    "logaddexp.reduce": _logaddexp,
    "logical_xor.reduce": _exclusive_or,
    "logical_or.accumulate": _of_truth("logical_or", "maximum"),
    "logical_and.accumulate": _of_truth("logical_and", "minimum"),
    **{f"{name}.reduce": _of_bits(name) for name in _OF_BOOL},
}
