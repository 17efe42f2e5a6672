# SPDX-License-Identifier: Apache-2.0
"""Numbers of Python's that a call computes: ``float(x.sum())``, what turns count."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.trace.source_line import is_users
from nfuser.compiler.trace.standins.array import TracedArray
from nfuser.errors import TraceError

if TYPE_CHECKING:
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.trace.tracer import Tracer

_TEXT = (
    "make text of what the call returns, and pass what is to be a size, as in "
    "np.zeros(n), as an argument: expected a number that is known while tracing, found "
    "one that the call computes"
)
_ROUND = (
    "write np.round(x, digits) in place of round(x, digits), which Python rounds in "
    "decimals: expected a number that is known while tracing"
)


class OpenNumber(TracedArray):
    """Stands for a number of Python's, which has no text and no methods of an array."""

    __slots__ = ()

    def _known(self) -> Any:
        return self._tracer.consume_if_number(self._operand(), None)

    def _text_of(self) -> Any:
        """Return what text is made of: messages of nfuser's own show what this is."""
        number = self._known()
        if number is not None:
            return number
        asking = sys._getframe(2).f_globals.get("__name__", "")  # pyright: ignore[reportPrivateUsage]
        if not asking.startswith("nfuser."):
            raise TraceError(_TEXT)
        return f"<traced {self._kind.__name__}>"

    def __str__(self) -> str:
        return str(self._text_of())

    def __format__(self, spec: str) -> str:
        return format(self._text_of(), spec)

    def __repr__(self) -> str:
        caller = sys._getframe(1).f_code.co_filename  # pyright: ignore[reportPrivateUsage]
        return repr(self._text_of()) if is_users(caller) else super().__repr__()

    def __trunc__(self) -> Any:
        return self._rounded("trunc", np.trunc)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, _: Any) -> Any:
        return self

    def __round__(self, digits: int | None = None) -> Any:
        number = self._known()
        if number is not None:
            return round(number, digits)
        if digits is None:
            return super().__round__()
        if self._kind is float or digits < 0:
            raise TraceError(_ROUND)
        return +self

    @property
    def real(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The number itself."""
        return +self

    @property
    def imag(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Zero."""
        return self._kind(0) * 1

    def conjugate(self) -> Any:
        """Return the number itself."""
        return +self


def wrap(tracer: Tracer, held: TensorView, **view: Any) -> TracedArray:
    """Return the stand-in of ``held``."""
    is_number = tracer.opens and held in tracer.builder.weak
    return (OpenNumber if is_number else TracedArray)(tracer, held, **view)
