# SPDX-License-Identifier: Apache-2.0
"""Uniform and normal numbers of stream 1, as verbs: what definitions draw.

Those of ``nfuser.random`` are the same numbers, written in the words of arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ops.elementwise.random_words import random_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.builder import Builder, Operand
    from nfuser.compiler.ops.elementwise.random_words import Bits

_KEPT = {DType.F16: 11, DType.BF16: 8, DType.F32: 24, DType.F64: 53}


class Fit(NamedTuple):
    """A quotient of polynomials in w, the constant coefficients first."""

    over: tuple[float, ...]
    under: tuple[float, ...]


SINGLE = Fit(
    over=(
        1.2533141254206719,
        0.44745732098680036,
        0.09101167403699562,
        0.012525294108680765,
        0.0011383812886199818,
        5.937348286205424e-05,
        1.9158713901643486e-07,
    ),
    under=(
        1.0,
        0.0952196192818258,
        0.03465762816991646,
        0.002312142145688227,
        0.0002485826421830444,
        3.743658817024389e-06,
    ),
)
DOUBLE = Fit(
    over=(
        1.2533141373155003,
        0.6489998461401435,
        0.21576407702729264,
        0.05134209341729414,
        0.009521108107490432,
        0.0014107418054924493,
        0.00017044047522658785,
        1.693170473602419e-05,
        1.3889617113957476e-06,
        9.463078800266484e-08,
        5.37278947630228e-09,
        2.490046544830469e-10,
        8.735379252546518e-12,
        2.9424565911614457e-13,
        3.0371684958029076e-15,
        5.541906772245355e-18,
    ),
    under=(
        1.0,
        0.2560275693995078,
        0.09209492795778641,
        0.016152987199310603,
        0.0029868018154715612,
        0.00036021482222225564,
        4.288569666089803e-05,
        3.506646135209353e-06,
        2.8708563553886786e-07,
        1.6057408890263134e-08,
        9.190580766200161e-10,
        3.253347765807964e-11,
        1.274038068628822e-12,
        2.558057136218446e-14,
        1.1933880939994307e-16,
        5.799664934320575e-20,
    ),
)


def uniform_numbers(
    b: Builder, shape: Sequence[Scalar | int], key: Operand, call: Operand, dtype: DType
) -> TensorView:
    """Return numbers of [0, 1), one word each."""
    kind, bits, kept = _computed(dtype), _bits(dtype), _KEPT[dtype]
    word = random_words(b, shape, key, call, bits)
    top = b.point("right_shift", word, b.constant(bits - kept, word.dtype))
    scale = b.constant(2.0**-kept, kind)
    return b.cast(b.point("multiply", b.cast(top, kind), scale), dtype)


def normal_numbers(
    b: Builder, shape: Sequence[Scalar | int], key: Operand, call: Operand, dtype: DType
) -> TensorView:
    """Return normal numbers of mean 0 and variance 1, one word each."""
    kind, bits = _computed(dtype), _bits(dtype)
    whole = DType.I64 if bits == 64 else DType.I32
    s = b.cast(random_words(b, shape, key, call, bits), whole)
    shift = b.constant(bits - 1, whole)
    size = b.point("bit_xor", s, b.point("right_shift", s, shift))
    left = b.point("bit_xor", size, b.constant(2 ** (bits - 1) - 1, whole))
    scale = 2.0 ** (1 - bits)
    step, half = b.constant(scale, kind), b.constant(scale / 2, kind)
    x, rest = (b.point("multiply_add", b.cast(t, kind), step, half) for t in (s, left))
    other = b.point("subtract", b.constant(2.0, kind), rest)
    w = b.point("negative", b.point("log_positive", b.point("multiply", rest, other)))
    fit = DOUBLE if kind is DType.F64 else SINGLE
    over, under = (_polynomial(b, w, part) for part in fit)
    return b.cast(b.point("multiply", x, b.point("divide", over, under)), dtype)


def _polynomial(b: Builder, w: TensorView, coefficients: Sequence[float]) -> TensorView:
    last, before, *others = (b.constant(c, w.dtype) for c in reversed(coefficients))
    result = b.point("multiply_add", w, last, before)
    for coefficient in others:
        result = b.point("multiply_add", result, w, coefficient)
    return result


def _computed(dtype: DType) -> DType:
    return DType.F64 if dtype is DType.F64 else DType.F32


def _bits(dtype: DType) -> Bits:
    return 64 if dtype is DType.F64 else 32
