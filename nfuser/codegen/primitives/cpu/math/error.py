# SPDX-License-Identifier: Apache-2.0
"""The error function and its complement on the CPU."""

from __future__ import annotations

from nfuser.codegen.primitives.cpu.math.exponential import exp, exp_pair, precision_of
from nfuser.codegen.primitives.cpu.math.value import (
    Value,
    absolute,
    clamp,
    copysign,
    fma,
    polynomial,
    select,
    two_product,
)


def _erf_near(x: Value) -> Value:
    """Return the error function within 1 of zero."""
    return fma(polynomial(x * x, precision_of(x).fits.erf_small), x, x)


def erf(x: Value) -> Value:
    """Return the error function."""
    p = precision_of(x)
    size = clamp(absolute(x), 0.0, p.erf_limit)
    near = _erf_near(x)
    far = 1.0 - exp(-polynomial(size, p.fits.erf_large))
    return select(size < 1.0, near, copysign(far, x))


def erfc(x: Value) -> Value:
    """Return 1 - erf(x), accurate where that is small."""
    p = precision_of(x)
    size = clamp(absolute(x), 0.0, p.erfc_limit)
    q = (size - p.erfcx_centre) / (size + p.erfcx_centre)
    numerator = polynomial(q, p.fits.erfcx) + 1.0
    square, lost = two_product(size, size)
    tail = exp_pair(-square, -lost) * (numerator / fma(size, 2.0, 1.0))
    result = select(x < 0.0, 2.0 - tail, tail)
    return select((x > -1.0) & (x < 0.5), 1.0 - _erf_near(x), result)
