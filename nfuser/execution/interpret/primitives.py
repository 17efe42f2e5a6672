# SPDX-License-Identifier: Apache-2.0
"""What each elementwise primitive means in NumPy, and which dtypes it takes.

The same names exist for CUDA and for the CPU; this table is the meaning that both are
tested against.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from nfuser.compiler.ir.point_op import POINT_OPS
from nfuser.compiler.ops.elementwise.inverse_errors import erfcinv, erfinv
from nfuser.compiler.ops.elementwise.random_words import philox

if TYPE_CHECKING:
    from collections.abc import Callable

BOOL = frozenset({"bool"})
SIGNED = frozenset({"int8", "int16", "int32", "int64"})
UNSIGNED = frozenset({"uint8", "uint16", "uint32", "uint64"})
INTEGER = SIGNED | UNSIGNED
FLOAT = frozenset({"float32", "float64"})
NUMBER = INTEGER | FLOAT
ANY = NUMBER | BOOL
INDEX = frozenset({"int32", "int64"})
WORD = frozenset({"int32", "uint32"})


@dataclass(frozen=True, slots=True)
class Elementwise:
    """One primitive: its meaning, its operands' dtypes, and its result's dtype."""

    meaning: Callable[..., Any]
    arity: int
    takes: frozenset[str]
    gives: str | None = None  # the operands' dtype where it is None


def _through_double(function: Callable[[float], float]) -> Callable[[Any], Any]:
    """Apply a scalar function of the standard library to every element."""
    ufunc = np.frompyfunc(function, 1, 1)

    def apply(x: Any) -> Any:
        x = np.asarray(x)
        with np.errstate(all="ignore"):  # what a comparison with NaN leaves behind
            found = np.asarray(ufunc(x.astype(np.float64)), np.float64)
            return found.astype(x.dtype)

    return apply


def power(x: Any, y: Any) -> Any:
    """NumPy's power; an integer to a negative power truncates, where NumPy refuses."""
    base, exponent = np.asarray(x), np.asarray(y)
    if base.dtype.kind != "i":
        return np.power(base, exponent)
    raised = np.power(base, np.maximum(exponent, 0))
    odd = np.bitwise_and(exponent, 1) == 1
    unit = np.where(
        base == -1, np.where(odd, base, -base), (base == 1).astype(base.dtype)
    )
    return np.where(exponent < 0, unit, raised)


def ldexp(x: Any, n: Any) -> Any:
    """NumPy's ldexp; the exponent is a whole number, as a float."""
    return np.ldexp(x, np.clip(n, -4096, 4096).astype(np.int32))


def _multiply_add(x: Any, y: Any, z: Any) -> Any:
    return x * y + z


def _rsqrt(x: Any) -> Any:
    return np.reciprocal(np.sqrt(x))


def _round_f16(x: Any) -> Any:
    return np.asarray(x).astype(np.float16).astype(np.float32)


def _round_bf16(x: Any) -> Any:
    return np.asarray(x).astype(ml_dtypes.bfloat16).astype(np.float32)


def _to_f32_odd(x: Any) -> Any:
    """Round to f32 so that a rounding to fewer digits is the only one that counts."""
    exact = np.asarray(x)
    near = exact.astype(np.float32)
    bits = near.view(np.uint32)
    toward_zero = np.where(np.abs(near) > np.abs(exact), bits - np.uint32(1), bits)
    is_inexact = ~np.isnan(exact) & (near != exact)
    odd = np.where(is_inexact, toward_zero | np.uint32(1), bits)
    return odd.astype(np.uint32).view(np.float32)


def _fast_divide(n: Any, multiplier: Any, shift: Any) -> Any:
    doubled = np.asarray(n).astype(np.uint64) * np.uint64(2)
    word = np.asarray(multiplier).astype(np.uint32).astype(np.uint64)
    high = (doubled * word) >> np.uint64(32)
    return (high >> np.asarray(shift).astype(np.uint64)).astype(np.int32)


def _cast(dtype: str) -> Callable[[Any], Any]:
    target = np.dtype(dtype)

    def cast(x: Any) -> Any:
        return np.asarray(x).astype(target)

    return cast


# What NumPy has under another name, or not at all.
_MEANINGS: dict[str, Callable[..., Any]] = {
    "log_positive": np.log,
    "rsqrt": _rsqrt,
    "erf": _through_double(math.erf),
    "erfc": _through_double(math.erfc),
    "erfinv": _through_double(erfinv),
    "erfcinv": _through_double(erfcinv),
    "ldexp": ldexp,
    "power": power,
    "multiply_add": _multiply_add,
    "bit_and": np.bitwise_and,
    "bit_or": np.bitwise_or,
    "bit_xor": np.bitwise_xor,
}
_TAKES = {
    "float": FLOAT,
    "real": NUMBER,
    "number": NUMBER,
    "integer": INTEGER,
    "bits": INTEGER,
}
CASTS = {
    "to_bool": "bool",
    "to_i8": "int8",
    "to_i16": "int16",
    "to_i32": "int32",
    "to_i64": "int64",
    "to_u8": "uint8",
    "to_u16": "uint16",
    "to_u32": "uint32",
    "to_u64": "uint64",
    "to_f32": "float32",
    "to_f64": "float64",
}


def _of_rows() -> dict[str, Elementwise]:
    """Return what the operations mean that have a primitive: NumPy's of their name."""
    found: dict[str, Elementwise] = {}
    for op in POINT_OPS.values():
        named: Any = getattr(np, op.name.removesuffix("_near"), None)
        meaning: Any = _MEANINGS.get(op.name) or named
        if op.takes in _TAKES and (meaning is not named or isinstance(named, np.ufunc)):
            gives = "bool" if op.gives == "bool" else None
            found[op.name] = Elementwise(meaning, op.arity, _TAKES[op.takes], gives)
    return found


def _table() -> dict[str, Elementwise]:
    table = _of_rows()
    table |= {name: Elementwise(_cast(d), 1, ANY, d) for name, d in CASTS.items()}
    return table | {
        "invert": Elementwise(np.invert, 1, INTEGER | BOOL),
        "to_f32_odd": Elementwise(_to_f32_odd, 1, frozenset({"float64"}), "float32"),
        "round_f16": Elementwise(_round_f16, 1, FLOAT, "float32"),
        "round_bf16": Elementwise(_round_bf16, 1, FLOAT, "float32"),
        "udiv": Elementwise(np.floor_divide, 2, INDEX),
        "urem": Elementwise(np.remainder, 2, INDEX),
        "fast_divide": Elementwise(_fast_divide, 3, WORD, "int32"),
        "philox16": Elementwise(philox(16), 3, frozenset({"uint64"})),
        "philox32": Elementwise(philox(32), 3, frozenset({"uint64"})),
        "philox64": Elementwise(philox(64), 3, frozenset({"uint64"})),
    }


ELEMENTWISE = _table()
