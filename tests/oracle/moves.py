# SPDX-License-Identifier: Apache-2.0
"""Functions that put elements elsewhere: the same for values, bounds and doubts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tests.oracle.binary import kind_of
from tests.oracle.number_types import Array, common
from tests.oracle.value import Value, convert, from_array, from_scalar, no_doubt
from tests.oracle.views import padded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

JOINS = (
    *("concatenate", "concat", "stack", "vstack", "hstack", "dstack"),
    "column_stack",
)


def moved(function: Callable[[list[Array]], Array], values: Sequence[Value]) -> Value:
    """Apply to values of one dtype a function that only moves their elements."""
    soft = None
    if any(v.soft is not None for v in values):
        soft = function(
            [no_doubt(v.shape) if v.soft is None else v.soft for v in values]
        )
    return Value(
        values[0].dtype,
        np.asarray(function([v.ref for v in values])),
        np.asarray(function([v.err for v in values])),
        np.asarray(function([v.doubt for v in values])),
        any(v.loose for v in values),
        soft,
    )


def join(name: str, parts: Sequence[Any], *rest: Any, **options: Any) -> Value:
    """Return ``numpy.concatenate`` and its relatives."""
    dtype = common(*map(kind_of, parts))
    return moved(
        lambda arrays: getattr(np, name)(arrays, *rest, **options),
        [convert(part, dtype) for part in parts],
    )


def pad(
    name: str,
    x: Value,
    widths: Any,
    mode: str = "constant",
    constant_values: Any = 0,
    **options: Any,
) -> Value:
    """Return ``numpy.pad``, where a negative width drops elements."""
    if mode != "constant":
        spread: Callable[..., Array] = np.pad
        return x.view(lambda a: spread(a, widths, mode=mode, **options))
    if isinstance(constant_values, Value):
        fill = convert(constant_values, x.dtype)
    else:
        fill = from_scalar(constant_values, x.dtype)
    return moved(lambda both: padded(both[0], widths, both[1]), [x, fill])


def _index(x: Any) -> Value:
    value = x if isinstance(x, Value) else from_array(np.asarray(x))
    if value.dtype.kind not in "iu":
        message = "an index has an integer dtype"
        raise TypeError(message)
    return value


def take(name: str, x: Value, indices: Any, axis: int | None = None) -> Value:
    """Return ``numpy.take``."""
    index = _index(indices)
    result = x.view(lambda a: np.asarray(np.take(a, index.ref, axis)))
    rank = 1 if axis is None else len(x.shape)
    after = rank - 1 - (0 if axis is None else axis % rank)
    return _doubted(result, index.doubt.reshape(*index.shape, *(1,) * after))


def take_along_axis(name: str, x: Value, indices: Any, axis: int = -1) -> Value:
    """Return ``numpy.take_along_axis``."""
    index = _index(indices)
    result = x.view(lambda a: np.take_along_axis(a, index.ref, axis))
    return _doubted(result, index.doubt)


def _doubted(x: Value, doubt: Array) -> Value:
    every = x.doubt | np.broadcast_to(doubt, x.shape)
    return Value(x.dtype, x.ref, x.err, every, x.loose, x.soft)
