# SPDX-License-Identifier: Apache-2.0
"""What functions made of others begin with."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.trace.refusals as refusals
from nfuser.trace.listed import array_of
from nfuser.trace.symbolic import SymbolicInt

if TYPE_CHECKING:
    from nfuser.trace.tracer import Tracer


def array(t: Tracer, x: Any) -> Any:
    """Return what ``numpy.asarray`` makes of ``x``, traced."""
    return t.wrap(array_of(t, x))


def as_float(x: Any) -> Any:
    """Return ``x``, integers and bools as float64."""
    return x.astype(np.float64) if x.dtype.kind in "biu" else x


def conjugate(x: Any) -> Any:
    """Return the conjugate of ``x``; what is real stays of its dtype, bools too."""
    return np.conj(x) if x.dtype.kind == "c" else x


def plain(number: Any) -> Any:
    """Return today's integers for sizes of the trace."""
    if isinstance(number, (tuple, list)):
        return tuple(plain(n) for n in number)
    return int(number) if isinstance(number, SymbolicInt) else number


def refuse(name: str, **options: Any) -> None:
    """Refuse keywords that are not honoured; None and NumPy's no-value pass."""
    for option, setting in options.items():
        is_default = setting is None or setting is np._NoValue  # pyright: ignore[reportPrivateUsage]
        if not is_default and not (option == "where" and setting is True):
            raise refusals.keyword(name, option)
