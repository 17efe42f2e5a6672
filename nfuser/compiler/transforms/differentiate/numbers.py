# SPDX-License-Identifier: Apache-2.0
"""Elementwise operations by name, in which derivatives are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.dtypes import DType
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops import Builder


class Numbers:
    """The operations on tensors of one dtype, and its numbers.

    >>> from nfuser.compiler.dtypes import DType
    >>> from nfuser.compiler.ops import Builder
    >>> b = Builder()
    >>> n, x = Numbers(b, DType.F32), b.argument(0, 1, DType.F32)
    >>> n.multiply(x, n(2.0)).dtype
    f32
    """

    def __init__(self, b: Builder, dtype: DType) -> None:
        self.b = b
        self.dtype = dtype

    def __call__(self, number: float) -> TensorView:
        """Return a number of this dtype."""
        made = complex(number) if self.dtype.is_complex else number
        return self.b.constant(made, self.dtype)

    def __getattr__(self, name: str) -> Callable[..., TensorView]:
        return lambda *operands: self.b.point(name, *operands)

    def scaled(self, x: TensorView, factor: float) -> TensorView:
        """Return ``x`` times a number."""
        return self.multiply(x, self(factor))

    def square(self, x: TensorView) -> TensorView:
        """Return ``x`` times itself."""
        return self.multiply(x, x)

    def without_zeros(self, x: TensorView) -> TensorView:
        """Return ``x`` with 1 in place of 0."""
        return self.select(self.equal(x, self(0.0)), self(1.0), x)
