# SPDX-License-Identifier: Apache-2.0
"""What networks are made of and NumPy lacks: softmax, norms, gelu."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nfuser.compiler.ops as ops
from nfuser.compiler.trace.numpy.dispatch.keywords import plain

if TYPE_CHECKING:
    from nfuser.compiler.trace.tracer import Tracer


def _softmax(name: str, default: Any = -1) -> Any:
    verb = getattr(ops, name)

    def handler(t: Tracer, x: Any, axis: Any = default) -> Any:
        return t.call_on_tensor(verb, x, plain(axis))

    return handler


def _logsumexp(t: Tracer, a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    axis = plain(axis)
    return t.call_on_tensor(ops.logsumexp, a, axis, keepdims=keepdims)


def _gelu(t: Tracer, x: Any, *, approximate: str = "none") -> Any:
    return t.call(ops.gelu, x, approximate=approximate)


def _norm(t: Tracer, verb: Any, x: Any, extras: tuple[Any, ...], **options: Any) -> Any:
    tensors = [None if e is None else t.tensor(e) for e in extras]
    options["axis"] = plain(options["axis"])
    options["eps"] = float(options["eps"])
    return t.call_on_tensor(verb, x, *tensors, **options)


def _layer_norm(
    t: Tracer,
    x: Any,
    weight: Any = None,
    bias: Any = None,
    *,
    axis: Any = -1,
    eps: Any = 1e-5,
) -> Any:
    return _norm(t, ops.layer_norm, x, (weight, bias), axis=axis, eps=eps)


def _rms_norm(
    t: Tracer, x: Any, weight: Any = None, *, axis: Any = -1, eps: Any = 1e-6
) -> Any:
    return _norm(t, ops.rms_norm, x, (weight,), axis=axis, eps=eps)


HANDLERS: dict[str, Any] = {
    "softmax": _softmax("softmax"),
    "log_softmax": _softmax("log_softmax"),
    "logsumexp": _logsumexp,
    "gelu": _gelu,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
}
