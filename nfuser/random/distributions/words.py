# SPDX-License-Identifier: Apache-2.0
"""What distributions are given: random words; and what is checked of parameters."""

from __future__ import annotations

import math
from typing import Any, Literal, Protocol

import ml_dtypes
import numpy as np

import nfuser.compiler.ops.elementwise.float_functions as float_functions
from nfuser.compiler.trace import current_tracer
from nfuser.errors import DTypeError, OptionError

Array = Any
"""An array of NumPy's, or the stand-in of one."""

Bits = Literal[16, 32, 64]


class Words(Protocol):
    """The random words of one draw call."""

    def __call__(self, bits: Bits, slot: int = 0) -> Array:
        """Return one word for each element of the drawn shape, as unsigned integers.

        A distribution that takes several words of each element takes those of slots
        0, 1, 2 and so on, 256 at most.
        """
        ...


def multiply_add(x: Array, y: Array, z: Array) -> Array:
    """Return ``x * y + z``, rounded once where the target does it in one."""
    tracer = current_tracer()
    if tracer is None:
        return x * y + z
    return tracer.apply(float_functions.multiply_add, *map(tracer.operand, (x, y, z)))


def log_positive(x: Array) -> Array:
    """Return the logarithm of numbers that are positive, normal and finite."""
    tracer = current_tracer()
    if tracer is None:
        return np.log(x)
    return tracer.apply(float_functions.log_positive, tracer.operand(x))


def from_slot(words: Words, first: int) -> Words:
    """Return ``words`` with the slots counted from ``first``."""

    def ask(bits: Bits, slot: int = 0) -> Array:
        return words(bits, first + slot)

    return ask


BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_FLOATS = {np.dtype(kind) for kind in (np.float16, np.float32, np.float64)} | {BFLOAT16}


def float_dtype(name: str, dtype: Any) -> np.dtype[Any]:
    """Return ``dtype`` as one of the floats that are drawn."""
    found = np.dtype(dtype)
    if found not in _FLOATS:
        message = (
            f"write dtype=np.float32 or np.float64 (or a float of 16 bits): {name} "
            f"draws floats, not {found}"
        )
        raise DTypeError(message)
    return found


def computed_in(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the float in which numbers of ``dtype`` are computed."""
    return dtype if dtype == np.float64 else np.dtype(np.float32)


def bits_of(dtype: np.dtype[Any]) -> Bits:
    """Return the size of the word that makes one number of ``dtype``."""
    return 64 if dtype == np.float64 else 32


def is_number(x: Any) -> bool:
    """Tell whether a parameter is known now, a number and no array."""
    return isinstance(x, bool | int | float | np.bool_ | np.number)


def at_least(name: str, x: Any, least: float, *, or_equal: bool = True) -> None:
    """Refuse a number below ``least``; of arrays nothing is known yet."""
    if is_number(x) and not (x >= least if or_equal else x > least):
        relation = ">=" if or_equal else ">"
        message = f"write {name} {relation} {least:g}: found {name}={x}"
        raise OptionError(message)


def probability(name: str, x: Any) -> None:
    """Refuse a number outside [0, 1]."""
    if is_number(x) and not 0 <= x <= 1:
        message = f"write a probability from 0 to 1 as {name}: found {name}={x}"
        raise OptionError(message)


def as_float(x: Any, computed: np.dtype[Any]) -> Any:
    """Return a parameter, a number or an array, in the float of a computation."""
    if hasattr(x, "astype"):
        return x.astype(computed)
    return computed.type(x) if is_number(x) else x * computed.type(1)


def finite(name: str, x: Any) -> None:
    """Refuse an infinite number and NaN."""
    if is_number(x) and not math.isfinite(x):
        message = f"write a finite number as {name}: found {name}={x}"
        raise OptionError(message)
