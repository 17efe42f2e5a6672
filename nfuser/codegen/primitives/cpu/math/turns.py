# SPDX-License-Identifier: Apache-2.0
"""How many turns an angle is: 1 / (2 pi) in words, for angles of any size."""

from __future__ import annotations

from math import ldexp
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nfuser.codegen.primitives.cpu.math.precision import Coefficients, Pair

TURN_PIECES: Coefficients = (
    0.15915494272485375,
    3.6704158115630214e-10,
    5.690025167992954e-19,
    1.4703036846932608e-27,
    2.5867171752090537e-36,
    9.458140970740169e-46,
)
"""1 / (2 pi) in pieces of 29 bits, whose products with a float32 are exact doubles."""


TWO_PI: Pair = (6.283185307179586, 2.4492935982947064e-16)


PER_HALF_PI = 0.6366197723675814


_TURN_LEADING_ZEROS = 2


_TURN_BITS = int(
    "28be60db9391054a7f09d5f47d4d377036d8a5664f10e4107f9458eaf7aef158"
    "6dc91b8e909374b801924bba827464873f877ac72c4a69cfba208d7d4baed121"
    "3a671c09ad17df904e64758e60d4ce7d272117e2ef7e4a0ec7fe25fff7816603"
    "fbcbc462d6829b47db4d9fb3c9f2c26dd3d18fd9a797fa8b5d49eeb1faf97c5e"
    "cf41ce7de294a4ba9afed7ec47e357421580cc11bf1edaeafc33ef0826bd0d87"
    "6a78e",
    16,
)
"""The bits of 1 / (2 pi) after its two leading zeros."""


HUGE_EXPONENT = 20 + 16 * 32
"""From this row of the table on, words are lifted, lest the last be subnormal."""


HUGE_LIFT = 400


def turn_rows(step_bits: int, first_exponent: int) -> list[Coefficients]:
    """Return rows of 1 / (2 pi) in four words, less the bits that give whole turns.

    Row 0 serves numbers below ``2^(first_exponent + 2^step_bits)``, and each later row
    the next ``2^step_bits`` exponents.
    """
    step = 1 << step_bits
    total = _TURN_BITS.bit_length() + _TURN_LEADING_ZEROS
    rows: list[Coefficients] = []
    for row in range((1024 - first_exponent) // step + 1):
        exponent = first_exponent + row * step
        # A float64 of this exponent or more is a multiple of 2^(exponent - 52).
        kept = total if row == 0 else total + 52 - exponent
        lift = HUGE_LIFT if exponent >= HUGE_EXPONENT else 0
        rows.append(_words(_TURN_BITS & ((1 << min(kept, total)) - 1), total - lift))
    return rows


def _words(numerator: int, scale: int) -> Coefficients:
    """Return ``numerator / 2^scale`` as four truncated 53-bit words."""
    words: list[float] = []
    for _ in range(4):
        drop = max(numerator.bit_length() - 53, 0)
        words.append(ldexp(float(numerator >> drop), drop - scale))
        numerator &= (1 << drop) - 1
    return tuple(words)
