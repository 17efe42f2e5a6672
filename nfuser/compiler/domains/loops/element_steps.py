# SPDX-License-Identifier: Apache-2.0
"""Steps of a loop over single elements: what there is to compute, read and write."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.scalars import scalar as sc

if TYPE_CHECKING:
    from nfuser.compiler.ir.expr import Constant, FromScalar, Loop, Pointwise
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView


@node
class Coordinate:
    """Where an element is along an axis: at ``start``, and ``step`` times a number on.

    The number is that of a tensor, which counts from the end of ``extent`` if negative
    and names the nearest element if there is none, unless it is known to be ``inside``.
    """

    start: Scalar
    step: int
    number: TensorView | None = None
    extent: Scalar | None = None
    inside: bool = False


@node
class ElementPlace:
    """One element of an array in memory."""

    array: TensorView
    index: tuple[Coordinate, ...]


@node
class ArrayPart:
    """Elements of an array in memory, as of a ``version``.

    ``axes`` of the array are open; -1 is an axis of extent 1 that the array has not.
    """

    array: TensorView
    version: int
    axes: tuple[int, ...]
    index: tuple[Coordinate, ...]

    @property
    def is_whole(self) -> bool:
        """Whether it is the array as it lies."""
        return is_whole(self.index, self.axes)


@node
class Compute:
    """One number of others, or of the sizes of the call."""

    expr: Pointwise | Constant | FromScalar


@node
class Same:
    """A number under another name, or with other axes of extent 1."""

    result: TensorView
    source: TensorView


@node
class ReadElement:
    """A number that is an element of an array."""

    result: TensorView
    place: ElementPlace


@node
class Write:
    """Put a number into an array."""

    place: ElementPlace
    value: TensorView


@node
class ElementLoop:
    """A loop: the numbers that it carries, and the steps of a turn.

    ``carried`` are, for each such number, what it is at first, in a turn, after that,
    and after the loop; ``flag`` is the one in a turn that says whether there is one.
    ``added`` are numbers of a turn with the array of which they are an element.
    """

    loop: Loop
    carried: tuple[tuple[TensorView, TensorView, TensorView, TensorView], ...]
    steps: tuple[Step, ...]
    flag: TensorView | None
    added: tuple[tuple[TensorView, TensorView], ...]


Step: TypeAlias = Compute | Same | ReadElement | Write | ElementLoop


@node
class OneByOne:
    """The steps of a fusion: ``copied`` arrays begin as others are before the loop."""

    copied: tuple[tuple[TensorView, TensorView], ...]
    steps: tuple[Step, ...]


def is_whole(index: tuple[Coordinate, ...], axes: tuple[int, ...]) -> bool:
    """Tell whether so many ``axes`` are open, and go along all of an array."""
    plain = all(at.start is sc.const(0) and at.step == 1 for at in index)
    return plain and axes == tuple(range(len(index)))


def is_number(tensor: TensorView) -> bool:
    """Tell whether ``tensor`` has one element, whatever the sizes are."""
    return all(extent is sc.const(1) for extent in tensor.shape)
