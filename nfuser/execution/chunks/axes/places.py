# SPDX-License-Identifier: Apache-2.0
"""Which part of a tensor a task needs, axis by axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from nfuser.compiler.ir.base import value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.tensor import TensorView


@value
class Along:
    """An axis of which the chunk of ``label`` is needed, in elements of its own.

    There are ``times / over`` as many as of the label, or one for ``each`` chunk.
    """

    label: int
    times: int = 1
    over: int = 1
    each: bool = False

    def scaled(self, times: int, over: int) -> Along:
        """Return the axis that has ``times / over`` as many elements."""
        return Along(self.label, self.times * times, self.over * over)


Place: TypeAlias = "tuple[Along | None, ...]"
"""For each axis the label whose chunk is needed; None where all of it is."""
Margin: TypeAlias = "tuple[int, int]"
Margins: TypeAlias = "tuple[Margin, ...]"
"""How far beyond its chunk each axis is read: from where, to where."""
Need: TypeAlias = "tuple[TensorView, Place, Margins]"
Axis: TypeAlias = "tuple[Along | None, Margin]"
NONE: Margin = (0, 0)
WHOLE: Axis = (None, NONE)


@value
class Read:
    """What a stage reads of a tensor that is held: at which labels, how much more."""

    tensor: TensorView
    place: Place
    margins: Margins


def need(t: TensorView, axes: Sequence[Axis]) -> Need:
    """Return the need of ``t`` at ``axes``."""
    return t, tuple(p for p, _ in axes), tuple(m for _, m in axes)


def spread_out(axes: Sequence[Axis], added: Sequence[int]) -> list[Axis]:
    """Return ``axes`` with whole ones at the places ``added``."""
    old = iter(axes)
    return [WHOLE if k in added else next(old) for k in range(len(axes) + len(added))]


def label_of(along: Along | None) -> int | None:
    """Return the label of an axis, if it has one."""
    return None if along is None else along.label


def letters_of(place: Place) -> list[str]:
    """Return a name for each axis, as Dask's blockwise layers index arrays."""
    return [f"o{k}" if p is None else f"l{p.label}" for k, p in enumerate(place)]
