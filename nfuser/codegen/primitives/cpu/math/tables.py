# SPDX-License-Identifier: Apache-2.0
"""Polynomial coefficients and constants of the CPU mathematics, by precision.

Each polynomial is a minimax fit (Remez exchange in 60 digits) of the function named in
its comment, constant coefficient first. Constants that need more than one word are
pairs of the rounded value and what is left of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ldexp
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
    sin_unit: Coefficients  # as sin, |r| <= 1 + 2^-16
    cos_unit: Coefficients  # as cos, |r| <= 1 + 2^-16
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


SINGLE = Precision(
    bits=32,
    fraction_bits=23,
    bias=127,
    round_shift=12582912.0,
    smallest_normal=2.0**-126,
    exp_range=(-104.0, 89.0),
    exp2_range=(-151.0, 129.0),
    expm1_floor=-20.0,
    sinh_limit=89.6,
    tanh_limit=10.0,
    tiny=2.0**-14,
    erf_limit=4.0,
    erfcx_centre=2.0,
    erfc_limit=10.2,
    sqrt_half_bits=0x3F3504F3,
    half_pi_words=(
        1.570796251296997,  # rounded down
        7.549533620476723e-08,  # 11 bits
        2.5633440682570896e-12,
    ),
    constants=Constants(
        ln2=(0.6931472, -1.9046542e-09),
        log2e=(1.442695, 1.925963e-08),
        log10e=(0.4342945, -1.010305e-08),
        log10_2=(0.30103, -1.4320989e-08),
        pi=(3.1415927, -8.742278e-08),
        half_pi=(1.5707964, -4.371139e-08),
        quarter_pi=(0.7853982, -2.1855694e-08),
    ),
    fits=Fits(
        exp=(
            0.5,
            0.16666542,
            0.041666288,
            0.008366735,
            0.0013946131,
        ),
        expm1=(
            0.5,
            0.16666667,
            0.04166636,
            0.008333274,
            0.0013940907,
            0.00019913846,
        ),
        exp2=(
            0.6931472,
            0.2402265,
            0.055503286,
            0.009618006,
            0.0013400089,
            0.0001547586,
        ),
        log=(
            0.6666667,
            0.40000302,
            0.28539106,
            0.23552403,
        ),
        sin=(
            -0.16666655,
            0.008332178,
            -0.00019517176,
        ),
        cos=(
            0.041666646,
            -0.0013887375,
            2.4439034e-05,
        ),
        sin_unit=(-0.16666667, 0.008333316, -0.00019836114, 2.694804e-06),
        cos_unit=(0.041666575, -0.0013884674, 2.4200239e-05),
        sinh=(0.16666667, 0.0083333505, 0.00019836074, 2.8174068e-06),
        tanh=(
            -0.33333302,
            0.13331977,
            -0.05378806,
            0.02080946,
            -0.0059101144,
        ),
        asin=(
            0.1666675,
            0.07495335,
            0.045467466,
            0.024188314,
            0.04215798,
        ),
        atan=(
            -0.33333316,
            0.1999853,
            -0.14244446,
            0.10599653,
            -0.060912885,
        ),
        erf_small=(
            0.12837917,
            -0.37612626,
            0.112835996,
            -0.026854403,
            0.005189445,
            -0.00080199476,
            7.885847e-05,
        ),
        erf_large=(
            0.00025652777,
            1.1274258,
            0.6376006,
            0.103566386,
            -0.022051753,
            0.0029994794,
            -0.00019149786,
        ),
        erfcx=(
            0.2769784,
            -0.09276398,
            -0.16603142,
            0.16405533,
            -0.05420418,
            -0.008059807,
            0.008630963,
            0.0013130717,
            -0.0012288619,
            -0.000399718,
        ),
    ),
)

DOUBLE = Precision(
    bits=64,
    fraction_bits=52,
    bias=1023,
    round_shift=6755399441055744.0,
    smallest_normal=2.0**-1022,
    exp_range=(-746.0, 710.0),
    exp2_range=(-1076.0, 1025.0),
    expm1_floor=-40.0,
    sinh_limit=710.7,
    tanh_limit=20.0,
    tiny=2.0**-28,
    erf_limit=6.0,
    erfcx_centre=4.0,
    erfc_limit=27.3,
    sqrt_half_bits=0x3FE6A09E667F3BCD,
    half_pi_words=(
        1.5707963267948966,
        6.12323399409214e-17,  # 29 bits
        1.6446256936324258e-26,
    ),
    constants=Constants(
        ln2=(0.6931471805599453, 2.3190468138462996e-17),
        log2e=(1.4426950408889634, 2.0355273740931033e-17),
        log10e=(0.4342944819032518, 1.098319650216765e-17),
        log10_2=(0.3010299956639812, -2.8037281277851704e-18),
        pi=(3.141592653589793, 1.2246467991473532e-16),
        half_pi=(1.5707963267948966, 6.123233995736766e-17),
        quarter_pi=(0.7853981633974483, 3.061616997868383e-17),
    ),
    fits=Fits(
        exp=(
            0.5000000000000006,
            0.16666666666666688,
            0.04166666666657225,
            0.00833333333331373,
            0.0013888888932923778,
            0.0001984126990456074,
            2.4801503712580905e-05,
            2.755722673799181e-06,
            2.7626642344033947e-07,
            2.51148350622597e-08,
        ),
        expm1=(
            0.5,
            0.16666666666666677,
            0.0416666666666667,
            0.008333333333321716,
            0.0013888888888866193,
            0.0001984126988607169,
            2.480158736210305e-05,
            2.7557244131227208e-06,
            2.755724132024433e-07,
            2.510910414082686e-08,
            2.0924906351010415e-09,
        ),
        exp2=(
            0.6931471805599453,
            0.2402265069591013,
            0.05550410866482174,
            0.00961812910759379,
            0.0013333558146378266,
            0.00015403530457651826,
            1.5252733868553812e-05,
            1.3215434972778746e-06,
            1.0178045987091487e-07,
            7.073841375388119e-09,
            4.457462024067218e-10,
        ),
        log=(
            0.6666666666666698,
            0.39999999999613434,
            0.2857142870343568,
            0.2222220219120498,
            0.1818339113315646,
            0.15318182280327883,
            0.1475705010002641,
        ),
        sin=(
            -0.16666666666666632,
            0.008333333333322509,
            -0.0001984126982985887,
            2.755731370346397e-06,
            -2.5050759197091474e-08,
            1.5896825335683118e-10,
        ),
        cos=(
            0.041666666666666616,
            -0.0013888888888876055,
            2.4801587290522934e-05,
            -2.7557314618028647e-07,
            2.0875755726075097e-09,
            -1.136117672423269e-11,
        ),
        sin_unit=(
            -0.16666666666666666,
            0.008333333333333134,
            -0.00019841269841099657,
            2.7557319155010526e-06,
            -2.505209340632409e-08,
            1.6057253062543855e-10,
            -7.535972742863732e-13,
        ),
        cos_unit=(
            0.041666666666665235,
            -0.0013888888888702723,
            2.4801587210510707e-05,
            -2.755729723209963e-07,
            2.0873944917649045e-09,
            -1.12879300021493e-11,
        ),
        sinh=(
            0.16666666666666669,
            0.00833333333333314,
            0.00019841269841436494,
            2.7557319155651027e-06,
            2.5052123355488565e-08,
            1.6057243289393378e-10,
            7.759232481921212e-13,
        ),
        tanh=(
            -0.33333333333333326,
            0.13333333333331965,
            -0.053968253967312675,
            0.021869488504005007,
            -0.008863234889274449,
            0.0035921199186447904,
            -0.0014557656885828814,
            0.000589629003083082,
            -0.00023753184616127782,
            9.252389545420529e-05,
            -3.121449434858471e-05,
            6.519785528256558e-06,
        ),
        asin=(
            0.1666666666666674,
            0.07499999999975039,
            0.04464285717137195,
            0.030381942837789753,
            0.02237221183767148,
            0.01735166163309529,
            0.013980291295060348,
            0.011402808728607484,
            0.010760423701148816,
            0.0037749151211913493,
            0.02155405510430771,
            -0.02079826598278371,
            0.03251195940526578,
        ),
        atan=(
            -0.3333333333333323,
            0.1999999999996142,
            -0.14285714280850667,
            0.11111110811616232,
            -0.09090898472173813,
            0.07692071624445292,
            -0.06663221975020124,
            0.05848677131935633,
            -0.05042589129365613,
            0.03814225301246654,
            -0.01798683363147682,
        ),
        erf_small=(
            0.1283791670955126,
            -0.3761263890318375,
            0.11283791670954882,
            -0.02686617064507736,
            0.005223977624823154,
            -0.0008548326981106241,
            0.00012055331120754248,
            -1.4925595466262048e-05,
            1.6461003376288504e-06,
            -1.6350340180567313e-07,
            1.4659939232624163e-08,
            -1.1373404067814567e-09,
            5.957986180417569e-11,
        ),
        erf_large=(
            1.11005597694547e-08,
            1.1283790792178419,
            0.6366199916962932,
            0.1027728913621934,
            -0.01913204059559053,
            -0.00019669200223185722,
            0.0016690225663736154,
            -0.0005475337483967715,
            -2.503459823485234e-05,
            0.00011224027692132627,
            -6.52867256589032e-05,
            2.441352786782971e-05,
            -6.802887165890696e-06,
            1.468531023389772e-06,
            -2.4674894890551703e-07,
            3.181060339108115e-08,
            -3.046040815512298e-09,
            2.0422592194541615e-10,
            -8.555458347171948e-12,
            1.6845506188855343e-13,
        ),
        erfcx=(
            0.2329951186255525,
            -0.13962111684056253,
            0.015379652102619688,
            0.06809705425469541,
            -0.10103906603630146,
            0.09373283499825184,
            -0.06633036581227757,
            0.037167515539080424,
            -0.016197734057118888,
            0.005031969963617351,
            -0.0007577732936136709,
            -0.00019925661651564987,
            0.0001506217033715064,
            -2.439948096687976e-05,
            -1.1222143820505454e-05,
            5.7102983905078645e-06,
            2.9413341443416415e-07,
            -8.261236852350972e-07,
            7.407316708661682e-08,
            1.1046012364128721e-07,
            -1.7395078428305042e-08,
            -1.4103844932213012e-08,
            1.6372150860681304e-09,
            1.1885458348552733e-09,
        ),
    ),
)

LOG_PAIR_FIT: Coefficients = (
    0.40000000000000285,
    0.28571428571082264,
    0.22222222340475298,
    0.18181800238886311,
    0.15386024259189662,
    0.1327383710497166,
    0.1303946326687297,
)
"""In z = s^2: ((log((1+s)/(1-s)) - 2s) / (s z) - 2/3) / z, for logarithms in pairs."""

LOG2_NARROW_FIT: Coefficients = (
    1.4426950408865744,
    -0.7213475203275653,
    0.4808983488030011,
    -0.36067379313543035,
    0.2885387957158325,
    -0.24044643364869658,
    0.20610712341776907,
    -0.18043674942383608,
    0.16021666248233246,
    -0.14249860864516367,
    0.13027564948399553,
    -0.13462925771811524,
    0.13251192162543565,
    -0.06973915116492697,
)
"""log2(1 + f) / f, |1 + f| from sqrt(1/2) to sqrt(2), within 2^-38 of it."""

EXP2_NARROW_FIT: Coefficients = (
    0.6931471838172857,
    0.2402265092079184,
    0.055504003743712935,
    0.00961805691794733,
    0.0013341951617789909,
    0.0001546136810597237,
    1.3359712098338565e-05,
)
"""(2^r - 1) / r, |r| <= 1/2, within 2^-32 of 2^r."""

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
