# SPDX-License-Identifier: Apache-2.0

"""NumPy's functions that put elements elsewhere, on stand-ins."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nfuser.ops as ops
import nfuser.trace.refusals as refusals
from nfuser.dtypes import as_dtype
from nfuser.errors import ShapeError
from nfuser.ir.scalar import Scalar

if TYPE_CHECKING:
    from nfuser.trace.tracer import Tracer


def _number(t: Tracer, x: Any) -> Any:
    """Return a size, a count or a place as verbs take it."""
    found = t.operand(x)
    return found if isinstance(found, Scalar) else found.__index__()


def _numbers(t: Tracer, x: Any) -> list[Any]:
    listed = x if isinstance(x, (tuple, list)) else (x,)
    return [_number(t, n) for n in listed]


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
    del copy
    if order not in ("C", "A", "K"):
        raise refusals.keyword("reshape", "order")
    return t.view(ops.reshape, a, _numbers(t, shape))


def reshape_method(t: Tracer, a: Any, *shape: Any, **options: Any) -> Any:
    """Return ``x.reshape``, which takes the sizes one by one, too."""
    sizes = shape[0] if len(shape) == 1 else shape
    return reshape(t, a, sizes, **options)


def ravel(t: Tracer, a: Any, order: str = "C") -> Any:
    """Return ``numpy.ravel``."""
    return reshape(t, a, -1, order=order)


def _parts(t: Tracer, arrays: Any) -> list[Any]:
    return [t.tensor(x) for x in arrays]


def concatenate(
    t: Tracer,
    arrays: Any,
    /,
    axis: int | None = 0,
    out: Any = None,
    *,
    dtype: Any = None,
    casting: str = "same_kind",
) -> Any:
    """Return ``numpy.concatenate``."""
    if out is not None:
        raise refusals.keyword("concatenate", "out")
    if casting != "same_kind":
        raise refusals.keyword("concatenate", "casting")
    if axis is None:
        arrays, axis = [ravel(t, x) for x in arrays], 0
    kind = None if dtype is None else as_dtype(dtype)
    return t.apply(ops.concatenate, _parts(t, arrays), axis.__index__(), kind)


def stack(
    t: Tracer, arrays: Any, /, axis: int = 0, out: Any = None, *, dtype: Any = None
) -> Any:
    """Return ``numpy.stack``."""
    if out is not None:
        raise refusals.keyword("stack", "out")
    kind = None if dtype is None else as_dtype(dtype)
    return t.apply(ops.stack, _parts(t, arrays), axis.__index__(), kind)


def roll(t: Tracer, a: Any, shift: Any, axis: Any = None) -> Any:
    """Return ``numpy.roll``."""
    if axis is None:
        return reshape(t, roll(t, ravel(t, a), shift, 0), a.shape)
    shifts = _numbers(t, shift)
    axes = [n.__index__() for n in (axis if isinstance(axis, tuple) else (axis,))]
    if len(shifts) != len(axes) and 1 not in (len(shifts), len(axes)):
        message = "roll: 'shift' and 'axis' should be scalars or 1D sequences"
        raise ShapeError(message)
    shifts = shifts * (len(axes) if len(shifts) == 1 else 1)
    axes = axes * (len(shifts) if len(axes) == 1 else 1)
    for number, place in zip(shifts, axes, strict=True):
        a = t.call_on_tensor(ops.roll, a, number, place)
    return a


def pad(
    t: Tracer, array: Any, pad_width: Any, mode: str = "constant", **options: Any
) -> Any:
    """Return ``numpy.pad``."""
    fill = options.pop("constant_values", 0)
    if mode != "constant" or options:
        raise refusals.keyword("pad", "mode")
    return t.call_on_tensor(
        ops.pad, array, [tuple(_numbers(t, w)) for w in pad_width], t.operand(fill)
    )


def take(t: Tracer, a: Any, indices: Any, axis: Any = None) -> Any:
    """Return ``numpy.take``."""
    if axis is None:
        a, axis = ravel(t, a), 0
    return t.call_on_tensor(ops.take, a, t.tensor(indices), axis.__index__())


def take_along_axis(t: Tracer, arr: Any, indices: Any, axis: Any = -1) -> Any:
    """Return ``numpy.take_along_axis``."""
    return t.call_on_tensor(
        ops.take_along_axis, arr, t.tensor(indices), axis.__index__()
    )


def tile(t: Tracer, A: Any, reps: Any) -> Any:  # noqa: N803
    """Return ``numpy.tile``."""
    return t.call_on_tensor(ops.tile, A, _numbers(t, reps))


def repeat(t: Tracer, a: Any, repeats: Any, axis: Any = None) -> Any:
    """Return ``numpy.repeat``, with one count for all elements."""
    if axis is None:
        a, axis = ravel(t, a), 0
    return t.call_on_tensor(ops.repeat, a, _number(t, repeats), axis.__index__())


HANDLERS: dict[str, Any] = {
    "reshape": reshape,
    "ravel": ravel,
    "concatenate": concatenate,
    "concat": concatenate,
    "stack": stack,
    "roll": roll,
    "pad": pad,
    "take": take,
    "take_along_axis": take_along_axis,
    "tile": tile,
    "repeat": repeat,
}
