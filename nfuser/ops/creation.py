# SPDX-License-Identifier: Apache-2.0
"""Arrays that come of numbers alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import nfuser.ops.views as views
from nfuser.dtypes import DType
from nfuser.ir.expr import Iota

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.ir.scalar import Scalar
    from nfuser.ir.tensor import TensorView
    from nfuser.ops.builder import Builder, Operand


def full(
    b: Builder, shape: Sequence[Scalar | int], fill: Operand, dtype: DType | None = None
) -> TensorView:
    """Return an array of ``shape`` with one value everywhere."""
    element = b.tensor(fill) if dtype is None else b.convert(fill, dtype)
    return views.broadcast_to(b, element, shape)


def full_like(
    b: Builder, x: TensorView, fill: Operand, dtype: DType | None = None
) -> TensorView:
    """Return an array shaped as ``x`` with one value everywhere."""
    return full(b, x.shape, fill, dtype or x.dtype)


def arange(
    b: Builder,
    count: Scalar | int,
    start: Operand = 0,
    step: Operand = 1,
    dtype: DType = DType.I64,
) -> TensorView:
    """Return ``start + step * i`` for i below ``count``."""
    index = b.new((count,), DType.I64)
    b.emit(Iota(index))
    if dtype is DType.I64 and (start, step) == (0, 1):
        return index
    scaled = b.point("multiply", b.cast(index, dtype), b.convert(step, dtype))
    return b.point("add", scaled, b.convert(start, dtype))
