# SPDX-License-Identifier: Apache-2.0
"""From bytes to elements, with every refusal that several libraries share."""

from __future__ import annotations

from nfuser.compiler.dtypes import DType, as_dtype
from nfuser.errors import ArgumentError, DTypeError
from nfuser.execution.device.describe.libraries import (
    Descriptor,
    Device,
    Library,
    c_strides,
)


def element_type(dtype: object, what: str) -> DType:
    """Return the DType of an array, or refuse it in the name of the argument."""
    try:
        return as_dtype(dtype)
    except DTypeError as error:
        message = f"{what}: {error}"
        raise DTypeError(message) from error


def element_strides(
    shape: tuple[int, ...], byte_strides: tuple[int, ...], itemsize: int, what: str
) -> tuple[int, ...]:
    """Divide strides by the size of an element; those of empty arrays mean nothing."""
    if 0 in shape:
        return c_strides(shape)
    strides: list[int] = []
    for extent, stride in zip(shape, byte_strides, strict=True):
        if extent > 1 and stride % itemsize:
            message = (
                f"{what}: strides {byte_strides} are not multiples of the {itemsize} "
                "bytes of an element (a field of a structured array?); pass a copy"
            )
            raise ArgumentError(message)
        strides.append(stride // itemsize)
    return tuple(strides)


def span(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int
) -> tuple[int, int]:
    """Return the bytes, from the first element, between which all elements lie.

    >>> span((3, 2), (-1, 5), 4)
    (-8, 24)
    """
    if 0 in shape:
        return 0, 0
    reach = [(n - 1) * step for n, step in zip(shape, strides, strict=True)]
    low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
    return low * itemsize, (high + 1) * itemsize


def overlaps_itself(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Tell whether an axis is expanded, so that writing would hit one place often."""
    return any(e > 1 and s == 0 for e, s in zip(shape, strides, strict=True))


def finished(
    library: Library,
    device: Device,
    dtype: DType,
    layout: tuple[tuple[int, ...], tuple[int, ...]],
    pointer: int,
    *,
    writable: bool,
    what: str,
) -> Descriptor:
    """Make the descriptor after the last check, alignment."""
    shape, strides = layout
    if pointer % dtype.numpy.alignment and 0 not in shape:
        message = (
            f"{what}: the data at {pointer:#x} is not aligned to the "
            f"{dtype.numpy.alignment} bytes that {dtype} needs; pass a copy"
        )
        raise ArgumentError(message)
    can_write = writable and not overlaps_itself(shape, strides)
    return Descriptor(library, device, dtype, shape, strides, pointer, can_write)
