# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N803 (an argument has the name that NumPy gives it)
"""Windows of signals: weights that fall off towards both ends."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.trace.numpy.composed.parts import array, as_float
from nfuser.compiler.trace.standins.sizes import size
from nfuser.compiler.trace.standins.symbolic import SymbolicInt
from nfuser.errors import DTypeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.trace.tracer import Tracer

# Coefficients of Chebyshev series of i0, as Cephes has them.
_NEAR = (
    -4.41534164647933937950e-18,
    3.33079451882223809783e-17,
    -2.43127984654795469359e-16,
    1.71539128555513303061e-15,
    -1.16853328779934516808e-14,
    7.67618549860493561688e-14,
    -4.85644678311192946090e-13,
    2.95505266312963983461e-12,
    -1.72682629144155570723e-11,
    9.67580903537323691224e-11,
    -5.18979560163526290666e-10,
    2.65982372468238665035e-9,
    -1.30002500998624804212e-8,
    6.04699502254191894932e-8,
    -2.67079385394061173391e-7,
    1.11738753912010371815e-6,
    -4.41673835845875056359e-6,
    1.64484480707288970893e-5,
    -5.75419501008210370398e-5,
    1.88502885095841655729e-4,
    -5.76375574538582365885e-4,
    1.63947561694133579842e-3,
    -4.32430999505057594430e-3,
    1.05464603945949983183e-2,
    -2.37374148058994688156e-2,
    4.93052842396707084878e-2,
    -9.49010970480476444210e-2,
    1.71620901522208775349e-1,
    -3.04682672343198398683e-1,
    6.76795274409476084995e-1,
)
_FAR = (
    -7.23318048787475395456e-18,
    -4.83050448594418207126e-18,
    4.46562142029675999901e-17,
    3.46122286769746109310e-17,
    -2.82762398051658348494e-16,
    -3.42548561967721913462e-16,
    1.77256013305652638360e-15,
    3.81168066935262242075e-15,
    -9.55484669882830764870e-15,
    -4.15056934728722208663e-14,
    1.54008621752140982691e-14,
    3.85277838274214270114e-13,
    7.18012445138366623367e-13,
    -1.79417853150680611778e-12,
    -1.32158118404477131188e-11,
    -3.14991652796324136454e-11,
    1.18891471078464383424e-11,
    4.94060238822496958910e-10,
    3.39623202570838634515e-9,
    2.26666899049817806459e-8,
    2.04891858946906374183e-7,
    2.89137052083475648297e-6,
    6.88975834691682398426e-5,
    3.36911647825569408990e-3,
    8.04490411014108831608e-1,
)


def _series(x: Any, factors: tuple[float, ...]) -> Any:
    """Return half of a Chebyshev series, by Clenshaw's recurrence."""
    now: Any = factors[0]
    before = last = 0.0
    for factor in factors[1:]:
        now, before, last = x * now - before + factor, now, before
    return 0.5 * (now - last)


def i0(t: Tracer, x: Any) -> Any:
    """Return ``numpy.i0``."""
    x = array(t, x)
    if x.dtype.kind == "c":
        message = "i0 not supported for complex values"
        raise DTypeError(message)
    x = np.abs(as_float(x))
    near = _series(x / 2.0 - 2.0, _NEAR)
    far = _series(32.0 / x - 2.0, _FAR) / np.sqrt(x)
    return np.exp(x) * np.where(x <= 8.0, near, far)


def _window(name: str, weigh: Callable[..., Any]) -> Any:
    def handler(t: Tracer, M: Any, *options: Any, **named: Any) -> Any:
        length: Any = M if isinstance(M, SymbolicInt) else size(t, M, name)
        if length < 1:
            return t.handlers["zeros"](t, 0)
        if length == 1:
            return t.handlers["ones"](t, 1)
        ticks = t.handlers["arange"](t, 1 - length, length, 2).astype(np.float64)
        return weigh(t, ticks, length - 1, *options, **named)

    return handler


def _bartlett(t: Tracer, ticks: Any, last: Any) -> Any:
    del t
    return np.where(ticks <= 0, 1 + ticks / last, 1 - ticks / last)


def _blackman(t: Tracer, ticks: Any, last: Any) -> Any:
    del t
    slow, fast = np.cos(np.pi * ticks / last), np.cos(2.0 * np.pi * ticks / last)
    return 0.42 + 0.5 * slow + 0.08 * fast


def _raised(base: float, height: float) -> Any:
    def weigh(t: Tracer, ticks: Any, last: Any) -> Any:
        del t
        return base + height * np.cos(np.pi * ticks / last)

    return weigh


def _kaiser(t: Tracer, ticks: Any, last: Any, beta: Any) -> Any:
    places = ticks / last
    bend = np.sqrt(np.maximum(1 - places * places, 0.0))
    return i0(t, beta * bend) / i0(t, np.float64(1) * beta)


HANDLERS = {
    "i0": i0,
    "bartlett": _window("bartlett", _bartlett),
    "blackman": _window("blackman", _blackman),
    "hamming": _window("hamming", _raised(0.54, 0.46)),
    "hanning": _window("hanning", _raised(0.5, 0.5)),
    "kaiser": _window("kaiser", _kaiser),
}
