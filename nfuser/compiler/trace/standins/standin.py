# SPDX-License-Identifier: Apache-2.0
"""What all stand-ins have in common."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeGuard, cast

import numpy as np

if TYPE_CHECKING:
    from types import FrameType

# Frames that are in a call of torch's C code. It takes whatever says that it is a
# tensor for one, and reads its memory.
inside_torch: set[FrameType] = set()
# The classes of what masks choose, which alone know how they meet arrays.
chosen_by_masks: set[type] = set()


def shown_class(standin: Any) -> type:
    """Return the class that a stand-in says it is of: to torch's C code, its own."""
    # The frame is asked for only while there is such a call.
    if inside_torch and sys._getframe(1) in inside_torch:  # pyright: ignore[reportPrivateUsage]
        return cast("type[Any]", type(standin))
    return standin._kind


class Standin:
    """Base of what stands in a traced function for what is not known yet.

    It says that it is of the class of what it stands for: ``isinstance(n, int)``,
    ``isinstance(x, np.ndarray)``, a ``case int()`` and ``singledispatch`` take the
    branch that they take without tracing. Ours ask for stand-ins first; C code asks
    the type itself, which is another.
    """

    __slots__ = ("__weakref__", "_kind", "_tracer")
    _kind: type
    _tracer: Any
    __class__ = property(shown_class)  # pyright: ignore[reportIncompatibleMethodOverride]

    def _operand(self) -> Any:
        """Return the tensor or the scalar that this stands for."""
        raise NotImplementedError


def is_ndarray(item: object) -> TypeGuard[np.ndarray[Any, Any]]:
    """Tell whether ``item`` is an array of NumPy's itself, not what stands for one."""
    return isinstance(item, np.ndarray) and not isinstance(item, Standin)
