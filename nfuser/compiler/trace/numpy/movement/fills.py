# SPDX-License-Identifier: Apache-2.0

"""Functions and methods of NumPy that write into an array and return nothing."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.trace.numpy.movement.writes as writes
import nfuser.compiler.trace.numpy.names.refusals as refusals
from nfuser.compiler.dtypes.promotion import safe_cast
from nfuser.compiler.trace.standins.asked import ask_to_assign_outside, to_be_assigned
from nfuser.compiler.trace.standins.sizes import is_sequence
from nfuser.compiler.trace.standins.standin import Standin, chosen_by_masks
from nfuser.errors import DTypeError, ShapeError, UnsupportedError

if TYPE_CHECKING:
    from nfuser.compiler.trace.tracer import Tracer


_NUMBERS = (bool, int, float, complex)


def _target(t: Tracer, x: Any) -> Any:
    """Return the array that is written; ask for a trace that may, if this may not."""
    if isinstance(x, Standin) and hasattr(x, "_remake"):
        return x
    owner = t.owner(x)
    if owner is not None:
        ask_to_assign_outside(owner)
    raise to_be_assigned()


def copyto(
    t: Tracer, dst: Any, src: Any, casting: str = "same_kind", where: Any = True
) -> None:
    """Do ``numpy.copyto``."""
    dst = _target(t, dst)
    taken = None if is_sequence(src) else t.operand(src)
    kind = None if taken is None else t.builder.type_of(taken)
    if kind in _NUMBERS:
        held = dst._operand().dtype  # which takes Python numbers of its kind, or below
        kinds = (held.is_bool, held.is_integer, not held.is_complex, True)
        is_below = _NUMBERS.index(kind) <= kinds.index(True)
        casting = "unsafe" if is_below else casting
    if where is True:
        writes.write(t, dst, src, casting)
        return
    new = t.wrap(
        writes.fitted(t, src, dst._operand().shape, dst._operand().dtype, casting)
    )
    writes.write(t, dst, np.where(where, new, dst), casting)


def putmask(t: Tracer, a: Any, mask: Any, values: Any) -> None:
    """Do ``numpy.putmask`` with one value, or with an array of the same shape."""
    a = _target(t, a)
    new = t.tensor(values)
    if new.ndim not in (0, a.ndim):
        raise UnsupportedError(refusals.REPEATED_VALUES)
    is_array = not getattr(values, "_is_number", True)
    if is_array or isinstance(values, np.ndarray):  # numbers and lists are converted
        safe_cast(new.dtype, a._operand().dtype, "safe")
    copyto(t, a, t.wrap(new), "unsafe", where=t.wrap(t.tensor(mask)).astype(bool))


def place(t: Tracer, arr: Any, mask: Any, vals: Any) -> None:
    """Do ``numpy.place`` with one value, or with those of the same mask."""
    arr = _target(t, arr)
    is_listed = isinstance(vals, (list, tuple))
    is_chosen = type(vals) in chosen_by_masks
    if not is_chosen and (len(vals) != 1 if is_listed else np.ndim(vals)):
        raise UnsupportedError(refusals.REPEATED_VALUES)
    chosen = t.wrap(t.tensor(mask))
    arr[chosen if chosen.dtype == bool else chosen != 0] = vals


def put(t: Tracer, a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """Do ``numpy.put`` of one value, or of as many as there are indices."""
    a = _target(t, a)
    if mode not in ("raise", "clip", "wrap"):
        raise refusals.keyword("put", "mode")
    if isinstance(ind, (list, tuple)):
        ind = np.asarray(ind) if len(ind) else np.zeros(0, np.int64)
    index = t.wrap(t.tensor(ind))
    flat = index.reshape(-1)
    if mode != "raise":
        if not np.can_cast(flat.dtype, np.int64):
            message = (
                f"Cannot cast array data from {flat.dtype} to int64 according to "
                "the rule 'safe'"
            )
            raise DTypeError(message)
        flat = flat.astype(np.int64)  # which holds the size, too
        flat = flat % a.size if mode == "wrap" else np.clip(flat, 0, a.size - 1)
    given = t.wrap(t.builder.tensor(t.operand(v)))
    if given.ndim > 1 or a.ndim != 1:
        given = given.reshape(-1) if given.ndim else given
    if a.ndim == 1:
        a[flat] = given
        return
    flat = np.where(flat < 0, flat + a.size, flat)
    places: list[Any] = []
    for extent in reversed(a.shape[1:]):
        places.append(flat % extent)
        flat = flat // extent
    a[(flat, *reversed(places))] = given


def fill_diagonal(t: Tracer, a: Any, val: Any, wrap: bool = False) -> None:
    """Do ``numpy.fill_diagonal``."""
    a = _target(t, a)
    if a.ndim < 2:
        message = "array must be at least 2-d"
        raise refusals.AxisError(message)
    if wrap:
        raise refusals.keyword("fill_diagonal", "wrap")
    if a.ndim > 2:
        for extent in a.shape[1:]:
            if extent != a.shape[0]:
                message = "All dimensions of input must be of equal length"
                raise ShapeError(message)
    at = [_along(t, k, a) for k in range(a.ndim)]
    is_on = at[0] == at[1]
    for k in range(2, a.ndim):
        is_on = is_on & (at[0] == at[k])
    given = t.wrap(t.builder.tensor(t.operand(val)))
    if given.ndim:
        given = np.take(given.reshape(-1), at[0] % given.size)
    copyto(t, a, given, "unsafe", where=is_on)


def _along(t: Tracer, axis: int, a: Any) -> Any:
    """Return the index along an axis of ``a``, as an array that stretches."""
    own = t.handlers["arange"](t, a.shape[axis])
    return own[(slice(None), *(None,) * (a.ndim - 1 - axis))]


def fill(t: Tracer, a: Any, value: Any) -> None:
    """Do ``x.fill(value)``."""
    _target(t, a)[...] = value


def sort_in_place(t: Tracer, a: Any, axis: int = -1, **options: Any) -> None:
    """Do ``x.sort()``."""
    _target(t, a)[...] = np.sort(a, axis, **options)


def partition_in_place(t: Tracer, a: Any, kth: Any, axis: int = -1) -> None:
    """Do ``x.partition(kth)``."""
    _target(t, a)[...] = np.partition(a, kth, axis)


def put_along_axis(t: Tracer, arr: Any, indices: Any, values: Any, axis: Any) -> None:
    """Do ``numpy.put_along_axis``."""
    arr = _target(t, arr)
    index = t.wrap(t.tensor(indices))
    if axis is None or index.ndim != arr.ndim:
        raise refusals.function("put_along_axis")
    axis = axis % arr.ndim
    keys: list[Any] = []
    for k in range(arr.ndim):
        if k == axis:
            keys.append(index)
            continue
        keys.append(_along(t, k, index))
    arr[tuple(keys)] = values


HANDLERS: dict[str, Any] = {
    "copyto": copyto,
    "putmask": putmask,
    "place": place,
    "put": put,
    "fill_diagonal": fill_diagonal,
    "put_along_axis": put_along_axis,
    "fill": fill,
    "ndarray.sort": sort_in_place,
    "ndarray.partition": partition_in_place,
}
