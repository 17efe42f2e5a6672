# SPDX-License-Identifier: Apache-2.0
"""The inverses of the error function and of its complement on the CPU.

Polynomials interpolate at Chebyshev's points (40 digits), the constant coefficient
first.
"""

from __future__ import annotations

from typing import NamedTuple

from nfuser.codegen.primitives.cpu.math.exponential import INFINITY, NAN, log
from nfuser.codegen.primitives.cpu.math.value import (
    FLOAT,
    Value,
    absolute,
    copysign,
    fma,
    polynomial,
    select,
    sqrt,
)


class _Fits(NamedTuple):
    """The polynomials of one precision.

    ``near`` is erfinv(x) / x in x^2, to x = 1/2. ``tail`` is erfcinv(q) / t - 1 in
    (t - centre) / (t + centre), with t = sqrt(-log(q)), for q up to 1/2.
    """

    near: tuple[float, ...]
    tail: tuple[float, ...]
    centre: float


_SINGLE = _Fits(
    near=(
        0.8862269254129346,
        0.2320136868479526,
        0.12755448756895216,
        0.08660510033787126,
        0.06415255703938408,
        0.05828657235019967,
        0.014361817242991244,
        0.09539370415980215,
    ),
    tail=(
        -0.2366908134377846,
        0.5524487830399709,
        -0.40548978356158966,
        0.026058209636052744,
        0.17270803709708624,
        -0.15285978794174604,
        0.013840623782717772,
        0.08887618955025112,
        -0.08723475064394542,
        0.023324152531386148,
        0.014785592197237421,
        -0.009669056143635127,
    ),
    centre=1.5,
)
_DOUBLE = _Fits(
    near=(
        0.886226925452758,
        0.23201366653465452,
        0.12755617530558858,
        0.08655212924279916,
        0.0649596176577907,
        0.051731285682153676,
        0.04283661850714386,
        0.0364678718620936,
        0.03166275696529407,
        0.028237213409962096,
        0.023195432638682806,
        0.032041521888537455,
        -0.014058981924686919,
        0.1060798068373649,
        -0.12057757898210238,
        0.1286340496637232,
    ),
    tail=(
        -0.09507966735357169,
        0.2736645772262018,
        -0.3389693109555633,
        0.2786589122693653,
        -0.1784835292657691,
        0.0694703810208517,
        0.020137814708036553,
        -0.07776356802068453,
        0.09887980784994584,
        -0.08865636112225456,
        0.056830353044992406,
        -0.01622101332481784,
        -0.02135567952042941,
        0.04673736671497971,
        -0.055561740170122574,
        0.04805549915526877,
        -0.02842058773325943,
        0.0034353336722368778,
        0.018379392511457506,
        -0.031746601717957505,
        0.038763355585027165,
        -0.037492881923337024,
        0.015098270280513434,
        0.01667972152427414,
        -0.017212030078134096,
        -1.0367816098071734e-05,
        -0.023111925757421752,
        0.0547950916627043,
        -0.021196010937338895,
        -0.03428032590173392,
        0.03638545713840452,
        -0.01040507361830897,
    ),
    centre=3.0,
)


def erfinv(x: Value) -> Value:
    """Return the number whose error function is ``x``."""
    size = absolute(x)
    far = copysign(_tail(1.0 - size), x)
    return select(size > 0.5, far, _near(x))


def erfcinv(x: Value) -> Value:
    """Return the number whose complementary error function is ``x``."""
    rest = 1.0 - x  # exact where it is used
    far = copysign(_tail(select(x > 1.0, 2.0 - x, x)), rest)
    return select(absolute(rest) > 0.5, far, _near(rest))


def _near(x: Value) -> Value:
    return x * polynomial(x * x, _fits(x).near)


def _tail(q: Value) -> Value:
    """Return the inverse of erfc where ``q`` is at most 1/2; NaN below 0."""
    fits = _fits(q)
    inside = q > 0.0
    root = sqrt(-log(select(inside, q, 0.25)))
    place = (root - fits.centre) / (root + fits.centre)
    found = fma(polynomial(place, fits.tail), root, root)
    return select(inside, found, select(q.equals(0.0), q.constant(INFINITY), NAN))


def _fits(x: Value) -> _Fits:
    return _SINGLE if x.type == FLOAT else _DOUBLE
