# SPDX-License-Identifier: Apache-2.0
"""Activations of ``torch.nn.functional``."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ops as ops
from nfuser.compiler.trace.torch.words.common import (
    axis_of,
    one_of,
)
from nfuser.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.trace.torch.words.common import Word
    from nfuser.compiler.trace.tracer import Tracer


def _gelu(t: Tracer, x: Any, approximate: Any = "none") -> Any:
    one_of("gelu", "approximate", approximate, ("none", "tanh"))
    if approximate == "none":
        return t.namespace.gelu(x)
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))
    return 0.5 * x * (1 + t.call(ops.tanh, inner))


def _of(formula: Callable[..., Any]) -> Word:
    """Return a word for a formula of floats; ``inplace`` changes no result."""

    def word(
        t: Tracer, x: Any, *args: Any, inplace: Any = False, **options: Any
    ) -> Any:
        if inplace:
            message = "leave inplace=True out, and bind the result to the name"
            raise UnsupportedError(message)
        return formula(t, x, *args, **options)

    return word


def _relu(t: Tracer, x: Any) -> Any:
    return t.call(ops.relu, x)


def _silu(t: Tracer, x: Any) -> Any:
    return t.call(ops.silu, x)


def _leaky_relu(t: Tracer, x: Any, negative_slope: Any = 0.01) -> Any:
    del t
    return np.where(x > 0, x, x * negative_slope)


def _elu(t: Tracer, x: Any, alpha: Any = 1.0) -> Any:
    return np.where(x > 0, x, alpha * t.call(ops.expm1, x))


def _celu(t: Tracer, x: Any, alpha: Any = 1.0) -> Any:
    return np.where(x > 0, x, alpha * t.call(ops.expm1, x / alpha))


_SELU = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717


def _selu(t: Tracer, x: Any) -> Any:
    scale, alpha = _SELU
    return scale * _elu(t, x, alpha)


def _hardtanh(t: Tracer, x: Any, min_val: Any = -1.0, max_val: Any = 1.0) -> Any:
    del t  # at the bounds the slope is 0, which that of clip is not
    return np.where(x <= min_val, min_val, np.where(x >= max_val, max_val, x))


def _relu6(t: Tracer, x: Any) -> Any:
    return _hardtanh(t, x, 0.0, 6.0)


def _hardsigmoid(t: Tracer, x: Any) -> Any:
    return _relu6(t, x + 3.0) / 6.0


def _hardswish(t: Tracer, x: Any) -> Any:
    return x * _hardsigmoid(t, x)


def _softplus(t: Tracer, x: Any, beta: Any = 1, threshold: Any = 20) -> Any:
    scaled = x if type(beta) is int and beta == 1 else x * beta
    smooth = t.namespace.softplus(scaled)
    smooth = smooth if scaled is x else smooth / beta
    return np.where(scaled > threshold, x, smooth)


def _logsigmoid(t: Tracer, x: Any) -> Any:
    return -t.namespace.softplus(-x)


def _mish(t: Tracer, x: Any) -> Any:
    return x * t.call(ops.tanh, t.namespace.softplus(x))


def _softsign(t: Tracer, x: Any) -> Any:
    return x / (1 + t.call(ops.absolute, x))


def _tanhshrink(t: Tracer, x: Any) -> Any:
    return x - t.call(ops.tanh, x)


def _glu(t: Tracer, x: Any, dim: Any = -1) -> Any:
    axis = axis_of(dim, x.ndim)
    before, half = (slice(None),) * axis, x.shape[axis] // 2
    gate = x[(*before, slice(half, None))]
    return x[(*before, slice(None, half))] * t.call(ops.sigmoid, gate)


_FORMULAS = {
    "relu": _relu,
    "silu": _silu,
    "leaky_relu": _leaky_relu,
    "elu": _elu,
    "celu": _celu,
    "selu": _selu,
    "hardtanh": _hardtanh,
    "relu6": _relu6,
    "hardsigmoid": _hardsigmoid,
    "hardswish": _hardswish,
    "mish": _mish,
}
WORDS: dict[str, Word] = {
    **{name: _of(formula) for name, formula in _FORMULAS.items()},
    "gelu": _gelu,
    "softplus": _softplus,
    "logsigmoid": _logsigmoid,
    "log_sigmoid": _logsigmoid,
    "softsign": _softsign,
    "tanhshrink": _tanhshrink,
    "glu": _glu,
}
