# SPDX-License-Identifier: Apache-2.0
"""NumPy's reshape, roll, tile and repeat on stand-ins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nfuser.compiler.ops as ops
import nfuser.compiler.trace.numpy.names.refusals as refusals
from nfuser.compiler.trace.standins.sizes import is_sequence, shape_sizes, size, sizes
from nfuser.errors import ArgumentError, MutationError, ShapeError, UnsupportedError

if TYPE_CHECKING:
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops import Builder
    from nfuser.compiler.trace.tracer import Tracer


def _in_order(
    b: Builder, x: TensorView, shape: list[Scalar | int], order: str
) -> TensorView:
    """Reshape, the elements taken and laid in C or in Fortran order."""
    if order == "C":
        return ops.reshape(b, x, shape)
    turned = ops.reshape(b, ops.permute(b, x), shape[::-1])
    return ops.permute(b, turned)


def _check_order(name: str, order: Any, copy: Any = None) -> None:
    if copy is not None and not copy:
        message = (
            f"{name}: copy=False is not supported: whether a copy is needed depends on "
            "strides, which are unknown while tracing; leave it out"
        )
        raise UnsupportedError(message)
    if name == "reshape" and order == "K":
        message = "reshape: order 'K' is not permitted for reshaping; write 'C' or 'F'"
        raise ShapeError(message)
    if order in ("A", "K"):
        raise refusals.keyword(name, "order")
    if order not in ("C", "F"):
        message = f"{name}: order must be 'C' or 'F', found {order!r}"
        raise ShapeError(message)


class _Reshaped:
    """A reshape as a view: whether NumPy copies depends on strides, unknown here.

    It may be read as it was made, not after its base was updated in place.
    """

    def __init__(self, shape: list[Scalar | int], order: str) -> None:
        self._shape = shape
        self._order = order
        self._made_of: TensorView | None = None

    def __call__(self, b: Builder, x: TensorView) -> TensorView:
        if self._made_of is not None and x is not self._made_of:
            message = (
                "reshape: the array was updated in place after it was reshaped; "
                "whether NumPy's reshape shares its memory depends on strides; "
                "reshape after the update, or write y = y + 1 instead of y += 1"
            )
            raise MutationError(message)
        self._made_of = x
        return _in_order(b, x, self._shape, self._order)


def reshape(
    t: Tracer,
    a: Any,
    /,
    shape: Any,
    order: str = "C",
    *,
    copy: bool | None = None,
) -> Any:
    """Return ``numpy.reshape``."""
    _check_order("reshape", order, copy)
    wanted = shape_sizes(t, shape, "reshape")
    if copy:
        return t.call_on_tensor(_in_order, a, wanted, order)
    return t.view(_Reshaped(wanted, order), a)


def reshape_method(t: Tracer, a: Any, *shape: Any, **options: Any) -> Any:
    """Return ``x.reshape``, which takes the sizes one by one, too."""
    if not shape and "shape" not in options:
        message = "reshape: expected a shape, found none; write x.reshape(-1)"
        raise ArgumentError(message)
    wanted = options.pop("shape", shape[0] if len(shape) == 1 else shape)
    return reshape(t, a, wanted, **options)


def ravel(t: Tracer, a: Any, order: str = "C") -> Any:
    """Return ``numpy.ravel``."""
    _check_order("ravel", order)
    return t.view(_Reshaped([-1], order), a)


def flatten(t: Tracer, a: Any, order: str = "C") -> Any:
    """Return ``x.flatten``, which always copies."""
    _check_order("flatten", order)
    return t.call_on_tensor(_in_order, a, [-1], order)


def roll(t: Tracer, a: Any, shift: Any, axis: Any = None) -> Any:
    """Return ``numpy.roll``."""
    if axis is None:
        held = t.tensor(a)
        if held.ndim != 1:
            rolled, shape = roll(t, ravel(t, a), shift, 0), t.wrap(held).shape
            return reshape(t, rolled, shape, copy=True)  # of a new array, as NumPy's is
        axis = 0
    shifts = sizes(t, shift, "roll")
    axes = list(axis) if is_sequence(axis) else [axis]
    if len(shifts) != len(axes) and 1 not in (len(shifts), len(axes)):
        message = (
            f"roll: {len(shifts)} shifts do not go with {len(axes)} axes; expected "
            "as many, or one of either"
        )
        raise ShapeError(message)
    count = max(len(shifts), len(axes)) if shifts and axes else 0
    shifts = shifts * (count if len(shifts) == 1 else 1)
    axes = axes * (count if len(axes) == 1 else 1)

    def every(b: Builder, x: TensorView) -> TensorView:
        for number, place in zip(shifts, axes, strict=True):
            x = ops.roll(b, x, number, place)
        return x

    return t.call_on_tensor(every, a)


def tile(t: Tracer, A: Any, reps: Any) -> Any:  # noqa: N803
    """Return ``numpy.tile``."""
    return t.call_on_tensor(ops.tile, A, sizes(t, reps, "tile"))


def repeat(t: Tracer, a: Any, repeats: Any, axis: Any = None) -> Any:
    """Return ``numpy.repeat``, with one count for all elements."""
    if is_sequence(repeats) and len(repeats) == 1:
        repeats = repeats[0]
    if is_sequence(repeats) or getattr(repeats, "ndim", 0):
        raise refusals.counts()
    if axis is None:
        a, axis = ravel(t, a), 0
    return t.call_on_tensor(ops.repeat, a, size(t, repeats, "repeat"), axis)


def at_least(rank: int) -> Any:
    """Return the handler of ``numpy.atleast_1d`` and its kin."""

    def handler(t: Tracer, *arrays: Any) -> Any:
        found = tuple(t.view(ops.at_least, a, rank) for a in arrays)
        return found[0] if len(found) == 1 else found

    return handler


HANDLERS: dict[str, Any] = {
    "reshape": reshape,
    "ravel": ravel,
    "roll": roll,
    "tile": tile,
    "repeat": repeat,
    "atleast_1d": at_least(1),
    "atleast_2d": at_least(2),
    "atleast_3d": at_least(3),
}
