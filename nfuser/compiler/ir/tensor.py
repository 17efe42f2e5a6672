# SPDX-License-Identifier: Apache-2.0
"""Axes and tensors: what an expression reads and gives."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from nfuser.compiler.ir.base import node, value
from nfuser.compiler.ir.scalars.scalar import Const, Scalar, as_scalar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nfuser.compiler.dtypes import DType


class IterType(Enum):
    """What is known of an axis; the value is the letter printed before its extent."""

    ITERATION = ""
    BROADCAST = "b "
    SYMBOLIC = "? "
    PARTS = "part "

    __hash__ = object.__hash__  # Enum's own takes the name


@value
class SourceLine:
    """The line of the user's that made a tensor."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def note(self) -> str:
        """The end of an error message that shows this line."""
        return f"\n  at {self}\n    {self.text}"


@node
class IterDomain:
    """One axis: the half-open range ``[0, extent)``."""

    extent: Scalar
    iter_type: IterType

    @property
    def is_broadcast(self) -> bool:
        """Whether the axis has extent 1 and stretches against others."""
        return self.iter_type is IterType.BROADCAST


class _Shaped:
    __slots__ = ("_shape",)  # no field: it is worked out of the axes when it is read


@node
class TensorView(_Shaped):
    """A value with axes; where it lives is the schedule's affair."""

    axes: tuple[IterDomain, ...]
    dtype: DType
    source: SourceLine | None = None

    @property
    def shape(self) -> tuple[Scalar, ...]:
        """The extents of the axes."""
        try:
            return self._shape
        except AttributeError:
            found = tuple([axis.extent for axis in self.axes])
            object.__setattr__(self, "_shape", found)
            return found

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.axes)


def axis(extent: Scalar | int) -> IterDomain:
    """Return an axis; extent 1 makes it a broadcast one, a symbol leaves it open."""
    extent = as_scalar(extent)
    if isinstance(extent, Const):
        kind = IterType.BROADCAST if extent.value == 1 else IterType.ITERATION
        return IterDomain(extent, kind)
    return IterDomain(extent, IterType.SYMBOLIC)


def tensor(
    shape: Iterable[Scalar | int], dtype: DType, source: SourceLine | None = None
) -> TensorView:
    """Return a new tensor with fresh axes."""
    axes = tuple([axis(extent) for extent in shape])
    found = TensorView(axes, dtype, source)
    _set_shape(found, tuple([axis.extent for axis in axes]))  # others work it out late
    return found


_set_shape = _Shaped._shape.__set__  # pyright: ignore[reportPrivateUsage]
