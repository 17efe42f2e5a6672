# SPDX-License-Identifier: Apache-2.0
"""Symbols, which scalars are written in: sizes, loop indices, elements of tensors."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from nfuser.compiler.ir.scalars.interning import digest, intern
from nfuser.compiler.ir.scalars.scalar import (
    Datum,
    Knob,
    LoopIndex,
    ScalarInput,
    Size,
    Stride,
    as_scalar,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nfuser.compiler.ir.scalars.scalar import Scalar


@lru_cache(1 << 13)  # each is asked for at many places
def size(slot: int, axis: int) -> Size:
    """Return the extent of argument ``slot`` along ``axis``."""
    return intern(Size, lambda: (1, slot, axis), slot, axis)


def scalar_input(slot: int) -> ScalarInput:
    """Return the value of the integer scalar in ``slot``."""
    return intern(ScalarInput, lambda: (2, slot), slot)


def stride(tensor: int, axis: int) -> Stride:
    """Return the step of tensor ``tensor`` along ``axis``."""
    return intern(Stride, lambda: (3, tensor, axis), tensor, axis)


def knob(name: str) -> Knob:
    """Return the number of a launch called ``name``."""
    return intern(Knob, lambda: (9, digest(name)), name)


def loop_index(number: int, extent: Scalar | int) -> LoopIndex:
    """Return the index of loop ``number``, which runs over ``extent`` values."""
    stop = as_scalar(extent)
    return intern(LoopIndex, lambda: (4, number, digest(stop.key)), number, stop)


def place(axis: int, extent: Scalar | int) -> LoopIndex:
    """Return what stands for the index along ``axis`` of a result (``Remap``)."""
    return loop_index(-1 - axis, extent)


def place_axis(place: LoopIndex) -> int:
    """Return the axis whose index ``place`` stands for."""
    return -1 - place.number


def datum(
    tensor: object, index: Iterable[Scalar], extent: Scalar, *, inside: bool = False
) -> Datum:
    """Return the element of ``tensor`` at ``index``, which is below ``extent``."""
    found = tuple(index)

    def key() -> tuple[int, ...]:
        return (8, digest([x.key for x in (*found, extent)]), int(inside))

    return intern(Datum, key, tensor, found, extent, inside)
