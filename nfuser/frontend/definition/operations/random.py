# SPDX-License-Identifier: Apache-2.0
"""Operations of ``fd.ops`` that draw random numbers.

A draw is named by a seed and an offset: the key, and the number of the draw call, of
stream 1. The same two give the same numbers again, those that a generator of
``nfuser.random`` with this state draws.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nfuser.compiler.ops as ops
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ops.elementwise.random_numbers import (
    normal_numbers,
    uniform_numbers,
)
from nfuser.errors import ArgumentError, DTypeError, RangeError
from nfuser.frontend.definition.operations.shapes import extents_of
from nfuser.frontend.definition.types import DataType, data_type, dtype_or_none

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.frontend.definition.draft import Draft

_FLOATS = (DType.F16, DType.BF16, DType.F32, DType.F64)
_WORD = 1 << 64


def _uniform(
    d: Draft,
    minval: Any,
    maxval: Any,
    shape: Any,
    rng_seed: Any = None,
    rng_offset: Any = None,
    dtype: Any = DataType.Float,
) -> Any:
    """Return numbers of [minval, maxval), for a seed and the number of a draw."""
    kind, words = _kind(dtype), _words(d, rng_seed, rng_offset)
    found = uniform_numbers(d.builder, extents_of(d, shape), *words, kind)
    low = d.held_by(kind, minval, "minval")
    span = ops.subtract(d.builder, d.held_by(kind, maxval, "maxval"), low)
    return ops.add(d.builder, low, ops.multiply(d.builder, span, found))


def _normal(
    d: Draft,
    mean: Any,
    std: Any,
    shape: Any,
    rng_seed: Any = None,
    rng_offset: Any = None,
    dtype: Any = DataType.Float,
) -> Any:
    """Return normal numbers, for a seed and the number of a draw."""
    kind, words = _kind(dtype), _words(d, rng_seed, rng_offset)
    found = normal_numbers(d.builder, extents_of(d, shape), *words, kind)
    middle, scale = d.held_by(kind, mean, "mean"), d.held_by(kind, std, "std")
    return ops.add(d.builder, middle, ops.multiply(d.builder, scale, found))


def _rand_like(d: Draft, arg: Any, rng_seed: Any = None, rng_offset: Any = None) -> Any:
    """Return numbers of [0, 1), of the shape and dtype of ``arg``."""
    x, words = d.tensor(arg), _words(d, rng_seed, rng_offset)
    return uniform_numbers(d.builder, x.shape, *words, _kind(x.dtype))


def _randn_like(
    d: Draft, arg: Any, rng_seed: Any = None, rng_offset: Any = None
) -> Any:
    """Return normal numbers, of the shape and dtype of ``arg``."""
    x, words = d.tensor(arg), _words(d, rng_seed, rng_offset)
    return normal_numbers(d.builder, x.shape, *words, _kind(x.dtype))


def _kind(dtype: Any) -> DType:
    kind = dtype if isinstance(dtype, DType) else dtype_or_none(dtype) or DType.F32
    if kind not in _FLOATS:
        message = f"write dtype=DataType.Float: floats are drawn, not {data_type(kind)}"
        raise DTypeError(message)
    return kind


def _words(d: Draft, seed: Any, offset: Any) -> tuple[Any, Any]:
    """Return the key and the number of the draw."""
    if seed is None or offset is None:
        message = (
            "pass rng_seed and rng_offset, numbers or scalars of Int: a definition "
            "keeps no state, and draws what they say; another offset is another draw"
        )
        raise ArgumentError(message)
    return _word(d, seed, "rng_seed"), _word(d, offset, "rng_offset")


def _word(d: Draft, item: Any, what: str) -> Any:
    held = d.operand(item)
    kind = d.builder.promote(held)
    if not kind.is_integer or getattr(held, "ndim", 0):
        message = f"pass an integer as {what}: found one of {data_type(kind)}"
        raise DTypeError(message)
    if isinstance(held, int):
        if not 0 <= held < _WORD:
            message = f"pass {what} from 0 to 2**64 - 1: found {held}"
            raise RangeError(message)
        return d.builder.constant(held, DType.U64)
    return held


RANDOM: dict[str, Callable[..., Any]] = {
    "normal": _normal,
    "rand_like": _rand_like,
    "randn_like": _randn_like,
    "uniform": _uniform,
}
