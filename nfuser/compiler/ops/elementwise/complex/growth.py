# SPDX-License-Identifier: Apache-2.0
"""Exponential, hyperbolic and circular functions of complex numbers.

Each is a growth in one part times an angle in the other. Infinities, zeros and what is
not a number give what the annex on complex numbers of C says, as NumPy has it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from nfuser.compiler.ops.elementwise.complex.parts import imag, join, real, swapped

if TYPE_CHECKING:
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.builder import Builder


class _Edges:
    """Where functions made of a growth in ``x`` and an angle ``y`` are special."""

    def __init__(self, b: Builder, x: TensorView, y: TensorView) -> None:
        self._b = b
        self.x, self.y = x, y
        self.zero = b.constant(0.0, x.dtype)
        self.signed_zero = b.point("copysign", self.zero, y)
        self.inf = b.constant(math.inf, x.dtype)
        self.open_ended = b.point("invert", b.point("isfinite", y))
        self.is_real = b.point("equal", y, self.zero)

    def where_endless(
        self, then: TensorView, other: TensorView, at: TensorView | None = None
    ) -> TensorView:
        """Choose ``then`` where no angle is known and ``at``, or |x|, is infinite."""
        far = self._b.point("equal", at or self._b.point("absolute", self.x), self.inf)
        return self._choose(far, then, other)

    def where_flat(self, then: TensorView, other: TensorView) -> TensorView:
        """Choose ``then`` where no angle is known and ``x`` is 0."""
        return self._choose(self._b.point("equal", self.x, self.zero), then, other)

    def where_real(self, then: TensorView, other: TensorView) -> TensorView:
        """Choose ``then`` where ``y`` is 0."""
        return self._b.point("select", self.is_real, then, other)

    def _choose(
        self, there: TensorView, then: TensorView, other: TensorView
    ) -> TensorView:
        both = self._b.point("bit_and", there, self.open_ended)
        return self._b.point("select", both, then, other)


def exp(b: Builder, z: TensorView) -> TensorView:
    """Return ``e ** z``; a real number stays real, also at infinity."""
    return _raised(b, z, b.point("exp", real(b, z)), imag(b, z))


def exp2(b: Builder, z: TensorView) -> TensorView:
    """Return ``2 ** z``; a real number stays real, also at infinity."""
    turn = b.point("multiply", imag(b, z), b.constant(math.log(2), z.dtype.real))
    return _raised(b, z, b.point("exp2", real(b, z)), turn)


def _raised(
    b: Builder, z: TensorView, scale: TensorView, angle: TensorView
) -> TensorView:
    """Return a number of modulus ``scale``, a power with exponent ``z``."""
    edges = _Edges(b, real(b, z), imag(b, z))
    re = b.point("multiply", scale, b.point("cos", angle))
    im = b.point("multiply", scale, b.point("sin", angle))
    re = edges.where_endless(edges.inf, re, at=edges.x)
    fallen = b.point("negative", edges.x)
    re = edges.where_endless(edges.zero, re, at=fallen)
    im = edges.where_endless(edges.signed_zero, im, at=fallen)
    return join(b, edges.where_real(scale, re), edges.where_real(edges.y, im))


def expm1(b: Builder, z: TensorView) -> TensorView:
    """Return ``e ** z - 1``, without cancellation for small ``z``."""
    x, y = real(b, z), imag(b, z)
    half = b.point("sin", b.point("multiply", y, b.constant(0.5, y.dtype)))
    turned = b.point(
        "multiply", b.constant(2.0, y.dtype), b.point("multiply", half, half)
    )
    grown = b.point("multiply", b.point("expm1", x), b.point("cos", y))
    im = b.point("multiply", b.point("exp", x), b.point("sin", y))
    return join(b, b.point("subtract", grown, turned), im)


def sinh(b: Builder, z: TensorView) -> TensorView:
    """Return the hyperbolic sine."""
    edges = _Edges(b, real(b, z), imag(b, z))
    x, y = edges.x, edges.y
    grown = b.point("sinh", x)
    re = b.point("multiply", grown, b.point("cos", y))
    im = b.point("multiply", b.point("cosh", x), b.point("sin", y))
    re = edges.where_flat(x, edges.where_endless(edges.inf, re))
    return join(b, edges.where_real(grown, re), edges.where_real(y, im))


def cosh(b: Builder, z: TensorView) -> TensorView:
    """Return the hyperbolic cosine."""
    edges = _Edges(b, real(b, z), imag(b, z))
    x, y = edges.x, edges.y
    grown, one = b.point("cosh", x), b.constant(1.0, x.dtype)
    re = b.point("multiply", grown, b.point("cos", y))
    im = b.point("multiply", b.point("sinh", x), b.point("sin", y))
    im = edges.where_flat(edges.zero, im)
    signed = b.point("multiply", y, b.point("copysign", one, x))
    re = edges.where_endless(edges.inf, re)
    return join(b, edges.where_real(grown, re), edges.where_real(signed, im))


def sin(b: Builder, z: TensorView) -> TensorView:
    """Return the sine."""
    return swapped(b, sinh(b, swapped(b, z)))


def cos(b: Builder, z: TensorView) -> TensorView:
    """Return the cosine."""
    return cosh(b, join(b, b.point("negative", imag(b, z)), real(b, z)))


def tanh(b: Builder, z: TensorView) -> TensorView:
    """Return the hyperbolic tangent; it tends to ±1 where cosh overflows."""
    edges = _Edges(b, real(b, z), imag(b, z))
    x, y = edges.x, edges.y
    t, tau, one = b.point("tan", y), b.point("tanh", x), b.constant(1.0, x.dtype)
    t2, tau2 = b.point("multiply", t, t), b.point("multiply", tau, tau)
    below = b.point("add", one, b.point("multiply", t2, tau2))
    re = b.point("divide", b.point("multiply", tau, b.point("add", one, t2)), below)
    sech = b.point("reciprocal", b.point("cosh", x))
    sech2 = b.point("multiply", sech, sech)
    im = b.point("divide", b.point("multiply", t, sech2), below)
    re = edges.where_flat(x, edges.where_endless(tau, re))
    im = edges.where_endless(edges.signed_zero, im)
    return join(b, edges.where_real(tau, re), edges.where_real(y, im))


def tan(b: Builder, z: TensorView) -> TensorView:
    """Return the tangent."""
    return swapped(b, tanh(b, swapped(b, z)))


FUNCTIONS = {
    "exp": exp,
    "exp2": exp2,
    "expm1": expm1,
    "sin": sin,
    "cos": cos,
    "tan": tan,
    "sinh": sinh,
    "cosh": cosh,
    "tanh": tanh,
}
