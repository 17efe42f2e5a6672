# SPDX-License-Identifier: Apache-2.0
"""The inverses of the error function and its complement, one Python float at a time."""

from __future__ import annotations

import math

_SLOPE = 2 / math.sqrt(math.pi)  # of the error function at 0
_FAR = 8.0  # from here on the complement is a series
_TERMS = 16
_STEPS = 20


def erfinv(x: float) -> float:
    """Return the number whose error function is ``x``.

    >>> math.erf(erfinv(0.25)), erfinv(1), erfinv(2)
    (0.25, inf, nan)
    """
    size = abs(x)
    if math.isnan(x) or size > 1:
        return math.nan
    if size > 0.5:
        return math.copysign(erfcinv(1 - size), x)
    found = x / _SLOPE
    for _ in range(_STEPS):
        step = (math.erf(found) - x) / (_SLOPE * math.exp(-found * found))
        found -= step
        if abs(step) <= 1e-17 * abs(found):
            break
    return math.copysign(found, x)


def erfcinv(x: float) -> float:
    """Return the number whose complementary error function is ``x``.

    >>> erfcinv(0), erfcinv(1), erfcinv(2)
    (inf, 0.0, -inf)
    """
    if 0.5 <= x <= 1.5:
        return erfinv(1 - x)
    if x > 1:
        return -erfcinv(2 - x)
    if x == 0:
        return math.inf
    if math.isnan(x) or x < 0:
        return math.nan
    wanted = math.log(x)
    found = math.sqrt(-wanted)
    for _ in range(_STEPS):
        if found < _FAR:
            value = math.erfc(found)
            step = (value - x) / (-_SLOPE * math.exp(-found * found))
            step *= 1.0 if abs(step) < 0.1 else 0.5
        else:
            logarithm, slope = _far(found)
            step = (logarithm - wanted) / slope
        found -= step
        if abs(step) <= 1e-17 * found:
            break
    return found


def _far(y: float) -> tuple[float, float]:
    """Return the logarithm of erfc far out, and its slope."""
    term, total = 1.0, 0.0
    for k in range(1, _TERMS):
        term *= -(2 * k - 1) / (2 * y * y)
        total += term
    logarithm = -y * y - math.log(y * math.sqrt(math.pi)) + math.log1p(total)
    return logarithm, -2 * y / (1 + total)
