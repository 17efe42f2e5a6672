# SPDX-License-Identifier: Apache-2.0
"""The table of what each function means for values with bounds."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import tests.oracle.binary as binary
import tests.oracle.complex_parts as complex_parts
import tests.oracle.composites as composites
import tests.oracle.moves as moves
import tests.oracle.reductions as reductions
import tests.oracle.scans as scans
import tests.oracle.unary as unary
from tests.oracle.number_types import BOOL
from tests.oracle.value import COMPLEX, TABLE, Value, cast, exact

if TYPE_CHECKING:
    from collections.abc import Callable


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


def _rms_norm(
    name: str, x: Value, *weight: Value, axis: Any = -1, **options: Any
) -> Any:
    """Return rms_norm, doubted where a kernel that overflows gives zero."""
    result: Value = composites.rms_norm(x, *weight, axis=axis, **options)
    finite = exact(BOOL, np.isfinite(x.ref), x.doubt)
    all_finite = reductions.truth("all", finite, axis, True)
    squares = np.sum(composites.floating(x) ** 2, axis=axis, keepdims=True)
    over = all_finite.ref & ~np.isfinite(squares.ref)
    return replace(result, doubt=result.doubt | over)


def _unnamed(function: Callable[..., Any]) -> Callable[..., Any]:
    def meaning(name: str, *args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return meaning


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
        (binary.DIVISORS, binary.divisors),
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
        (scans.NAMES, scans.scan),
        (("var", "std"), reductions.variance),
        (("silu",), _silu),
        (("rms_norm",), _rms_norm),
        (moves.JOINS, moves.join),
        (("pad",), moves.pad),
        (("take",), moves.take),
        (("take_along_axis",), moves.take_along_axis),
        (("gelu",), _gelu),
        (complex_parts.PARTS, complex_parts.part),
    ]
    for names, meaning in groups:
        table.update(dict.fromkeys(names, meaning))
    for name in composites.NAMES:
        table.setdefault(name, _unnamed(getattr(composites, name)))
    return table


TABLE.update(_table())
COMPLEX.update(complex_parts.OWN)
