# SPDX-License-Identifier: Apache-2.0
"""What the methods and operators of a stand-in mean: what its array's library says.

Functions of NumPy mean NumPy's on the arrays of any library, and are written in the
methods of NumPy's arrays: while one runs, stand-ins speak NumPy.
"""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

import nfuser.compiler.trace.numpy.names.refusals as refusals
from nfuser.errors import RangeError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nfuser.compiler.dtypes import DType
    from nfuser.compiler.ir.tensor import TensorView

P = ParamSpec("P")
R = TypeVar("R")
_WEAK = frozenset({bool, int, float, complex})


class Dialect:
    """That of NumPy, and of whatever speaks as it does.

    ``methods`` are those whose meaning is another than that of the NumPy function of
    their name, ``attributes`` those that NumPy's arrays do not have.
    """

    methods: Mapping[str, Callable[..., Any]] = {}
    attributes: Mapping[str, Callable[..., Any]] = {}
    has_words = False  # functions of the library that are no NumPy's have fused forms

    def meet(self, t: Any, verb: Any, operands: list[Any]) -> list[Any]:
        """Return the operands of an operator, converted as the library does first."""
        del t, verb
        return operands

    def number(self, item: Any) -> Any:
        """Return a number as an operand: to NumPy, only Python's own types are weak."""
        if type(item) in _WEAK or isinstance(item, np.generic):
            return item
        found = np.asarray(item)  # of an IntEnum, or another class made of int
        if found.dtype == object:
            message = (
                f"write int(k) in place of a number of class {type(item).__name__} "
                "beyond 64 bits, which NumPy puts into an array of objects"
            )
            raise RangeError(message)
        return found[()]

    def check_operands(self, operands: tuple[Any, ...]) -> None:
        """Refuse what an operator of the library does not take beside an array."""
        del operands

    def is_operator(self, name: str, inputs: tuple[Any, ...]) -> bool:
        """Tell whether a ufunc was reached by an operator that means another thing."""
        del name, inputs
        return False

    def attribute(self, name: str) -> Exception:
        """Return the error for an attribute that stand-ins do not have."""
        return refusals.attribute(name)

    def dtype(self, dtype: DType) -> Any:
        """Return a dtype in the library's own terms."""
        return dtype.numpy

    def class_of(self, held: TensorView, array: type) -> type:
        """Return the class of a result; NumPy gives scalars where no axis is left."""
        return held.dtype.numpy.type if not held.ndim else array


NUMPY = Dialect()


def in_numpy(handler: Callable[P, R]) -> Callable[P, R]:
    """Return ``handler``, whose first argument is a trace, speaking NumPy."""

    @functools.wraps(handler)
    def spoken(*args: P.args, **options: P.kwargs) -> R:
        t: Any = args[0]
        before = t.dialect
        if before is NUMPY:
            return handler(*args, **options)
        t.dialect = NUMPY
        try:
            return handler(*args, **options)
        finally:
            t.dialect = before

    return spoken


def spoken(method: Callable[P, R]) -> Callable[P, R]:
    """Return a method that another dialect may have its own form of."""
    name = method.__name__

    @functools.wraps(method)
    def chosen(*args: P.args, **options: P.kwargs) -> R:
        x: Any = args[0]
        own: Any = x._tracer.dialect.methods.get(name)
        if own is None:
            return method(*args, **options)
        return own(x._tracer, *args, **options)

    return chosen


def is_of_torch(kind: type) -> bool:
    """Tell whether a class is torch's own."""
    return kind.__module__.partition(".")[0] == "torch"
