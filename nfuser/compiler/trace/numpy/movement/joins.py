# SPDX-License-Identifier: Apache-2.0
"""NumPy's functions that join arrays, and those that take them apart."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ir.scalars.functions as scalar_functions
import nfuser.compiler.ops as ops
import nfuser.compiler.trace.numpy.names.refusals as refusals
from nfuser.compiler.dtypes import as_dtype
from nfuser.compiler.dtypes.promotion import safe_cast
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.trace.standins.literals import array_of, holds_standins
from nfuser.compiler.trace.standins.sizes import is_sequence, size, sizes
from nfuser.compiler.trace.standins.standin import Standin, is_ndarray
from nfuser.compiler.trace.standins.symbolic import integer
from nfuser.errors import AxisError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.dtypes import DType
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.trace.tracer import Tracer


def _joined(
    t: Tracer, verb: Any, arrays: Any, axis: Any, options: dict[str, Any]
) -> Any:
    """Apply a joining verb to ``arrays`` with NumPy's out=, dtype= and casting=."""
    name = verb.__name__
    if options.pop("out", None) is not None:
        raise refusals.keyword(name, "out")
    casting, dtype = options.pop("casting", "same_kind"), options.pop("dtype", None)
    for option in options:
        raise refusals.keyword(name, option)
    target: DType | None = None if dtype is None else as_dtype(dtype)
    parts = [array_of(t, x) for x in arrays]
    if target is not None:
        for part in parts:
            safe_cast(part.dtype, target, casting)
    return t.apply(verb, parts, axis, target)


def concatenate(
    t: Tracer, arrays: Any, /, axis: int | None = 0, out: Any = None, **options: Any
) -> Any:
    """Return ``numpy.concatenate``."""
    if axis is None:
        taken = [x if is_sequence(x) else t.operand(x) for x in arrays]
        if not any(is_sequence(x) for x in taken) and not options.get("dtype"):
            # Python numbers promote weakly here, and here only.
            kind = t.builder.promote(*taken)
            arrays = [t.wrap(t.builder.convert(x, kind)) for x in taken]
        arrays = [t.apply(ops.reshape, array_of(t, x), [-1]) for x in arrays]
        axis = 0
    return _joined(t, ops.concatenate, arrays, axis, options | {"out": out})


def stack(
    t: Tracer, arrays: Any, /, axis: int = 0, out: Any = None, **options: Any
) -> Any:
    """Return ``numpy.stack``."""
    return _joined(t, ops.stack, arrays, axis, options | {"out": out})


def _stacking(rank: int, axis: int) -> Any:
    """Return the handler of vstack and its kin: parts of a least rank, joined."""

    def handler(t: Tracer, tup: Any, **options: Any) -> Any:
        parts = [t.apply(ops.at_least, array_of(t, x), rank) for x in tup]
        first = not parts or parts[0].ndim == 1
        return concatenate(t, parts, 0 if first else axis, **options)

    return handler


def column_stack(t: Tracer, tup: Any) -> Any:
    """Return ``numpy.column_stack``."""

    def column(b: Any, x: TensorView) -> TensorView:
        return x if x.ndim > 1 else ops.permute(b, ops.at_least(b, x, 2))

    return concatenate(t, [t.apply(column, array_of(t, x)) for x in tup], 1)


def append(t: Tracer, arr: Any, values: Any, axis: Any = None) -> Any:
    """Return ``numpy.append``."""
    parts = [t.wrap(array_of(t, x)) for x in (arr, values)]
    if axis is None:
        parts = [t.call_on_tensor(ops.reshape, x, [-1]) for x in parts]
        axis = 0
    return concatenate(t, parts, axis)


def insert(t: Tracer, arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    """Return ``numpy.insert`` at one place."""
    x, at, place = _cut(t, "insert", arr, obj, axis, longest=0)
    held = t.tensor(x)
    new = _inserted(t, values, held.dtype)
    if new.ndim > held.ndim:
        raise refusals.function("insert")
    new = np.moveaxis(new[(None,) * (held.ndim - new.ndim)], 0, place)
    count = t.tensor(new).shape[place]
    shape = [*held.shape[:place], count, *held.shape[place + 1 :]]
    new = t.apply(ops.broadcast_to, t.tensor(new), shape)
    before: tuple[Any, ...] = (slice(None),) * place
    parts: list[Any] = [x[(*before, slice(None, at))], new]
    return concatenate(t, [*parts, x[(*before, slice(at, None))]], place)


def _inserted(t: Tracer, values: Any, dtype: DType) -> Any:
    """Return values in a dtype, as ``numpy.array(values, dtype)`` has them.

    It raises for Python's numbers that the dtype lacks, and for those of lists.
    """
    if not (holds_standins(values) or is_ndarray(values)):
        return t.wrap(array_of(t, np.array(values, dtype.numpy)))
    if is_sequence(values) and not is_ndarray(values):
        held = array_of(t, values)
        safe_cast(held.dtype, dtype, "same_kind" if dtype.is_float else "safe")
    else:
        held = t.operand(values)
        if t.builder.weak.get(held) in (float, complex):
            safe_cast(held.dtype, dtype, "same_kind")
    return t.wrap(t.builder.convert(held, dtype))


def delete(t: Tracer, arr: Any, obj: Any, axis: Any = None) -> Any:
    """Return ``numpy.delete`` of one place."""
    x, at, place = _cut(t, "delete", arr, obj, axis, longest=1)
    before: tuple[Any, ...] = (slice(None),) * place
    rest = slice(None, 0) if at == -1 else slice(at + 1, None)
    parts = x[(*before, slice(None, at))], x[(*before, rest)]
    return concatenate(t, parts, place)


def _cut(
    t: Tracer, name: str, arr: Any, obj: Any, axis: Any, *, longest: int
) -> tuple[Any, Any, int]:
    """Return an array, one place along an axis of it, and that axis."""
    is_one = hasattr(obj, "__index__") and not hasattr(obj, "_remake")
    if not is_one or getattr(obj, "ndim", 0) or type(obj) in (bool, np.bool_):
        raise refusals.function(name)
    x = t.wrap(array_of(t, arr))
    if axis is None:
        x, axis = x.reshape(-1), 0
    place = ops.normal_axis(axis, x.ndim)
    at, extent = obj if isinstance(obj, Standin) else obj.__index__(), x.shape[place]
    if at < -extent or at > extent - longest:
        message = (
            f"{name}: index {at} is out of bounds for axis {place} with size {extent}"
        )
        raise AxisError(message)
    return x, at, place


def block(t: Tracer, arrays: Any) -> Any:
    """Return ``numpy.block``."""
    depth = _depth(arrays)
    if depth == 0:
        return t.call_on_tensor(ops.copy, arrays)
    leaves: list[int] = []
    _visit(arrays, lambda x: leaves.append(array_of(t, x).ndim))
    rank = max(depth, *leaves)

    def joined(item: Any, level: int) -> Any:
        if level == depth:
            held = array_of(t, item)
            missing = tuple(range(rank - held.ndim))
            return t.apply(ops.expand_dims, held, missing)
        parts = [joined(x, level + 1) for x in item]
        return concatenate(t, parts, level - depth)

    return joined(arrays, 0)


def _depth(arrays: Any) -> int:
    if not isinstance(arrays, list):
        return 0
    if not arrays:
        message = "block: lists cannot be empty"
        raise ShapeError(message)
    depths = {_depth(x) for x in arrays}
    if len(depths) > 1:
        message = (
            f"block: list depths are mismatched: {sorted(depths)}; every array lies "
            "equally deep"
        )
        raise ShapeError(message)
    return 1 + depths.pop()


def _visit(arrays: Any, see: Callable[[Any], Any]) -> None:
    for item in arrays if isinstance(arrays, list) else ():
        _visit(item, see)
    if not isinstance(arrays, list):
        see(arrays)


def _windows(t: Tracer, a: Any, axis: int, count: Any, *, equal: bool) -> list[Any]:
    """Return ``count`` equal parts, or parts that differ by one element at most."""
    sections = size(t, count, "split")
    count = sections if isinstance(sections, int) else int(integer(t, sections))
    if count <= 0:
        message = f"split: number sections must be larger than 0, found {count}"
        raise ShapeError(message)
    held = t.tensor(a)
    extent = held.shape[axis]
    if equal and not t.ask(scalar_functions.equal(extent % count, 0), usual=1):
        message = (
            f"split: array split does not result in an equal division: {count} parts "
            f"of axis {axis} of shape {t.builder.shape_text(held.shape)}; "
            "np.array_split gives parts of unequal sizes"
        )
        raise ShapeError(message)
    least, more = extent // count, sc.const(0) if equal else extent % count
    found: list[Any] = []
    for k in range(count):
        start = least * k + (scalar_functions.minimum(more, k) if k else 0)
        found.append(
            t.view(ops.window, a, axis, start, least + scalar_functions.less(k, more))
        )
    return found


def _split(t: Tracer, a: Any, where: Any, axis: Any, *, equal: bool) -> list[Any]:
    held = t.tensor(a)
    axis = ops.normal_axis(axis, held.ndim)
    if not is_sequence(where):
        return _windows(t, a, axis, where, equal=equal)
    places = sizes(t, where, "split")
    pairs = zip([0, *places], [*places, None], strict=True)
    return [t.view(ops.take_slices, a, {axis: (*pair, 1)}) for pair in pairs]


def split(t: Tracer, ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    """Return ``numpy.split``."""
    return _split(t, ary, indices_or_sections, axis, equal=True)


def array_split(t: Tracer, ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    """Return ``numpy.array_split``."""
    return _split(t, ary, indices_or_sections, axis, equal=False)


def _splitting(name: str, rank: int, axis: int) -> Any:
    def handler(t: Tracer, ary: Any, indices_or_sections: Any) -> Any:
        found = t.tensor(ary).ndim
        if found < rank:
            message = f"{name}: expected at least {rank} axes, found {found}"
            raise ShapeError(message)
        place = min(axis, found - 1)
        return _split(t, ary, indices_or_sections, place, equal=True)

    return handler


def unstack(t: Tracer, x: Any, /, *, axis: Any = 0) -> Any:
    """Return ``numpy.unstack``."""
    held = t.tensor(x)
    if not held.ndim:
        message = "unstack: expected at least one axis, found a 0-d array"
        raise ShapeError(message)
    place = ops.normal_axis(axis, held.ndim)
    count = t.consume_scalar(held.shape[place])
    return tuple(t.view(ops.take_index, x, place, k) for k in range(count))


HANDLERS: dict[str, Any] = {
    "concatenate": concatenate,
    "concat": concatenate,
    "stack": stack,
    "vstack": _stacking(2, 0),
    "row_stack": _stacking(2, 0),
    "hstack": _stacking(1, 1),
    "dstack": _stacking(3, 2),
    "column_stack": column_stack,
    "append": append,
    "insert": insert,
    "delete": delete,
    "block": block,
    "split": split,
    "array_split": array_split,
    "hsplit": _splitting("hsplit", 1, 1),
    "vsplit": _splitting("vsplit", 2, 0),
    "dsplit": _splitting("dsplit", 3, 2),
    "unstack": unstack,
}
