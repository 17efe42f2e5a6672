# SPDX-License-Identifier: Apache-2.0
"""What dropout keeps, in NumPy's words, whoever drew what is dropped."""

from __future__ import annotations

from typing import Any

import numpy as np

from nfuser.compiler.dtypes import as_dtype
from nfuser.errors import DTypeError


def kept(x: Any, dropped: Any, p: Any) -> Any:
    """Return zero where elements of ``x`` are dropped, and the others over ``1 - p``.

    The scale of 16-bit floats has 32 bits: of 16 it would leave all that is kept too
    small, or too large, alike.
    """
    # Where all are dropped nothing is divided: a gradient would be 0 times infinity.
    scale = 1 / (1 - p + (p == 1))
    if not as_dtype(x.dtype).is_half:
        return np.where(dropped, 0, x * scale)
    wide = np.where(dropped, 0, np.astype(x, np.float32) * scale)
    return np.astype(wide, x.dtype)


def require_floats(x: Any) -> None:
    """Refuse what cannot be divided and stay of its dtype."""
    if as_dtype(x.dtype).kind not in "fc":
        message = f"write x.astype(np.float32): dropout takes floats, found {x.dtype}"
        raise DTypeError(message)
