# SPDX-License-Identifier: Apache-2.0
"""Inverse circular and hyperbolic functions of complex numbers.

With ``r`` and ``s`` the distances of the point to -1 and to 1, ``a = (r + s) / 2`` is a
hyperbolic cosine (Hull, Fairgrieve and Tang). ``a - 1`` and the legs of the angles are
written without cancellation, and squares as products of what neither overflows nor
vanishes. Signs follow those of the parts, those of zeros too: they choose the side of
a branch cut.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import nfuser.compiler.ops.elementwise.complex.parts as parts
from nfuser.compiler.dtypes import DType

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.builder import Builder

# From here on 1 does not count beside the modulus; its square is a finite number yet.
_FAR = {DType.F32: 2.0**30, DType.F64: 2.0**60}


class _Numbers:
    """Real arithmetic on tensors of one dtype."""

    def __init__(self, b: Builder, dtype: DType) -> None:
        self.b = b
        self.dtype = dtype
        self.far = self(_FAR[dtype])

    def __call__(self, number: float) -> TensorView:
        return self.b.constant(number, self.dtype)

    def __getattr__(self, name: str) -> Callable[..., TensorView]:
        return lambda *operands: self.b.point(name, *operands)

    def half(self, x: TensorView) -> TensorView:
        return self.multiply(x, self(0.5))

    def is_far(self, x: TensorView, y: TensorView) -> TensorView:
        far = self.greater(x, self.far), self.greater(y, self.far)
        return self.bit_or(*far)

    def distances(
        self, x: TensorView, y: TensorView
    ) -> tuple[TensorView, TensorView, TensorView, TensorView]:
        """Return ``|x + 1|`` and the distance to -1, ``|x - 1|`` and that to 1."""
        right, left = self.add(x, self(1.0)), self.absolute(self.subtract(x, self(1.0)))
        return right, self.hypot(right, y), left, self.hypot(left, y)


def _quadrant(
    b: Builder, z: TensorView
) -> tuple[_Numbers, TensorView, TensorView, TensorView, TensorView]:
    """Return arithmetic, both parts, and both without their signs."""
    re, im = parts.real(b, z), parts.imag(b, z)
    n = _Numbers(b, re.dtype)
    return n, re, im, n.absolute(re), n.absolute(im)


def _growth(n: _Numbers, x: TensorView, y: TensorView) -> TensorView:
    """Return ``acosh(a)`` in the first quadrant."""
    right, r, left, s = n.distances(x, y)
    to_right, to_left = n.add(r, right), n.add(s, left)
    over = n.divide(y, to_right)
    inverses = n.half(n.add(n.reciprocal(to_right), n.reciprocal(to_left)))
    more = n.half(n.add(r, s))  # a
    above = n.add(more, n(1.0))
    inside = n.less(x, n(1.0))
    # Inside, a - 1 is y * y * inverses, whose root must not vanish with y * y.
    gap_in = n.multiply(y, n.multiply(y, inverses))
    root_in = n.multiply(y, n.sqrt(n.multiply(inverses, above)))
    gap_out = n.half(n.add(n.multiply(y, over), n.add(s, left)))
    root_out = n.sqrt(n.multiply(gap_out, above))
    gap = n.select(inside, gap_in, gap_out)
    near = n.log1p(n.add(gap, n.select(inside, root_in, root_out)))
    halves = n.hypot(n.half(x), n.half(y))
    far = n.add(n.log(halves), n(2 * math.log(2)))
    return n.select(n.is_far(x, y), far, near)


def _leg(n: _Numbers, x: TensorView, y: TensorView) -> TensorView:
    """Return what lies opposite to the angle whose cosine is ``x / a``."""
    right, r, left, s = n.distances(x, y)
    to_right, to_left = n.add(r, right), n.add(s, left)
    sum_ = n.add(n.half(n.add(r, s)), x)
    inside = n.less_equal(x, n(1.0))
    over = n.add(n.multiply(y, n.divide(y, to_right)), to_left)
    leg_in = n.sqrt(n.half(n.multiply(sum_, over)))
    ratios = n.add(n.divide(sum_, to_right), n.divide(sum_, to_left))
    leg_out = n.multiply(y, n.sqrt(n.half(ratios)))
    leg = n.select(inside, leg_in, leg_out)
    return n.select(n.is_far(x, y), y, leg)


def asin(b: Builder, z: TensorView) -> TensorView:
    """Return the inverse sine."""
    n, re, im, x, y = _quadrant(b, z)
    angle = n.atan2(x, _leg(n, x, y))
    angle = n.select(n.equal(x, n(0.0)), x, angle)
    return parts.join(b, n.copysign(angle, re), n.copysign(_growth(n, x, y), im))


def acos(b: Builder, z: TensorView) -> TensorView:
    """Return the inverse cosine."""
    n, re, im, x, y = _quadrant(b, z)
    angle = n.atan2(_leg(n, x, y), re)
    angle = n.select(n.equal(x, n(0.0)), n(math.pi / 2), angle)
    return parts.join(b, angle, n.copysign(_growth(n, x, y), n.negative(im)))


def asinh(b: Builder, z: TensorView) -> TensorView:
    """Return the inverse hyperbolic sine."""
    return parts.swapped(b, asin(b, parts.swapped(b, z)))


def acosh(b: Builder, z: TensorView) -> TensorView:
    """Return the inverse hyperbolic cosine, which has no negative real part."""
    turned, y = acos(b, z), parts.imag(b, z)
    growth, angle = parts.imag(b, turned), parts.real(b, turned)
    return parts.join(b, b.point("absolute", growth), b.point("copysign", angle, y))


def atanh(b: Builder, z: TensorView) -> TensorView:
    """Return the inverse hyperbolic tangent."""
    n, re, im, x, y = _quadrant(b, z)
    right, r, _, s = n.distances(x, y)
    share = n.multiply(n(4.0), n.divide(n.divide(x, s), s))
    near = n.half(n.subtract(n.log(r), n.log(s)))
    growth = n.multiply(n(0.25), n.log1p(share))
    growth = n.select(n.less(s, n(2.0**-20)), near, growth)
    infinite = n.bit_or(n.isinf(x), n.isinf(y))
    growth = n.select(n.bit_or(infinite, n.equal(x, n(0.0))), n(0.0), growth)
    inside = n.multiply(n.subtract(n(1.0), x), right)
    angle = n.half(n.atan2(n.add(y, y), n.subtract(inside, n.multiply(y, y))))
    # Not a number is not far: it stays one, but beside an infinite height.
    upright = n.bit_or(n.isinf(y), n.greater(n.add(x, y), n.far))
    angle = n.select(upright, n(math.pi / 2), angle)
    return parts.join(b, n.copysign(growth, re), n.copysign(angle, im))


def atan(b: Builder, z: TensorView) -> TensorView:
    """Return the inverse tangent."""
    return parts.swapped(b, atanh(b, parts.swapped(b, z)))
