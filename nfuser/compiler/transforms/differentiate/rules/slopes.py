# SPDX-License-Identifier: Apache-2.0
"""Slopes of elementwise functions: a row an operation, a function an operand.

Each function takes a tangent or a cotangent ``t`` to ``t`` times the partial derivative
in that operand. It is the same for both, so that forward and reverse mode share it.
Conventions are JAX's; ``docs/gradients.md`` lists those that could be others.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.transforms.differentiate.numbers import Numbers

    Given: TypeAlias = tuple[TensorView, ...]
    # Of the numbers, t, the operands and the result.
    Slope: TypeAlias = Callable[
        [Numbers, TensorView, Given, TensorView], TensorView | None
    ]
    OfOne: TypeAlias = Callable[
        [Numbers, TensorView, TensorView, TensorView], TensorView
    ]


def _same(n: Numbers, t: TensorView, given: Given, r: TensorView) -> TensorView:
    del n, given, r
    return t


def _minus(n: Numbers, t: TensorView, given: Given, r: TensorView) -> TensorView:
    del given, r
    return n.negative(t)


def _flat(n: Numbers, t: TensorView, given: Given, r: TensorView) -> None:
    """Stand for a slope of 0, or one that there is not."""
    del n, t, given, r


def _of(slope: OfOne) -> Slope:
    """Return the slope of a function of one operand."""
    return lambda n, t, given, r: slope(n, t, given[0], r)


def _one_less_square(n: Numbers, x: TensorView) -> TensorView:
    """Return ``1 - x * x`` without cancellation near 1."""
    return n.multiply(n.subtract(n(1.0), x), n.add(n(1.0), x))


def _over_root(n: Numbers, t: TensorView, x: TensorView) -> TensorView:
    return n.multiply(t, n.rsqrt(_one_less_square(n, x)))


def _bell(n: Numbers, t: TensorView, x: TensorView) -> TensorView:
    grown = n.exp(n.negative(n.square(x)))
    return n.multiply(t, n.scaled(grown, 2 / math.sqrt(math.pi)))


def _unbell(n: Numbers, t: TensorView, r: TensorView) -> TensorView:
    return n.multiply(t, n.scaled(n.exp(n.square(r)), math.sqrt(math.pi) / 2))


def _logistic(n: Numbers, t: TensorView, x: TensorView, r: TensorView) -> TensorView:
    del x
    return n.multiply(n.multiply(t, r), n.subtract(n(1.0), r))


def _sigmoid(n: Numbers, x: TensorView) -> TensorView:
    return n.reciprocal(n.add(n.exp(n.negative(x)), n(1.0)))


def _silu(n: Numbers, t: TensorView, x: TensorView, r: TensorView) -> TensorView:
    s = _sigmoid(n, x)
    rise = n.add(n(1.0), n.subtract(x, n.multiply(x, s)))
    found = n.multiply(n.multiply(t, s), rise)
    # Of minus infinity s is 0, and what it is multiplied with has no limit.
    bottom = n.equal(x, n(-math.inf))
    return n.select(bottom, n(0.0), found)


def _gelu_tanh(n: Numbers, t: TensorView, x: TensorView, r: TensorView) -> TensorView:
    """Return the slope of ``x`` over ``1 + exp(-2 u)``."""
    rate = math.sqrt(2 / math.pi)
    square = n.square(x)
    u = n.multiply(n.add(n.scaled(n.multiply(square, x), 0.044715), x), n(rate))
    s = n.reciprocal(n.add(n.exp(n.scaled(u, -2.0)), n(1.0)))
    rise = n.add(n.scaled(square, 3 * 0.044715 * 2 * rate), n(2 * rate))
    slope = n.multiply(n.multiply(x, s), n.subtract(n(1.0), s))
    return n.multiply(t, n.add(s, n.multiply(slope, rise)))


def _power_base(n: Numbers, t: TensorView, given: Given, r: TensorView) -> TensorView:
    x, y = given
    lower = n.power(x, n.subtract(y, n(1.0)))
    slope = n.multiply(n.without_zeros(y), lower)
    return n.multiply(t, n.select(n.equal(y, n(0.0)), n(0.0), slope))


def _power_exponent(
    n: Numbers, t: TensorView, given: Given, r: TensorView
) -> TensorView:
    return n.multiply(t, n.multiply(n.log(n.without_zeros(given[0])), r))


def _over_hypot(place: int) -> Slope:
    return lambda n, t, given, r: n.multiply(
        t, n.divide(given[place], n.without_zeros(r))
    )


def _turn(place: int, sign: float) -> Slope:
    """Return the slope of ``atan2(y, x)``, which overflows nowhere."""

    def slope(n: Numbers, t: TensorView, given: Given, r: TensorView) -> TensorView:
        del r
        distance = n.hypot(*given)
        part = n.divide(n.divide(given[place], distance), distance)
        return n.multiply(t, part if sign > 0 else n.negative(part))

    return slope


def _share(place: int) -> Slope:
    """Return the slope of ``logaddexp``: what one of the two has of the sum."""

    def slope(n: Numbers, t: TensorView, given: Given, r: TensorView) -> TensorView:
        del r
        own, other = given[place], given[1 - place]
        # Infinity less infinity is not a number.
        gap = n.select(n.equal(own, other), n(0.0), n.subtract(other, own))
        return n.divide(t, n.add(n(1.0), n.exp(gap)))

    return slope


def _signed(n: Numbers, t: TensorView, given: Given, r: TensorView) -> TensorView:
    del r
    turned = n.not_equal(n.signbit(given[0]), n.signbit(given[1]))
    return n.select(turned, n.negative(t), t)


_LN2, _LN10 = math.log(2), math.log(10)

SLOPES: dict[str, tuple[Slope, ...]] = {
    "exp": (_of(lambda n, t, x, r: n.multiply(t, r)),),
    "exp2": (_of(lambda n, t, x, r: n.multiply(t, n.scaled(r, _LN2))),),
    "expm1": (_of(lambda n, t, x, r: n.multiply(t, n.add(r, n(1.0)))),),
    "log": (_of(lambda n, t, x, r: n.divide(t, x)),),
    "log_positive": (_of(lambda n, t, x, r: n.divide(t, x)),),
    "log2": (_of(lambda n, t, x, r: n.divide(n.scaled(t, 1 / _LN2), x)),),
    "log10": (_of(lambda n, t, x, r: n.divide(n.scaled(t, 1 / _LN10), x)),),
    "log1p": (_of(lambda n, t, x, r: n.divide(t, n.add(x, n(1.0)))),),
    "sin": (_of(lambda n, t, x, r: n.multiply(t, n.cos(x))),),
    "cos": (_of(lambda n, t, x, r: n.negative(n.multiply(t, n.sin(x)))),),
    "tan": (_of(lambda n, t, x, r: n.multiply(t, n.add(n(1.0), n.square(r)))),),
    "asin": (_of(lambda n, t, x, r: _over_root(n, t, x)),),
    "acos": (_of(lambda n, t, x, r: n.negative(_over_root(n, t, x))),),
    "atan": (_of(lambda n, t, x, r: n.divide(t, n.add(n(1.0), n.square(x)))),),
    "sinh": (_of(lambda n, t, x, r: n.multiply(t, n.cosh(x))),),
    "cosh": (_of(lambda n, t, x, r: n.multiply(t, n.sinh(x))),),
    "tanh": (_of(lambda n, t, x, r: n.multiply(t, _one_less_square(n, r))),),
    "asinh": (
        _of(lambda n, t, x, r: n.multiply(t, n.rsqrt(n.add(n.square(x), n(1.0))))),
    ),
    "acosh": (
        _of(
            lambda n, t, x, r: n.multiply(
                t,
                n.rsqrt(n.multiply(n.subtract(x, n(1.0)), n.add(x, n(1.0)))),
            )
        ),
    ),
    "atanh": (_of(lambda n, t, x, r: n.divide(t, _one_less_square(n, x))),),
    "erf": (_of(lambda n, t, x, r: _bell(n, t, x)),),
    "erfc": (_of(lambda n, t, x, r: n.negative(_bell(n, t, x))),),
    "erfinv": (_of(lambda n, t, x, r: _unbell(n, t, r)),),
    "erfcinv": (_of(lambda n, t, x, r: n.negative(_unbell(n, t, r))),),
    "sqrt": (_of(lambda n, t, x, r: n.divide(n.scaled(t, 0.5), r)),),
    "rsqrt": (_of(lambda n, t, x, r: n.multiply(t, n.scaled(n.divide(r, x), -0.5))),),
    "cbrt": (_of(lambda n, t, x, r: n.divide(n.scaled(t, 1 / 3), n.square(r))),),
    "reciprocal": (_of(lambda n, t, x, r: n.negative(n.multiply(t, n.square(r)))),),
    "negative": (_minus,),
    "absolute": (_of(lambda n, t, x, r: n.multiply(t, n.sign(x))),),
    "copy": (_same,),
    "add": (_same, _same),
    "subtract": (_same, _minus),
    "multiply": (
        lambda n, t, given, r: n.multiply(t, given[1]),
        lambda n, t, given, r: n.multiply(t, given[0]),
    ),
    "divide": (
        lambda n, t, given, r: n.divide(t, given[1]),
        lambda n, t, given, r: n.negative(n.multiply(t, n.divide(r, given[1]))),
    ),
    "remainder": (
        _same,
        lambda n, t, given, r: n.negative(n.multiply(t, n.floor_divide(*given))),
    ),
    "fmod": (
        _same,
        lambda n, t, given, r: n.negative(n.multiply(t, n.trunc(n.divide(*given)))),
    ),
    "power": (_power_base, _power_exponent),
    "atan2": (_turn(1, 1.0), _turn(0, -1.0)),
    "hypot": (_over_hypot(0), _over_hypot(1)),
    "logaddexp": (_share(0), _share(1)),
    "copysign": (_signed, _flat),
    "multiply_add": (
        lambda n, t, given, r: n.multiply(t, given[1]),
        lambda n, t, given, r: n.multiply(t, given[0]),
        _same,
    ),
    "ldexp": (lambda n, t, given, r: n.ldexp(t, given[1]), _flat),
    # What verbs write in other words.
    "sigmoid": (_of(_logistic),),
    "silu": (_of(_silu),),
    "gelu_tanh": (_of(_gelu_tanh),),
}

FLAT = frozenset(
    {
        *("floor", "ceil", "trunc", "rint", "sign", "nextafter", "floor_divide"),
        # Of bool, of integers, or to them.
        *("isnan", "isinf", "isfinite", "signbit", "invert", "gcd"),
        *("left_shift", "right_shift", "bit_and", "bit_or", "bit_xor"),
        *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
        *("philox16", "philox32", "philox64"),
    }
)
"""Operations whose derivative is 0 wherever there is one."""

STEADY = frozenset({"add", "subtract", "negative", "copy"})
"""Operations whose slopes are finite numbers whatever the operands are."""


def slopes_of(name: str) -> tuple[Slope, ...] | None:
    """Return the slopes in each operand, None for what has no row.

    >>> slopes_of("floor") is None, len(slopes_of("divide"))
    (True, 2)
    """
    return SLOPES.get(name.removesuffix("_near"))
