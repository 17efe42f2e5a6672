# SPDX-License-Identifier: Apache-2.0
"""Questions about dtypes and shapes, which tracing can answer, and about real parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.trace.numpy.composed.parts import array
from nfuser.compiler.trace.standins.sizes import is_sequence
from nfuser.compiler.trace.standins.standin import Standin
from nfuser.errors import DTypeError, ShapeError

if TYPE_CHECKING:
    from nfuser.compiler.trace.tracer import Tracer


def _asking(name: str) -> Any:
    """Return a handler that hands over arrays of the same dtypes, without elements."""
    question = getattr(np, name)

    def handler(t: Tracer, *args: Any, **options: Any) -> Any:
        samples = [_sample(t, x) for x in args]
        named = {key: _sample(t, x) for key, x in options.items()}
        try:
            return question(*samples, **named)
        except TypeError as error:
            message = f"{name}: {error}"
            raise DTypeError(message) from error

    return handler


def _sample(t: Tracer, x: Any) -> Any:
    return np.empty(0, array(t, x).dtype) if isinstance(x, Standin) else x


def iscomplex(t: Tracer, x: Any) -> Any:
    """Return ``numpy.iscomplex``."""
    x = array(t, x)
    return x.imag != 0 if x.dtype.kind == "c" else np.zeros_like(x, bool)


def isreal(t: Tracer, x: Any) -> Any:
    """Return ``numpy.isreal``."""
    x = array(t, x)
    return x.imag == 0 if x.dtype.kind == "c" else np.ones_like(x, bool)


def broadcast_shapes(t: Tracer, *args: Any) -> tuple[Any, ...]:
    """Return ``numpy.broadcast_shapes``; sizes that are open stay so."""
    del t
    shapes = [tuple(s) if is_sequence(s) else (s,) for s in args]
    rank = max((len(s) for s in shapes), default=0)
    found: list[Any] = [1] * rank
    for shape in shapes:
        for axis, size in enumerate(shape, rank - len(shape)):
            if size < 0:
                message = "broadcast_shapes: negative dimensions are not allowed"
                raise ShapeError(message)
            if size == 1:
                continue
            if found[axis] not in (1, size):
                message = (
                    "broadcast_shapes: shape mismatch: the sizes along axis "
                    f"{axis - rank} are {int(found[axis])} and {int(size)}"
                )
                raise ShapeError(message)
            found[axis] = size
    return tuple(found)


HANDLERS = {
    "broadcast_shapes": broadcast_shapes,
    "can_cast": _asking("can_cast"),
    "common_type": _asking("common_type"),
    "iscomplex": iscomplex,
    "iscomplexobj": _asking("iscomplexobj"),
    "isreal": isreal,
    "isrealobj": _asking("isrealobj"),
}
