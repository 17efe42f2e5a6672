# SPDX-License-Identifier: Apache-2.0
"""What functions made of others begin with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.trace.standins.literals import array_of

if TYPE_CHECKING:
    from nfuser.compiler.trace.tracer import Tracer


def array(t: Tracer, x: Any) -> Any:
    """Return what ``numpy.asarray`` makes of ``x``, traced."""
    return t.wrap(array_of(t, x))


def viewed(t: Tracer, x: Any) -> Any:
    """Return what ``numpy.asarray`` makes of ``x``, whose views write into it."""
    return x if hasattr(x, "_remake") else array(t, x)


def as_float(x: Any) -> Any:
    """Return ``x``, integers and bools as float64."""
    return x.astype(np.float64) if x.dtype.kind in "biu" else x


def conjugate(x: Any) -> Any:
    """Return the conjugate of ``x``; what is real stays of its dtype, bools too."""
    return np.conj(x) if x.dtype.kind == "c" else x
