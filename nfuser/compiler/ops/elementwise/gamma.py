# SPDX-License-Identifier: Apache-2.0
"""The logarithm of the gamma function.

Between 1 and 3, ``lgamma(x)`` is ``(x - 1) (x - 2)`` times a polynomial, so that it is
exact about both zeros; smaller and larger numbers come there by factors, whose
logarithm is added. From 10 on it is Stirling's series, below zero the reflection.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import nfuser.compiler.ops.rules as rules
from nfuser.compiler.dtypes import DType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.builder import Builder, Operand

_FAR = 10.0
# Of t = x - 2 from -1 to 1, with relative errors below 3e-8 and 9e-18.
_SHORT = (
    *(0.42278432678760236, -0.10031729776254687, 0.03296559715540426),
    *(-0.012384472967626793, 0.004991792679044263, -0.002104907779003319),
    *(0.0009436406073682351, -0.0004190058351181893, 0.0001313883442103093),
    *(-5.903239958320855e-05, 7.787131893766796e-05, -3.631552194634586e-05),
)
_LONG = (
    *(0.42278433509846713, -0.10031730167435392, 0.03296500062115691),
    *(-0.012384192193371805, 0.004998641164627129, -0.0021081308339216706),
    *(0.0009153769240386907, -0.0004057073983775151, 0.0001825526153982638),
    *(-8.309511477709561e-05, 3.816907658276081e-05, -1.7661767658452517e-05),
    *(8.221234475942905e-06, -3.846858091533014e-06, 1.8113906873056685e-06),
    *(-8.54560908975883e-07, 3.958940459367468e-07, -1.878442644643758e-07),
    *(1.042041826608264e-07, -4.9827532071170234e-08, 5.910565853507869e-09),
    *(-2.7296358592514825e-09, 1.6194359237484174e-08, -7.842557720538356e-09),
    *(-4.312495770350818e-09, 2.0986002157033107e-09, 1.5746606982777302e-09),
    -7.639292345836201e-10,
)
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)
_COEFFICIENTS = {DType.F64: (_LONG, _STIRLING)}
_OF_SINGLE = (_SHORT, _STIRLING[:3])


def lgamma(b: Builder, x: Operand) -> TensorView:
    """Return the logarithm of the absolute value of the gamma function."""
    operand = b.convert(x, rules.float_type(b, "lgamma", x))
    dtype = operand.dtype
    size = b.point("absolute", operand)
    above = _of_positive(b, size)
    # The gamma function of -x times that of x is -pi over x sin(pi x).
    whole = b.point("rint", size)
    rest = b.point("subtract", size, whole)
    turn = b.point("multiply", rest, b.constant(math.pi, dtype))
    sine = b.point("multiply", size, b.point("sin", turn))
    near = b.point("log", b.point("absolute", sine))
    below = b.point("subtract", b.constant(math.log(math.pi), dtype), near)
    below = b.point("subtract", below, above)
    # So close to zero both sides are alike, and the square of x is nothing.
    is_tiny = b.point("less", size, b.constant(2.0**-60, dtype))
    is_plain = b.point("greater", operand, b.constant(0.0, dtype))
    for other in (is_tiny, b.point("isinf", size)):
        is_plain = b.point("bit_or", is_plain, other)
    return b.point("select", is_plain, above, below)


def _of_positive(b: Builder, x: TensorView) -> TensorView:
    short, series = _COEFFICIENTS.get(x.dtype, _OF_SINGLE)
    one, two = b.constant(1.0, x.dtype), b.constant(2.0, x.dtype)
    less = b.point("subtract", x, one)
    is_small = b.point("less", x, one)
    factor, product = b.point("select", is_small, x, less), one
    for _ in range(int(_FAR) - 3):
        lower = b.point("subtract", factor, one)
        is_above = b.point("greater_equal", factor, two)
        grown = b.point("multiply", product, factor)
        product = b.point("select", is_above, grown, product)
        factor = b.point("select", is_above, lower, factor)
    last = b.point("select", is_small, less, b.point("subtract", factor, one))
    near = b.point("multiply", factor, last)
    near = b.point("multiply", near, _polynomial(b, last, short))
    is_far = b.point("greater_equal", x, b.constant(_FAR, x.dtype))
    taken = b.point("select", is_small, x, b.point("select", is_far, x, product))
    logarithm = b.point("log", taken)
    signed = b.point("select", is_small, b.point("negative", logarithm), logarithm)
    near = b.point("add", near, signed)
    return b.point("select", is_far, _far(b, x, logarithm, series), near)


def _far(
    b: Builder, x: TensorView, logarithm: TensorView, series: Sequence[float]
) -> TensorView:
    """Return ``(x - 1/2) (log x - 1)``, what is constant, and Stirling's series."""
    over = b.point("reciprocal", x)
    square = b.point("multiply", over, over)
    rest = b.point("multiply", over, _polynomial(b, square, series))
    constant = b.constant(0.5 * math.log(2 * math.pi) - 0.5, x.dtype)
    half, one = b.constant(0.5, x.dtype), b.constant(1.0, x.dtype)
    lower = b.point("subtract", logarithm, one)
    grown = b.point("multiply", b.point("subtract", x, half), lower)
    return b.point("add", grown, b.point("add", rest, constant))


def _polynomial(b: Builder, x: TensorView, given: Sequence[float]) -> TensorView:
    found = b.constant(given[-1], x.dtype)
    for number in reversed(given[:-1]):
        found = b.point("multiply", found, x)
        found = b.point("add", found, b.constant(number, x.dtype))
    return found
