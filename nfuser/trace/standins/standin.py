# SPDX-License-Identifier: Apache-2.0
"""What all stand-ins have in common."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, TypeGuard

import numpy as np


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
    # Read without running Python: what watches a trace would see it.
    __class__ = property(attrgetter("_kind"))  # pyright: ignore[reportIncompatibleMethodOverride]

    def _operand(self) -> Any:
        """Return the tensor or the scalar that this stands for."""
        raise NotImplementedError


def is_ndarray(item: object) -> TypeGuard[np.ndarray[Any, Any]]:
    """Tell whether ``item`` is an array of NumPy's itself, not what stands for one."""
    return isinstance(item, np.ndarray) and not isinstance(item, Standin)
