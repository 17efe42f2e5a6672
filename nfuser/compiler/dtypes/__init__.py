# SPDX-License-Identifier: Apache-2.0
"""Element types: promotion, storage and compute types."""

from __future__ import annotations

from nfuser.compiler.dtypes.dtype import DType, as_dtype
from nfuser.compiler.dtypes.promotion import (
    check_fits,
    float_of,
    holds,
    out_of_bounds,
    promote,
    widest,
)

__all__ = [
    "DType",
    "as_dtype",
    "check_fits",
    "float_of",
    "holds",
    "out_of_bounds",
    "promote",
    "widest",
]
