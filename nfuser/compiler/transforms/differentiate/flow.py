# SPDX-License-Identifier: Apache-2.0
"""A cotangent on its way, and where it counts.

``where(c, f(x), 0)`` takes ``f(x)`` in some places. Elsewhere the cotangent of ``f(x)``
is 0; and 0 times a slope that is not a number would not be 0. So the choice travels
along, and is made after the slopes were multiplied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.base import value

if TYPE_CHECKING:
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops import Builder


@value
class Flow:
    """The cotangent ``held`` where ``taken`` holds, and 0 elsewhere; None is all."""

    held: TensorView
    taken: TensorView | None = None


def settled(b: Builder, flow: Flow) -> TensorView:
    """Return the cotangent with its zeros."""
    if flow.taken is None:
        return flow.held
    zero = b.convert(0, flow.held.dtype)
    return b.point("select", flow.taken, flow.held, zero)


def both(b: Builder, flow: Flow, other: Flow) -> Flow:
    """Return the sum of two cotangents of one tensor."""
    if flow.taken is other.taken:
        return Flow(b.point("add", flow.held, other.held), flow.taken)
    total = b.point("add", settled(b, flow), settled(b, other))
    if flow.taken is None or other.taken is None:
        return Flow(total)
    return Flow(total, b.point("bit_or", flow.taken, other.taken))
