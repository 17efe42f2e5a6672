# SPDX-License-Identifier: Apache-2.0
"""NumPy's pad on stand-ins."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

import nfuser.compiler.ops as ops
import nfuser.compiler.trace.numpy.names.refusals as refusals
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.functions import less
from nfuser.compiler.trace.standins.sizes import is_sequence, refuse_bool, size
from nfuser.errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops import Builder
    from nfuser.compiler.trace.tracer import Tracer

Pairs: TypeAlias = "list[tuple[Any, Any]]"
_OTHER_MODES = ("empty", "linear_ramp", "maximum", "mean", "median", "minimum")


def pad(
    t: Tracer, array: Any, pad_width: Any, mode: Any = "constant", **options: Any
) -> Any:
    """Return ``numpy.pad``, which takes no negative widths."""
    return _pad(t, array, pad_width, mode, options, crops=False)


def pad_or_crop(
    t: Tracer, array: Any, pad_width: Any, mode: Any = "constant", **options: Any
) -> Any:
    """Return ``nfuser.numpy.pad``: negative widths in mode constant drop elements."""
    return _pad(t, array, pad_width, mode, options, crops=mode == "constant")


def _pad(
    t: Tracer,
    array: Any,
    pad_width: Any,
    mode: Any,
    options: dict[str, Any],
    *,
    crops: bool,
) -> Any:
    _check_mode(mode, options)
    held = t.tensor(array)
    wanted = widths(pad_width, held.ndim)
    if all(isinstance(n, (bool, np.bool_)) for pair in wanted for n in pair):
        for n in wanted[0] if wanted else ():
            refuse_bool(n, "pad")
    added = [(size(t, left, "pad"), size(t, right, "pad")) for left, right in wanted]
    if not crops:
        _refuse_negative(t, added)
    if mode != "constant":
        return t.apply(ops.extend, held, added, mode)
    fills = pairs(options.get("constant_values", 0), held.ndim, "constant_values")
    tensors = [(_fill(t, a, held), _fill(t, b, held)) for a, b in fills]
    return t.apply(_filled, held, added, tensors)


def _check_mode(mode: Any, options: dict[str, Any]) -> None:
    if callable(mode) or mode in _OTHER_MODES:
        raise refusals.pad_mode(mode)
    known = {
        "constant": {"constant_values"},
        "edge": set[str](),
        "wrap": set[str](),
        "reflect": {"reflect_type"},
        "symmetric": {"reflect_type"},
    }
    if mode not in known:
        message = f"pad: mode {mode!r} is not supported; expected one of {[*known]}"
        raise ShapeError(message)
    wrong = sorted(options.keys() - known[mode])
    if wrong:
        message = f"pad: unsupported keyword arguments for mode {mode!r}: {wrong}"
        raise ShapeError(message)
    if options.get("reflect_type", "even") != "even":
        raise refusals.keyword("pad", "reflect_type")


def widths(pad_width: Any, ndim: int) -> Pairs:
    """Return the widths before and after each axis, in any of NumPy's spellings."""
    if not isinstance(pad_width, dict):
        return pairs(pad_width, ndim, "pad_width")
    found: Pairs = [(0, 0)] * ndim
    for axis, width in pad_width.items():
        both = tuple(width) if is_sequence(width) else (width, width)
        if len(both) != 2:
            message = f"pad: expected a width or a pair for axis {axis}, found {both}"
            raise ShapeError(message)
        found[ops.normal_axis(axis, ndim)] = both
    return found


def pairs(values: Any, ndim: int, name: str) -> Pairs:
    """Return (before, after) for each axis, stretched as NumPy stretches them."""
    rows = list(values) if is_sequence(values) else [values]
    if not any(is_sequence(row) for row in rows):
        rows = [rows]
    listed = [list(row) if is_sequence(row) else [row] for row in rows]
    lengths = {len(row) for row in listed}
    if len(listed) not in (1, ndim) or len(lengths) != 1 or not lengths <= {1, 2}:
        message = (
            f"pad: {name} {values!r} does not stretch to (before, after) for each of "
            f"{ndim} axes; expected one number, one pair, or one of these an axis"
        )
        raise ShapeError(message)
    return [(row[0], row[-1]) for row in listed * (ndim if len(listed) == 1 else 1)]


def _refuse_negative(t: Tracer, widths: Pairs) -> None:
    for axis, pair in enumerate(widths):
        for width in map(sc.as_scalar, pair):
            if not sc.is_natural(width) and t.ask(less(width, 0)):
                message = (
                    f"pad: index can't contain negative values: width "
                    f"{t.builder.today(width)} along axis {axis}; "
                    "write a slice, or nfuser.numpy.pad, which drops elements"
                )
                raise ShapeError(message)


def _fill(t: Tracer, value: Any, held: TensorView) -> TensorView:
    """Return a fill as it is assigned into the array."""
    if isinstance(value, complex) and not held.dtype.is_complex:
        value = value.real
    found = t.builder.convert(t.operand(value), held.dtype)
    if found.ndim:
        message = (
            f"pad: constant_values are numbers, found an array with {found.ndim} axes; "
            "join it with concatenate"
        )
        raise ArgumentError(message)
    return found


def _filled(b: Builder, x: TensorView, widths: Pairs, fills: Pairs) -> TensorView:
    """Pad at once with one value, or side by side: later axes own the corners."""
    different = {fill for pair in fills for fill in pair}
    if len(different) <= 1:
        return ops.pad(b, x, widths, *different)
    for axis, (pair, values) in enumerate(zip(widths, fills, strict=True)):
        for side, fill in enumerate(values):
            own: Pairs = [(0, 0)] * x.ndim
            own[axis] = (0, pair[1]) if side else (pair[0], 0)
            x = ops.pad(b, x, own, fill)
    return x


HANDLERS: dict[str, Any] = {"pad": pad}
