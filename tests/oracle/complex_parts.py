# SPDX-License-Identifier: Apache-2.0
"""What complex values have of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tests.oracle.number_types import Type, loop, precision
from tests.oracle.value import Value, convert, no_err, rounded

if TYPE_CHECKING:
    from collections.abc import Callable


PARTS = ("real", "imag", "conjugate")


def _real_type(dtype: Type) -> Type:
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def part(name: str, x: Value) -> Value:
    """Return the real or imaginary part, or the conjugate."""
    if name == "conjugate":
        x = convert(x, loop(np.conjugate, x.dtype)[0])
        return replace(x, ref=np.conjugate(x.ref))
    if x.dtype.kind != "c":
        if name == "real":
            return x
        return replace(x, ref=np.zeros_like(x.ref), err=no_err(x.shape))
    dtype = _real_type(x.dtype)
    ref = np.array(getattr(x.ref, name), precision(dtype).reference)
    return Value(dtype, ref, x.err, x.doubt, x.loose)


def _absolute(name: str, x: Value) -> Value:
    dtype = _real_type(x.dtype)
    ref = np.hypot(np.real(x.ref), np.imag(x.ref))
    return rounded(dtype, ref, 2 * x.err, x.doubt, 5)


def _exp(name: str, x: Value) -> Value:
    ref = np.exp(x.ref)
    unit = precision(x.dtype).unit
    size = np.abs(ref)
    open_ended = ~np.isfinite(size) | ~np.isfinite(x.ref)
    # The real factor may overflow where a part of the product does not.
    open_ended = open_ended | (np.exp(np.real(x.ref)) >= precision(x.dtype).top / 4)
    err = np.where(open_ended, 0.0, size * np.expm1(2 * x.err) + 24 * unit * size)
    own = 8 * precision(x.dtype).floor
    return rounded(x.dtype, ref, err + own, x.doubt | open_ended, ulps=0, loose=True)


def _sign(name: str, x: Value) -> Value:
    size = np.abs(x.ref)
    doubt = x.doubt | ~np.isfinite(size) | ((x.err > 0) & (size <= 4 * x.err))
    err = 4 * x.err / np.where(size > 0, size, 1) + 16 * precision(x.dtype).unit
    ref = np.where(size > 0, x.ref / np.where(size > 0, size, 1), 0)
    err = np.where(size > 0, err, 0.0).astype(np.float64)
    return rounded(x.dtype, ref, err, doubt, ulps=0, loose=True)


def _test(name: str, x: Value) -> Value:
    function = getattr(np, name)
    dtype = np.dtype(bool)
    return Value(dtype, np.asarray(function(x.ref)), no_err(x.shape), x.doubt)


OWN: dict[str, Callable[..., Value]] = {
    "absolute": _absolute,
    "exp": _exp,
    "sign": _sign,
    "isnan": _test,
    "isinf": _test,
    "isfinite": _test,
}
