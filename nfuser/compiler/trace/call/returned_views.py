# SPDX-License-Identifier: Apache-2.0
"""Views of arrays that were assigned to: they come back as views of the very arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from nfuser.compiler.ir.base import value
from nfuser.compiler.ir.expr import ExpandDims, Permute, Slice, Squeeze
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.tensor import TensorView


@value
class Sliced:
    """Elements of each axis: the first, how far apart, and how many."""

    starts: tuple[sc.Scalar, ...]
    steps: tuple[int, ...]
    extents: tuple[sc.Scalar, ...]


@value
class Key:
    """What an array is indexed by."""

    key: tuple[Any, ...]


@value
class AxisOrder:
    """In which order its axes stand then."""

    order: tuple[int, ...]


Move: TypeAlias = Key | AxisOrder
Step: TypeAlias = Sliced | Move


def steps_to(
    part: TensorView, whole: TensorView, exprs: Sequence[Expr]
) -> tuple[Step, ...] | None:
    """Return what makes ``part`` of ``whole``; None if it is no view of strides."""
    made = {e.result: e for e in exprs if isinstance(e, _VIEWS)}
    found: list[Step] = []
    while part is not whole:
        view = made.get(part)
        if view is None:
            return None
        found.append(_step(view))
        part = view.source
    return tuple(reversed(found))


_VIEWS = (Slice, Permute, ExpandDims, Squeeze)


def _step(view: Slice | Permute | ExpandDims | Squeeze) -> Step:
    match view:
        case Slice(_, result, starts, steps):
            return Sliced(starts, steps, result.shape)
        case Permute(order=order):
            return AxisOrder(order)
        case ExpandDims(axes=axes):
            return _at(axes, None)
        case Squeeze(axes=axes):
            return _at(axes, 0)


def _at(axes: tuple[int, ...], key: int | None) -> Key:
    places = (key if k in axes else slice(None) for k in range(max(axes) + 1))
    return Key((*places, ...))


def symbols_in(steps: Sequence[Step]) -> list[sc.Scalar]:
    """Return what says where the view begins and ends."""
    parts = [s for s in steps if isinstance(s, Sliced)]
    return scalar_walk.symbols(n for s in parts for n in (*s.starts, *s.extents))


def are_known(steps: Sequence[Step], kind: type) -> bool:
    """Tell whether a library has such views of arrays of its class ``kind``.

    Sizes and integers of a call say where they lie. Torch has none that go backwards.
    """
    library = kind.__module__.partition(".")[0]
    if library not in ("numpy", "cupy", "torch"):
        return False
    parts = [s for s in steps if isinstance(s, Sliced)]
    if library == "torch" and any(k < 0 for part in parts for k in part.steps):
        return False
    return all(isinstance(x, (sc.Size, sc.ScalarInput)) for x in symbols_in(steps))


def moves_of(
    steps: Sequence[Step], values: Mapping[sc.Scalar, int]
) -> tuple[Move, ...]:
    """Return the steps as a library takes them; ``values`` are those of the call."""
    return tuple(_key(s, values) if isinstance(s, Sliced) else s for s in steps)


def _key(part: Sliced, values: Mapping[sc.Scalar, int]) -> Key:
    begin = scalar_walk.evaluate_all(part.starts, values)
    count = scalar_walk.evaluate_all(part.extents, values)
    return Key((*map(_slice, begin, part.steps, count), ...))


def view_of(array: Any, moves: Sequence[Move]) -> Any:
    """Return the view of a caller's ``array``."""
    array = array[...]
    for move in moves:
        if isinstance(move, Key):
            array = array[move.key]
        else:
            turned = array.permute if hasattr(array, "permute") else array.transpose
            array = turned(move.order)
    return array


def _slice(start: int, step: int, count: int) -> slice:
    if count == 0:
        return slice(0, 0)
    stop = start + step * (count - 1) + (1 if step > 0 else -1)
    return slice(start, stop if stop >= 0 else None, step)
