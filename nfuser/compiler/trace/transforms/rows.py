# SPDX-License-Identifier: Apache-2.0
"""A function of one row is traced once, and runs on all rows together."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any

import nfuser.compiler.ops as ops
import nfuser.compiler.trace.call.tree as tree
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.functions import equal
from nfuser.compiler.trace.call.passed import Passed
from nfuser.compiler.trace.captures.parts import is_array
from nfuser.compiler.trace.loops.record import Effects, without_draws
from nfuser.compiler.trace.standins.standin import Standin
from nfuser.compiler.transforms.batch import BatchRows
from nfuser.errors import ArgumentError, AxisError, MutationError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.trace.call.tree import Tree
    from nfuser.compiler.trace.tracer import Tracer

_SHARED = "all rows share it, and each would write"
_OWN = (
    "write into a copy, x = x.copy(): a function that nfuser.vmap runs leaves its "
    "arguments as they are"
)
_DRAWS = (
    "draw before, as rng.normal(size=(n, *shape)), and map over that: a function that "
    "nfuser.vmap runs is traced once, and all rows would draw the same numbers; "
    "expected none, found a draw of random numbers"
)


def run_rows(
    t: Tracer,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    axes: tuple[Any, Any, int | None],
) -> Any:
    """Return what ``function`` gives for each row of its arguments, stacked.

    ``axes`` are those of arguments, those of what is returned, and the number of rows
    where no argument says it.
    """
    in_axes, out_axes, size = axes
    given = (tuple(args), dict(kwargs))
    leaves, shape = tree.flatten(given)
    listed = _listed(in_axes, len(args))
    along = axes_of(tree.flatten(given[0])[1], listed, "in_axes")
    along += [0] * (len(leaves) - len(along))  # those that are passed by name
    t.builder.source = t.turns.line()
    wholes = _aligned(t, leaves, along, size)
    count = next((w.shape[0] for w in wholes if w is not None), None)
    if count is None:
        count = sc.as_scalar(_size(size))
    rows, effects = BatchRows(t.builder, count, t.ended), Effects(t)
    with without_draws(t, _DRAWS), rows.written():
        own = [None if w is None else rows.row(w) for w in wholes]
        items = [
            x if r is None else t.wrap(r) for x, r in zip(leaves, own, strict=True)
        ]
        positional, named = tree.unflatten(shape, items)
        passed = Passed(positional, named)
        value = t.as_called(function)(*positional, **named)
        passed.refuse_changes()
        found, made = tree.flatten(value)
        held = [t.tensor(x) for x in found]
        _check_unwritten(items, own)
    effects.refuse(_SHARED)
    places = axes_of(made, out_axes, "out_axes")
    stacked = [
        _stacked(t, rows, x, row, axis)
        for x, row, axis in zip(found, held, places, strict=True)
    ]
    return tree.unflatten(made, stacked)


def _listed(in_axes: Any, count: int) -> Any:
    """Return ``in_axes`` with an item for each argument, or one for all."""
    if not isinstance(in_axes, (tuple, list)):
        return in_axes
    if len(in_axes) != count:
        message = (
            "write in_axes=0, or a tuple with an axis or None for each argument that "
            f"is passed by position: expected {count} items, found {len(in_axes)}"
        )
        raise ArgumentError(message)
    return tuple(in_axes)


def axes_of(shape: Tree, axes: Any, name: str) -> list[int | None]:
    """Return the axis of each leaf of ``shape``, of axes that begin a nest like it."""
    if axes is None or _is_integer(axes):
        return [axes if axes is None else index(axes)] * leaf_count(shape)
    if not _begins(axes, shape):
        count = len(shape.children)
        what = "an array" if shape == tree.LEAF else f"a nest of {count}"
        message = (
            f"write {name} as a nest of integers and None that begins as the arrays "
            f"are nested: found {axes!r} for {what}"
        )
        raise ArgumentError(message)
    parts = [axes[key] for key in shape.keys] if isinstance(axes, dict) else axes
    pairs = zip(shape.children, parts, strict=True)
    return [axis for child, part in pairs for axis in axes_of(child, part, name)]


def _begins(axes: Any, shape: Tree) -> bool:
    """Tell whether a nest of axes has an item for each child of ``shape``."""
    if isinstance(axes, dict):
        return set(axes) == set(shape.keys)
    if not isinstance(axes, (tuple, list)) or shape.keys:
        return False
    return len(axes) == len(shape.children) and shape != tree.LEAF


def _is_integer(item: Any) -> bool:
    return hasattr(item, "__index__") and not isinstance(item, (bool, Standin))


def leaf_count(shape: Tree) -> int:
    """Return how many leaves a nest of this shape has."""
    return 1 if shape.container is None else sum(map(leaf_count, shape.children))


def _aligned(
    t: Tracer, leaves: Sequence[Any], along: Sequence[int | None], size: Any
) -> list[TensorView | None]:
    """Return each argument that is mapped, its rows first, all of them as many."""
    b = t.builder
    found: list[TensorView | None] = []
    count: Scalar | None = None if size is None else sc.as_scalar(_size(size))
    for item, axis in zip(leaves, along, strict=True):
        if axis is None:
            found.append(None)
            continue
        held = _mapped(t, item, axis)
        if count is None:
            count = held.shape[0]
        elif not b.ask(equal(held.shape[0], count), usual=1):
            message = (
                "pass arrays with equally many rows, or in_axes=None for those that "
                f"all rows share: nfuser.vmap found {b.today(count)} and "
                f"{b.today(held.shape[0])} rows"
            )
            raise ShapeError(message)
        found.append(ops.broadcast_to(b, held, (count, *held.shape[1:])))
    return found


def _mapped(t: Tracer, item: Any, axis: int) -> TensorView:
    is_one = isinstance(item, Standin) or is_array(item)
    if not is_one:
        message = (
            "write in_axes=None in the place of this argument, or np.asarray(x): "
            f"nfuser.vmap maps over arrays, found {type(item).__name__}"
        )
        raise ArgumentError(message)
    held = t.tensor(item)
    if not -held.ndim <= axis < held.ndim:
        message = (
            f"write in_axes=None for it, or another axis: nfuser.vmap maps over axis "
            f"{axis}, found an array of {held.ndim} axes"
        )
        raise AxisError(message)
    return ops.moveaxis(t.builder, held, axis, 0)


def _size(size: Any) -> Any:
    if size is not None:
        return size
    message = (
        "write in_axes=0 for an argument, or axis_size=n: nfuser.vmap found nothing to "
        "map over"
    )
    raise ArgumentError(message)


def _check_unwritten(items: Sequence[Any], own: Sequence[TensorView | None]) -> None:
    pairs = zip(items, own, strict=True)
    if any(row is not None and x._operand() is not row for x, row in pairs):
        raise MutationError(_OWN)


def _stacked(
    t: Tracer, rows: BatchRows, item: Any, held: TensorView, axis: int | None
) -> Any:
    """Return the stand-in of all rows of a result, along ``axis``."""
    if axis is None:
        if rows.differs(held):
            message = (
                "write out_axes=0: with None a result is the same for all rows, found "
                "one that depends on what is mapped"
            )
            raise ArgumentError(message)
        return item
    whole = rows.all(held)
    if not -whole.ndim <= axis < whole.ndim:
        message = f"out_axes: axis {axis} is out of bounds for {whole.ndim} axes"
        raise AxisError(message)
    made = t.wrap(ops.moveaxis(t.builder, whole, 0, axis))
    made._is_array = True
    return made
