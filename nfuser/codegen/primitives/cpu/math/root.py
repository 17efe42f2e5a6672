# SPDX-License-Identifier: Apache-2.0
"""Cube roots on the CPU."""

from __future__ import annotations

from typing import NamedTuple

from nfuser.codegen.primitives.cpu.math.value import (
    FLOAT,
    Value,
    absolute,
    bits,
    fma,
    from_bits,
    polynomial,
    select,
)


class _Guess(NamedTuple):
    """How to guess ``x ** (-1/3)`` from the bits of ``x``, and to better the guess.

    Of the bits, all but the last ``drop`` are taken times ``third``, a third of
    ``2 ** drop``, off ``first``: the cube of what these bits are, times ``x``, lies
    between 0.896 and 1.105. ``fit`` is ``(1 - t) ** (-1/3)`` for such ``1 - t``.
    """

    drop: int
    third: int
    first: int
    fit: tuple[float, ...]
    few: float  # below it, what the cube of a root leaves of x may be subnormal
    lift: int  # the power of 8 that helps


_SINGLE = _Guess(
    drop=16,
    third=0x5555,
    first=0x54A1B000,
    fit=(
        *(0.999997847233237, 0.3333324888851281, 0.22380215446812662),
        0.1740216143976955,
    ),
    few=2.0**-50,
    lift=33,
)
_DOUBLE = _Guess(
    drop=32,
    third=0x55555555,
    first=0x553EE90000000000,
    fit=(
        *(1.000000000757135, 0.3333290476497767, 0.2222175397821951),
        *(0.17448017836207216, 0.14560318768753222),
    ),
    few=2.0**-800,
    lift=200,
)
_THIRD = 1 / 3


def cbrt(x: Value) -> Value:
    """Return the cube root, by way of its inverse, which takes no division.

    Float64 is within 0.501 ulp. Float32, where what rounding loses of a square is left
    out, is within 0.73.
    """
    g = _SINGLE if x.type == FLOAT else _DOUBLE
    is_small = absolute(x) < g.few
    lifted = select(is_small, x * 8.0**g.lift, x)
    size = absolute(lifted)
    third = bits(size).logical_right(g.drop) * g.third
    guess = from_bits(g.first - third)
    missing = fma(-(size * guess), guess * guess, 1.0)
    inverse = guess * polynomial(missing, g.fit)
    square = inverse * inverse
    near = lifted * square
    # What the cube exceeds x by: signed so, a zero is left as it is, with its sign.
    high = near * near
    over = fma(high, near, -lifted)
    if x.type == FLOAT:
        step = over * (square * _THIRD)
    else:
        over = fma(fma(near, near, -high), near, over)
        step = over * (square * _THIRD)
        # Where the inverse is e off, `near` is 2e, and the step leaves 8e^2 of that.
        step = fma(-(step + step), step * (near * square), step)
    root = near - step
    root = select(is_small, root * 0.5**g.lift, root)
    return select(absolute(x).equals(float("inf")), x, root)
