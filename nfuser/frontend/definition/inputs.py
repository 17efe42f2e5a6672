# SPDX-License-Identifier: Apache-2.0
"""The inputs of a definition: what was promised of each, checked for each new form."""

# Arrays of five libraries have no common static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from nfuser.compiler.dtypes import DType, check_fits
from nfuser.compiler.ir.base import value
from nfuser.errors import ArgumentError, DTypeError, RangeError, ShapeError
from nfuser.execution.device.describe.descriptor import describe
from nfuser.frontend.definition.execution.hosted import worked_out
from nfuser.frontend.definition.operations.stored import Float8, bytes_of, format_of
from nfuser.frontend.definition.types import data_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.execution.device.describe.descriptor import Descriptor
    from nfuser.frontend.definition.execution.hosted import Number

Contiguity: TypeAlias = "tuple[bool | None, ...]"
_KINDS: dict[str, tuple[type, int]] = {
    "b": (bool, 0),
    "i": (int, 1),
    "u": (int, 1),
    "f": (float, 2),
    "c": (complex, 3),
}


@value
class TensorInput:
    """An array: its dtype, sizes (-1 where any) and memory layout.

    ``contiguity`` lists the axes from slowest to fastest, in the order that
    ``stride_order`` gives (0 is the fastest), or in that of the shape.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    contiguity: Contiguity
    stride_order: tuple[int, ...]
    where: str  # the user's line, as it ends a message
    stored: Float8 | None = None  # what is taken as bytes

    def taken(self, slot: int, item: Any) -> Any:
        """Return ``item`` as what kernels take: of 8-bit floats their bytes."""
        if self.stored is None:
            return item
        if format_of(item) is not self.stored:
            message = (
                f"input {slot} ({self.name}): expected an array of {self.stored.name}, "
                f"found {getattr(item, 'dtype', type(item).__name__)}; convert it, or "
                f"define the tensor with another dtype{self.where}"
            )
            raise DTypeError(message)
        return bytes_of(item)

    def check(self, slot: int, d: Descriptor) -> None:
        """Refuse an array that is not what was defined."""
        what = f"input {slot} ({self.name})"
        if d.dtype is not self.dtype:
            message = (
                f"{what}: expected {data_type(self.dtype)}, found an array of "
                f"{d.dtype.numpy.name}; convert it, or define the tensor with "
                f"dtype={data_type(d.dtype)}{self.where}"
            )
            raise DTypeError(message)
        if len(d.shape) != len(self.shape):
            message = (
                f"{what}: expected {len(self.shape)} axes, found an array of shape "
                f"{d.shape}{self.where}"
            )
            raise ShapeError(message)
        for axis, (want, found) in enumerate(zip(self.shape, d.shape, strict=True)):
            if want not in (-1, found):
                message = (
                    f"{what}: expected size {want} along axis {axis}, found an array "
                    f"of shape {d.shape}{self.where}"
                )
                raise ShapeError(message)
        if problem := self._layout_problem(d):
            message = (
                f"{what}: {problem}; the array has shape {d.shape} and strides "
                f"{d.strides} (in elements). Pass a contiguous copy, or define the "
                f"tensor with other contiguity{self.where}"
            )
            raise ArgumentError(message)

    def _layout_problem(self, d: Descriptor) -> str | None:
        if 0 in d.shape:
            return None
        order = memory_order(self.stride_order, len(d.shape))
        faster: int | None = None  # the stride that a contiguous slower axis has
        last: tuple[int, int] | None = None
        pairs = list(zip(order, self.contiguity, strict=True))
        for axis, is_contiguous in reversed(pairs):
            extent, stride = d.shape[axis], d.strides[axis]
            if is_contiguous is None or extent == 1:
                continue
            if self.stride_order and last is not None and stride < last[1]:
                return f"stride_order says that axis {axis} is slower than {last[0]}"
            wanted = 1 if faster is None else faster
            if is_contiguous and stride != wanted:
                return f"axis {axis} is defined as contiguous, with stride {wanted}"
            faster, last = stride * extent, (axis, stride)
        return None


@value
class NumberInput:
    """A number passed by value; weak, or the only element of a CPU array."""

    name: str
    dtype: DType
    where: str
    is_array: bool = False

    def read(self, slot: int, item: Any) -> Any:
        """Return ``item`` as what the kernels take."""
        what = f"input {slot} ({self.name})"
        if self.is_array:
            return self._element(what, item)
        kind, rank = _KINDS[self.dtype.kind]
        number: Any = item.item() if isinstance(item, np.generic) else item
        given = _rank(number)
        if given is None or given > rank:
            message = (
                f"{what}: expected a Python {kind.__name__} for a scalar of "
                f"{data_type(self.dtype)}, found {type(item).__name__}{self.where}"
            )
            raise (ArgumentError if given is None else DTypeError)(message)
        if self.dtype.is_integer and number >= 1 << 63:
            message = f"{what}: {number} has more than 63 bits{self.where}"
            raise RangeError(message)
        return held(kind(number), self.dtype, what, self.where)

    def _element(self, what: str, item: Any) -> Any:
        """Return the element of a 0-d array on the CPU as a NumPy scalar."""
        if not isinstance(item, np.generic):
            d = describe(item, what)
            if d.shape or d.device.is_cuda:
                message = (
                    f"{what}: expected an array without axes on the CPU, found one of "
                    f"shape {d.shape} on {d.device}{self.where}"
                )
                raise ArgumentError(message)
            item = d.dtype.numpy.type(item.item())
        if item.dtype != self.dtype.numpy:
            message = (
                f"{what}: expected {data_type(self.dtype)}, found {item.dtype}"
                f"{self.where}"
            )
            raise DTypeError(message)
        return item


@value
class DerivedInput:
    """An integer that each call works out of what it is given; nobody passes it."""

    number: Number
    where: str
    name: str = "a number"

    def read(self, sizes: Mapping[Scalar, int], passed: Mapping[int, Any]) -> int:
        """Return the integer of a call."""
        found = int(worked_out(self.number, sizes, passed))
        if not -(1 << 63) <= found < 1 << 63:
            message = f"a size of {found} has more than 63 bits{self.where}"
            raise RangeError(message)
        return found


Input: TypeAlias = TensorInput | NumberInput | DerivedInput


def held(number: Any, dtype: DType, what: str, where: str = "") -> Any:
    """Return a Python number as ``dtype`` holds it: rounded, or refused."""
    if dtype.is_bool:
        return number
    if dtype.is_integer:
        try:
            check_fits(number, dtype, what)
        except RangeError as error:
            message = f"{error}{where}"
            raise RangeError(message) from None
        return number
    with np.errstate(all="ignore"):
        return dtype.numpy.type(number).item()


def constant_of(number: Any, dtype: DType) -> Any:
    """Return a constant of ``dtype``, if its kind can hold ``number``.

    >>> constant_of(2, DType.F64), constant_of(1 / 3, DType.F16)
    (2.0, 0.333251953125)
    """
    kind, rank = _KINDS[dtype.kind]
    given = _rank(number)
    if given is None or given > rank:
        message = f"{number!r} is no {data_type(dtype)}"
        raise DTypeError(message)
    return held(kind(number), dtype, "a constant")


def _rank(number: Any) -> int | None:
    for kind, rank in ((bool, 0), (int, 1), (float, 2), (complex, 3)):
        if isinstance(number, kind):
            return rank
    return None


def default_dtype(number: Any) -> DType:
    """Return the dtype of a constant that was given without one."""
    given = _rank(number)
    if given is None:
        message = (
            f"define_scalar takes a bool, int, float or complex, not "
            f"{type(number).__name__}"
        )
        raise ArgumentError(message)
    return (DType.BOOL, DType.I64, DType.F64, DType.C128)[given]


# -- memory layout -----------------------------------------------------------


def memory_order(stride_order: Sequence[int], ndim: int) -> list[int]:
    """Return the axes from slowest to fastest.

    >>> memory_order((), 2), memory_order((0, 1), 2)
    ([0, 1], [1, 0])
    """
    if not stride_order:
        return list(range(ndim))
    return sorted(range(ndim), key=lambda axis: -stride_order[axis])


def tensor_descriptor(
    sizes: Sequence[int], strides: Sequence[int]
) -> tuple[Contiguity, tuple[int, ...]]:
    """Return contiguity and stride order of an array; strides count elements.

    >>> tensor_descriptor((2, 3, 4), (12, 4, 1)), tensor_descriptor((2, 3), (1, 2))
    (((True, True, True), ()), ((True, True), (0, 1)))
    >>> tensor_descriptor((5, 1, 3), (0, 3, 2))
    ((None, None, False), ())
    """
    ndim = len(sizes)
    moving = [k for k in range(ndim) if sizes[k] != 1 and strides[k] != 0]
    ranked = iter(sorted(moving, key=lambda k: -strides[k]))
    # Axes that do not move stay where they are: they have no place in memory.
    order = [next(ranked) if k in moving else k for k in range(ndim)]
    contiguity: list[bool | None] = []
    wanted = 1
    for axis in reversed(order):
        if axis not in moving:
            contiguity.append(None)
            continue
        contiguity.append(strides[axis] == wanted)
        wanted = strides[axis] * sizes[axis]
    stride_order = tuple(ndim - 1 - order.index(axis) for axis in range(ndim))
    is_plain = order == list(range(ndim))
    return tuple(reversed(contiguity)), () if is_plain else stride_order


def compute_tensor_descriptor(
    sizes: Sequence[int], strides: Sequence[int]
) -> tuple[list[bool | None], list[int]]:
    """Return contiguity and stride order of an array; strides count elements.

    ``define_tensor`` takes both, with -1 for sizes.

    >>> compute_tensor_descriptor((2, 3), (1, 2))
    ([True, True], [0, 1])
    """
    contiguity, order = tensor_descriptor(sizes, strides)
    ranks = order or tuple(range(len(sizes) - 1, -1, -1))
    return list(contiguity), list(ranks)
