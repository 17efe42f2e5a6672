# SPDX-License-Identifier: Apache-2.0
"""The operators of a traced array, straight, reflected and in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nfuser.compiler.ops as ops
import nfuser.compiler.trace.numpy.names.refusals as refusals
from nfuser.compiler.trace.standins.dialect import NUMPY
from nfuser.compiler.trace.standins.standin import Standin, chosen_by_masks
from nfuser.compiler.trace.watch.unwatched import unwatched

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.ops.elementwise.of_rows import BinaryVerb


def _straight(verb: BinaryVerb) -> Callable[[Any, Any], Any]:
    @unwatched
    def method(self: Any, other: Any) -> Any:
        if type(other) in chosen_by_masks:
            return NotImplemented
        return self._tracer.operate(verb, self, other)

    return method


def _reflected(verb: BinaryVerb) -> Callable[[Any, Any], Any]:
    @unwatched
    def method(self: Any, other: Any) -> Any:
        return self._tracer.operate(verb, other, self)

    return method


def _in_place(verb: BinaryVerb) -> Callable[[Any, Any], Any]:
    @unwatched
    def method(self: Any, other: Any) -> Any:
        return self._update(verb, other)

    return method


@unwatched
def _power(self: Any, other: Any) -> Any:
    if type(other) in chosen_by_masks:
        return NotImplemented
    # Of arrays alone NumPy takes the square, which makes an int8 of a bool.
    is_square = type(other) is int and other == 2 and not self._is_number
    squares = is_square and self._tracer.dialect is NUMPY
    if squares and self._operand().dtype.is_bool:
        return self._tracer.operate(ops.square, self)
    return self._tracer.operate(ops.power, self, other)


@unwatched
def _matmul(self: Any, other: Any) -> Any:
    return self._tracer.call_operator(ops.matmul, self, other)


@unwatched
def _rmatmul(self: Any, other: Any) -> Any:
    return self._tracer.call_operator(ops.matmul, other, self)


class Operators(Standin):
    """Python's operators over stand-ins."""

    __slots__ = ()

    __add__, __radd__ = _straight(ops.add), _reflected(ops.add)
    __sub__, __rsub__ = _straight(ops.subtract), _reflected(ops.subtract)
    __mul__, __rmul__ = _straight(ops.multiply), _reflected(ops.multiply)
    __truediv__, __rtruediv__ = _straight(ops.divide), _reflected(ops.divide)
    __floordiv__ = _straight(ops.floor_divide)
    __rfloordiv__ = _reflected(ops.floor_divide)
    __mod__, __rmod__ = _straight(ops.remainder), _reflected(ops.remainder)
    __pow__, __rpow__ = _power, _reflected(ops.power)
    __divmod__, __rdivmod__ = _straight(ops.divmod), _reflected(ops.divmod)  # pyright: ignore[reportArgumentType]
    __and__, __rand__ = _straight(ops.bitwise_and), _reflected(ops.bitwise_and)
    __or__, __ror__ = _straight(ops.bitwise_or), _reflected(ops.bitwise_or)
    __xor__, __rxor__ = _straight(ops.bitwise_xor), _reflected(ops.bitwise_xor)
    __lshift__, __rlshift__ = _straight(ops.left_shift), _reflected(ops.left_shift)
    __rshift__, __rrshift__ = _straight(ops.right_shift), _reflected(ops.right_shift)
    __lt__, __gt__ = _straight(ops.less), _straight(ops.greater)
    __le__, __ge__ = _straight(ops.less_equal), _straight(ops.greater_equal)
    __eq__ = _straight(ops.equal)
    __ne__ = _straight(ops.not_equal)

    def __hash__(self) -> int:
        raise refusals.hashed()

    __matmul__ = _matmul
    __rmatmul__ = _rmatmul

    __iadd__, __isub__ = _in_place(ops.add), _in_place(ops.subtract)
    __imul__, __itruediv__ = _in_place(ops.multiply), _in_place(ops.divide)
    __ifloordiv__ = _in_place(ops.floor_divide)
    __imod__, __ipow__ = _in_place(ops.remainder), _in_place(ops.power)
    __iand__, __ior__ = _in_place(ops.bitwise_and), _in_place(ops.bitwise_or)
    __ixor__ = _in_place(ops.bitwise_xor)
    __imatmul__ = _in_place(ops.matmul)
    __ilshift__ = _in_place(ops.left_shift)
    __irshift__ = _in_place(ops.right_shift)

    @unwatched
    def __neg__(self) -> Any:
        return self._tracer.operate(ops.negative, self)

    @unwatched
    def __pos__(self) -> Any:
        tracer = self._tracer
        if tracer.dialect.has_words and not tracer.tensor(self).dtype.is_bool:
            return self  # in torch
        return tracer.operate(ops.positive, self)

    @unwatched
    def __abs__(self) -> Any:
        return self._tracer.operate(ops.absolute, self)

    @unwatched
    def __invert__(self) -> Any:
        return self._tracer.operate(ops.invert, self)
