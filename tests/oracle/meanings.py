# SPDX-License-Identifier: Apache-2.0
"""The table of what each function means for values with bounds."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.oracle import binary, complex_parts, composites, reductions, unary
from tests.oracle.views import VIEWS
from tests.oracle.value import Value, cast, from_array

if TYPE_CHECKING:
    from collections.abc import Callable

# Array-API and ndarray spellings of NumPy's names.
ALIASES = {
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atan2": "arctan2",
    "atanh": "arctanh",
    "abs": "absolute",
    "amax": "max",
    "amin": "min",
    "bitwise_invert": "invert",
    "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift",
    "bitwise_not": "invert",
    "conj": "conjugate",
    "expit": "sigmoid",
    "pow": "power",
    "true_divide": "divide",
    "permute_dims": "transpose",
    "round": "rint",
}


def _cast(name: str, x: Value, dtype: Any) -> Value:
    return cast(x, np.dtype(dtype))


def _float(name: str) -> Callable[[Any], Value]:
    return partial(unary.float_function, name)


def _silu(name: str, x: Value) -> Value:
    return composites.silu(x, _float("sigmoid"))


def _gelu(name: str, x: Value, approximate: str = "none") -> Value:
    if approximate == "tanh":
        return composites.gelu_tanh(x)
    return composites.gelu_erf(x, _float("erf"))


def _unnamed(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda name, *args, **kwargs: function(*args, **kwargs)


def _table() -> dict[str, Callable[..., Any]]:
    table: dict[str, Callable[..., Any]] = {}
    groups: list[tuple[Any, Callable[..., Any]]] = [
        ((*unary.MONOTONE, "sin", "cos"), unary.float_function),
        (("cosh",), unary.cosh),
        (unary.STEPS, unary.step),
        (unary.TESTS, unary.test),
        (("signbit",), unary.signbit),
        (("negative", "positive", "absolute", "sign"), unary.exact_function),
        (("invert",), unary.invert),
        (("logical_not",), unary.logical_not),
        (("add", "subtract"), binary.add),
        (("multiply",), binary.multiply),
        (("divide",), binary.divide),
        (("floor_divide",), binary.floor_divide),
        (("remainder", "fmod"), binary.remainder),
        (("power",), binary.power),
        (("arctan2",), binary.atan2),
        (("hypot",), binary.hypot),
        (("logaddexp", "logaddexp2"), binary.logaddexp),
        (("copysign",), binary.copysign),
        (("nextafter",), binary.nextafter),
        (("maximum", "minimum", "fmax", "fmin"), binary.extreme),
        (binary.COMPARISONS, binary.compare),
        (binary.LOGIC, binary.logic),
        (binary.BITS, binary.bits),
        (("where",), binary.where),
        (("square",), binary.square),
        (("clip",), binary.clip),
        (("astype",), _cast),
        (("sum",), reductions.total),
        (("prod",), reductions.product),
        (("max", "min"), reductions.extreme),
        (("any", "all"), reductions.truth),
        (("count_nonzero",), reductions.count_nonzero),
        (("argmax", "argmin"), reductions.position),
        (("mean",), reductions.mean),
        (("var", "std"), reductions.variance),
        (("silu",), _silu),
        (("gelu",), _gelu),
        (complex_parts.PARTS, complex_parts.part),
    ]
    for names, meaning in groups:
        table.update(dict.fromkeys(names, meaning))
    for (
        name
    ) in "relu softmax log_softmax logsumexp layer_norm rms_norm var_mean".split():
        table[name] = _unnamed(getattr(composites, name))
    return table


_TABLE = _table()


def apply(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the meaning of the function called ``name``."""
    name = ALIASES.get(name, name)
    args = tuple(from_array(a) if isinstance(a, np.ndarray) else a for a in args)
    with np.errstate(all="ignore"):
        if name in VIEWS:
            source, *rest = args
            return source.view(lambda x: VIEWS[name](x, *rest, **kwargs))
        first = args[0] if args else None
        is_complex = isinstance(first, Value) and first.dtype.kind == "c"
        if is_complex and name in complex_parts.OWN:
            return complex_parts.OWN[name](name, *args, **kwargs)
        return _TABLE[name](name, *args, **kwargs)
