# SPDX-License-Identifier: Apache-2.0
"""What all stand-ins have in common."""

from __future__ import annotations

from typing import Any


class Standin:
    """Base of what stands in a traced function for what is not known yet."""

    __slots__ = ("__weakref__", "_tracer")
    _tracer: Any

    def _operand(self) -> Any:
        """Return the tensor or the scalar that this stands for."""
        raise NotImplementedError
