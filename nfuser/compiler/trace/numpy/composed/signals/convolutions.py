# SPDX-License-Identifier: Apache-2.0
"""Windows that slide along an array, and sums of products over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.trace.numpy.names.refusals as refusals
from nfuser.compiler.ops import normal_axis
from nfuser.compiler.trace.numpy.composed.parts import array, conjugate, viewed
from nfuser.compiler.trace.numpy.dispatch.keywords import plain
from nfuser.compiler.trace.standins.sizes import is_sequence
from nfuser.errors import ShapeError

if TYPE_CHECKING:
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.trace.tracer import Tracer

_MODES = ("valid", "same", "full")
# So many slices are summed one by one, and compiled in: ten times as fast as a fold.
_FEW = 16


def _slid(t: Tracer, x: Any, axis: int, width: Any) -> Any:
    """Return ``x`` with a window of ``width`` elements in place of each of its axis."""
    arange = t.handlers["arange"]
    count = x.shape[axis] - width + 1
    return np.take(x, arange(t, count)[:, None] + arange(t, width), axis)


def sliding_window_view(
    t: Tracer,
    x: Any,
    window_shape: Any,
    axis: Any = None,
    *,
    subok: Any = False,
    writeable: Any = False,
) -> Any:
    """Return ``numpy.lib.stride_tricks.sliding_window_view``: it is not written."""
    del subok
    if writeable:
        raise refusals.keyword("sliding_window_view", "writeable")
    x = viewed(t, x)
    widths = tuple(window_shape) if is_sequence(window_shape) else (window_shape,)
    axes = range(x.ndim) if axis is None else axis
    axes = [normal_axis(plain(k), x.ndim) for k in (axes if is_many(axes) else (axes,))]
    if len(widths) != len(axes):
        message = (
            "sliding_window_view: expected as many widths as axes, found "
            f"{len(widths)} for {len(axes)} axes of an array of {x.ndim} dimensions"
        )
        raise ShapeError(message)
    for axis_slid, width in zip(axes, widths, strict=True):
        if width < 0:
            message = f"sliding_window_view: expected 0 or more, found {int(width)}"
            raise ShapeError(message)
        if x.shape[axis_slid] < width:
            message = (
                f"sliding_window_view: a window of {int(width)} is wider than axis "
                f"{axis_slid} of {int(x.shape[axis_slid])}"
            )
            raise ShapeError(message)

    def windows(_: object, held: TensorView) -> TensorView:
        found = t.wrap(held)
        for axis_slid, width in zip(axes, widths, strict=True):
            found = np.moveaxis(_slid(t, found, axis_slid, width), axis_slid + 1, -1)
        return t.tensor(found)

    return t.view(windows, x)


def is_many(axes: Any) -> bool:
    """Tell whether several axes are named."""
    return isinstance(axes, (tuple, list, range))


def convolve(t: Tracer, a: Any, v: Any, mode: Any = "full") -> Any:
    """Return ``numpy.convolve``."""
    x, y = (_vector("convolve", z[None] if not z.ndim else z) for z in _two(t, a, v))
    if y.shape[0] > x.shape[0]:
        x, y = y, x
    return _correlated(t, x, y[::-1], _mode("convolve", mode))


def correlate(t: Tracer, a: Any, v: Any, mode: Any = "valid") -> Any:
    """Return ``numpy.correlate``."""
    x, y = (_vector("correlate", z) for z in _two(t, a, v))
    wanted = _mode("correlate", mode)
    if y.shape[0] > x.shape[0]:
        return _correlated(t, y, conjugate(x), wanted, turned=True)
    return _correlated(t, x, conjugate(y), wanted)


def _two(t: Tracer, a: Any, v: Any) -> list[Any]:
    arrays = [array(t, z) for z in (a, v)]
    kind = np.result_type(*(z.dtype for z in arrays))
    return [z.astype(kind) for z in arrays]


def _vector(name: str, x: Any) -> Any:
    if x.ndim != 1:
        message = f"{name}: expected one dimension, found {x.ndim}"
        raise ShapeError(message)
    if x.shape[0] == 0:
        message = f"{name}: expected one element at least, found an empty array"
        raise ShapeError(message)
    return x


def _mode(name: str, mode: Any) -> str:
    if isinstance(mode, int) and mode in range(3):
        return _MODES[mode]
    if mode in _MODES:
        return mode
    message = f"{name}: expected a mode of 'full', 'same' or 'valid', found {mode!r}"
    raise ShapeError(message)


def _correlated(t: Tracer, x: Any, y: Any, mode: str, *, turned: bool = False) -> Any:
    """Return the products of ``y`` with the windows of ``x``, which is no shorter.

    What is ``turned`` was the other way round: each result is conjugated, and the last
    comes first.
    """
    width = y.shape[0]
    half = width // 2
    borders = {
        "full": (width - 1, width - 1),
        "same": (half, width - half - 1),
        "valid": (0, 0),
    }[mode]
    wide = np.pad(x, borders)
    count = wide.shape[0] - width + 1
    if x.dtype != bool and width <= _FEW:
        width = plain(width)
        found = wide[:count] * y[0]
        for k in range(1, width):
            found = found + wide[k : k + count] * y[k]
    else:
        products = _slid(t, wide, 0, width) * y
        fold = np.any if x.dtype == bool else np.sum
        found = fold(products, -1, **({} if fold is np.any else {"dtype": x.dtype}))
    return conjugate(found)[::-1] if turned else found


HANDLERS = {
    "convolve": convolve,
    "correlate": correlate,
    "lib.stride_tricks.sliding_window_view": sliding_window_view,
}
