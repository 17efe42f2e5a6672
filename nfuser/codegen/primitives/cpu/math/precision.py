# SPDX-License-Identifier: Apache-2.0
"""What the CPU mathematics knows of a floating-point format."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

Coefficients: TypeAlias = tuple[float, ...]


Pair: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Constants:
    """Numbers that the reductions and reconstructions need."""

    ln2: Pair
    log2e: Pair
    log10e: Pair
    log10_2: Pair
    pi: Pair
    half_pi: Pair
    quarter_pi: Pair


@dataclass(frozen=True, slots=True)
class Fits:
    """Minimax polynomials."""

    exp: Coefficients  # (e^r - 1 - r) / r^2, |r| <= ln2 / 2, error relative to e^r
    expm1: Coefficients  # the same, error relative to e^r - 1
    exp2: Coefficients  # (2^r - 1) / r, |r| <= 1/2
    log: Coefficients  # in z = s^2: (log((1+s)/(1-s)) - 2s) / (s z), |s| <= 0.1716
    sin: Coefficients  # in z = r^2: (sin(r) - r) / r^3, |r| <= pi / 4
    cos: Coefficients  # in z = r^2: (cos(r) - 1 + z/2) / z^2, |r| <= pi / 4
    sinh: Coefficients  # in z = x^2: (sinh(x) - x) / x^3, |x| <= 1
    tanh: Coefficients  # in z = x^2: (tanh(x) - x) / x^3, |x| <= 0.6
    asin: Coefficients  # in z = x^2: (asin(x) - x) / x^3, |x| <= 1/2
    atan: Coefficients  # in z = x^2: (atan(x) - x) / x^3, |x| <= tan(pi / 8)
    erf_small: Coefficients  # in z = x^2: erf(x) / x - 1, |x| <= 1
    erf_large: Coefficients  # -log(erfc(x)), 0.95 <= x <= erf_limit
    erfcx: Coefficients  # in q = (x-c)/(x+c): (1 + 2x) exp(x^2) erfc(x) - 1, x >= 0


@dataclass(frozen=True, slots=True)
class Precision:
    """One floating-point format: its layout, its ranges and its coefficients."""

    bits: int
    fraction_bits: int
    bias: int
    round_shift: float  # 1.5 * 2^fraction_bits: adding it rounds to an integer
    smallest_normal: float
    exp_range: Pair  # outside, e^x is 0 or infinite
    exp2_range: Pair
    expm1_floor: float  # below, e^x - 1 is -1
    sinh_limit: float  # above, sinh and cosh are infinite; 2^(n-2) is still finite
    tanh_limit: float  # above, tanh is 1
    tiny: float  # below, odd functions equal their argument
    erf_limit: float  # above, erf is 1
    erfcx_centre: float
    erfc_limit: float  # above, erfc is 0
    sqrt_half_bits: int
    constants: Constants
    fits: Fits
    half_pi_words: tuple[float, float, float]
    """pi / 2; the second word times any count of quarters within a bound is exact."""
    one_bits: int = field(init=False)
    shift_bits: int = field(init=False)

    def __post_init__(self) -> None:
        one = self.bias << self.fraction_bits
        object.__setattr__(self, "one_bits", one)
        # 1.5 * 2^fraction_bits: exponent bias + fraction_bits, top fraction bit set.
        shift = (self.bias + self.fraction_bits) << self.fraction_bits
        shift |= 1 << (self.fraction_bits - 1)
        object.__setattr__(self, "shift_bits", shift)
