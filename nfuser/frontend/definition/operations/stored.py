# SPDX-License-Identifier: Apache-2.0
"""Floats of 8 bits: what arrays store, and what no operation computes in.

Kernels take them as bytes. What moves elements moves bytes; a cast reads or writes them
with arithmetic of floats, which is exact up to the one rounding: to nearest, ties to
even, and beyond the largest number to what the format has for it.
"""

# Arrays of five libraries have no common static type.
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.base import value
from nfuser.errors import DTypeError
from nfuser.execution.device.describe.libraries import Library, library_of, module

if TYPE_CHECKING:
    import nfuser.compiler.ops as ops
    from nfuser.compiler.ir.tensor import TensorView

_SIGN = 128


@value
class Float8:
    """A format: ``digits`` of the fraction, and the bytes of its largest and of NaN.

    The byte after the largest number is what is larger: infinity, or NaN.
    """

    name: str
    digits: int
    bias: int
    largest: int
    nan: int
    has_infinity: bool

    @property
    def numpy(self) -> np.dtype[Any]:
        """The dtype of ml_dtypes."""
        return np.dtype(getattr(ml_dtypes, self.name))


E4M3 = Float8("float8_e4m3fn", 3, 7, 0x7E, 0x7F, has_infinity=False)
E5M2 = Float8("float8_e5m2", 2, 15, 0x7B, 0x7E, has_infinity=True)
FORMATS = {form.name: form for form in (E4M3, E5M2)}


def format_of(item: Any) -> Float8 | None:
    """Return the format of an array's elements, or of what names a dtype, if it is one.

    >>> format_of("float8_e5m2") is E5M2, format_of(np.ones(3))
    (True, None)
    """
    if isinstance(item, Float8):
        return item
    kind = getattr(item, "dtype", item)
    name = kind.__name__ if isinstance(kind, type) else str(kind)
    return FORMATS.get(name.removeprefix("torch."))


def bytes_of(array: Any) -> Any:
    """Return the memory of an array of 8-bit floats, as one of bytes."""
    return _viewed(array, "uint8")


def floats_of(array: Any, form: Float8) -> Any:
    """Return the memory of an array of bytes, as one of 8-bit floats."""
    return _viewed(array, form.name)


def _viewed(array: Any, name: str) -> Any:
    library = library_of(type(array))
    if library is Library.NUMPY or isinstance(array, np.generic):
        return array.view(np.dtype(getattr(ml_dtypes, name, name)))
    if library is Library.TORCH:
        return array.view(getattr(module(library), name))
    if library is Library.JAX:
        jax: Any = module(library)
        return jax.lax.bitcast_convert_type(array, getattr(jax.numpy, name))
    message = f"pass arrays of NumPy, PyTorch or JAX: found {type(array).__name__}"
    raise DTypeError(message)


# -- casts -------------------------------------------------------------------


def widened(b: ops.Builder, stored: TensorView, form: Float8) -> TensorView:
    """Return the numbers that bytes stand for, in Float."""

    def number(x: float) -> TensorView:
        return b.constant(x, DType.F32)

    scale = 2**form.digits
    byte = b.cast(stored, DType.F32)
    is_below = b.point("greater_equal", byte, number(_SIGN))
    size = b.point("select", is_below, b.point("subtract", byte, number(_SIGN)), byte)
    power = b.point("floor", b.point("multiply", size, number(1 / scale)))
    digits = b.point("subtract", size, b.point("multiply", power, number(scale)))
    # The least numbers have the power of those above them, and no leading one.
    leading = b.point("minimum", power, number(1.0))
    whole = b.point("add", digits, b.point("multiply", leading, number(scale)))
    shift = number(-form.bias - form.digits)
    power = b.point("add", b.point("maximum", power, number(1.0)), shift)
    found = b.point("ldexp", whole, power)
    beyond = number(math.inf if form.has_infinity else math.nan)
    above = form.largest + 1
    found = b.point("select", b.point("equal", size, number(above)), beyond, found)
    is_nan = b.point("greater", size, number(above))
    found = b.point("select", is_nan, number(math.nan), found)
    return b.point("select", is_below, b.point("negative", found), found)


def narrowed(b: ops.Builder, x: TensorView, form: Float8) -> TensorView:
    """Return the bytes of numbers, each rounded once."""
    wide = x if x.dtype is DType.F64 else b.cast(x, DType.F32)
    if not x.dtype.is_float:
        wide = b.cast(x, DType.F64)

    def number(x: float) -> TensorView:
        return b.constant(x, wide.dtype)

    size = b.point("absolute", wide)
    scaled = b.point("minimum", size, number(2.0 ** (form.bias + 3)))
    scaled = b.point("multiply", scaled, number(2.0 ** (form.bias - 1)))
    power = number(0.0)  # of the number that has a leading one, above the least
    step = 2 * form.bias + 2
    while step := step // 2:
        is_above = b.point("greater_equal", scaled, number(2.0**step))
        lower = b.point("multiply", scaled, number(2.0**-step))
        scaled = b.point("select", is_above, lower, scaled)
        higher = b.point("add", power, number(step))
        power = b.point("select", is_above, higher, power)
    scale = number(2**form.digits)
    digits = b.point("rint", b.point("multiply", scaled, scale))
    # A carry, and the leading one, are one more in the power.
    byte = b.point("add", b.point("multiply", power, scale), digits)
    byte = b.point("minimum", byte, number(form.largest + 1))
    byte = b.point("select", b.point("isnan", wide), number(form.nan), byte)
    signed = b.point("add", byte, number(_SIGN))
    byte = b.point("select", b.point("signbit", wide), signed, byte)
    return b.cast(byte, DType.U8)
