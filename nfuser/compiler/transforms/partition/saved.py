# SPDX-License-Identifier: Apache-2.0
"""What is told of an array that is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.base import value

if TYPE_CHECKING:
    from nfuser.compiler.dtypes import DType


@value
class Saved:
    """One array that a call keeps for the way back through it."""

    name: str
    shape: tuple[int, ...]
    dtype: DType
    bytes: int
    why: str

    def __str__(self) -> str:
        sizes = ", ".join(map(str, self.shape))
        return f"{self.name}: {self.dtype}[{sizes}], {self.bytes:,} bytes: {self.why}"
