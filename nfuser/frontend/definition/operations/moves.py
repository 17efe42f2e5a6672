# SPDX-License-Identifier: Apache-2.0
"""Operations of ``fd.ops`` that put elements elsewhere: reshape, pad, cat, roll."""

# The operands of an operation are handles and numbers of many types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nfuser.compiler.ops as ops
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.functions import less, maximum, minimum, product, select
from nfuser.errors import ArgumentError, ShapeError
from nfuser.frontend.definition.operations.shapes import listed, sizes_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.frontend.definition.draft import Draft


# -- reshape -----------------------------------------------------------------


def _reshape(d: Draft, arg: Any, new_shape: Any) -> Any:
    """Return the elements in C order as ``new_shape``; one size may be -1."""
    x = d.tensor(arg)
    sizes = [d.integer(item, "a size") for item in listed(new_shape, "a shape")]
    for size in sizes:
        if isinstance(size, sc.Const) and size.value < -1:
            message = f"a size is at least 0, or one of them -1; found {size.value}"
            raise ShapeError(message)
    return ops.reshape(d.builder, x, _settled(d, x, sizes))


def _settled(d: Draft, x: TensorView, sizes: list[sc.Scalar]) -> list[sc.Scalar]:
    """Write down what scalars that may be -1 in a call stand for then."""
    open_ones = [
        k
        for k, size in enumerate(sizes)
        if not isinstance(size, sc.Const) and not sc.is_natural(size)
    ]
    if not open_ones:
        return sizes
    if sc.const(-1) in sizes:
        for k in open_ones:
            d.require_natural(sizes[k], "one size is -1 already; another is {}")
        return sizes
    spare: sc.Scalar = sc.const(1)
    for k in open_ones:
        spare = spare - less(sizes[k], 0)
    d.require_natural(spare, "one size may be -1, not more")
    settled = list(sizes)
    for k in open_ones:
        rest = product(size for j, size in enumerate(sizes) if j != k)
        is_open = less(sizes[k], 0)
        message = "-1 stands for any size beside one that is 0"
        d.require_natural(select(is_open, rest - 1, 0), message)
        inferred = product(x.shape) // maximum(rest, 1)
        settled[k] = select(is_open, inferred, sizes[k])
    return settled


def _flatten(d: Draft, arg: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Join the axes from ``start_dim`` to ``end_dim``."""
    x = d.tensor(arg)
    if not x.ndim:
        return ops.reshape(d.builder, x, [1])
    first, last = (ops.normal_axis(k, x.ndim) for k in (start_dim, end_dim))
    if first > last:
        message = f"axis {start_dim} lies behind axis {end_dim}"
        raise ShapeError(message)
    return ops.merge_axes(d.builder, x, first, last)


# -- pad ---------------------------------------------------------------------


def _pad(d: Draft, arg: Any, pad_widths: Any, value: Any = None) -> Any:
    """Add elements around; ``pad_widths`` are pairs, the last axis first.

    Negative widths drop elements; axes without widths stay.
    """
    x = d.tensor(arg)
    fill = 0 if value is None else d.held_by(x.dtype, value, "the value of pad")
    return ops.pad(d.builder, x, _widths(d, x, pad_widths), fill)


def _extend(d: Draft, arg: Any, pad_widths: Any, mode: str) -> Any:
    """Add elements of the tensor itself: edge, wrap, reflect or symmetric."""
    if mode not in ("edge", "wrap", "reflect", "symmetric"):
        message = f"mode is edge, wrap, reflect or symmetric, found {mode!r}"
        raise ShapeError(message)
    x = d.tensor(arg)
    widths = _widths(d, x, pad_widths)
    for width in (w for pair in widths for w in pair):
        d.require_natural(width, "a width is negative: {}")
    return ops.extend(d.builder, x, widths, mode)


def _widths(
    d: Draft, x: TensorView, pad_widths: Any
) -> list[tuple[sc.Scalar, sc.Scalar]]:
    flat = [d.integer(item, "a width") for item in listed(pad_widths, "pad_widths")]
    if len(flat) % 2 or len(flat) > 2 * x.ndim:
        message = (
            f"pad_widths has {len(flat)} entries; expected a pair for each of at most "
            f"{x.ndim} axes, the last axis first"
        )
        raise ArgumentError(message)
    pairs = list(zip(flat[::2], flat[1::2], strict=True))
    pairs += [(sc.const(0), sc.const(0))] * (x.ndim - len(pairs))
    pairs.reverse()
    shape = [n + left + right for n, (left, right) in zip(x.shape, pairs, strict=True)]
    if any(isinstance(n, sc.Const) and n.value < 0 for n in shape):
        message = (
            "negative widths drop more than there is: an array of shape "
            f"{d.shape_text(x)} would get the sizes {sizes_text(shape)}"
        )
        raise ShapeError(message)
    return pairs


# -- joining and taking apart ------------------------------------------------


def _cat(
    d: Draft, tensors: Sequence[Any], dim: int = 0, manual_padding: bool = False
) -> Any:
    """Return the tensors one after another along ``dim``."""
    if manual_padding:
        message = "manual_padding=True is not supported: pass the tensors unpadded"
        raise ArgumentError(message)
    return _joined(d, _parts(d, tensors), dim)


def _stack(d: Draft, tensors: Sequence[Any], dim: int = 0) -> Any:
    """Return the tensors side by side along a new axis."""
    parts = _parts(d, tensors)
    if len({x.ndim for x in parts}) == 1:
        _check_sizes(parts, None)
    return ops.stack(d.builder, parts, dim)


def _parts(d: Draft, tensors: Sequence[Any]) -> list[TensorView]:
    parts = [d.tensor(item) for item in listed(tensors, "what is joined")]
    if not parts:
        message = "expected at least one tensor, found none"
        raise ShapeError(message)
    return parts


def _joined(d: Draft, parts: Sequence[TensorView], dim: int) -> TensorView:
    if len({x.ndim for x in parts}) == 1 and parts[0].ndim:
        _check_sizes(parts, ops.normal_axis(dim, parts[0].ndim))
    return ops.concatenate(d.builder, parts, dim)


def _check_sizes(parts: Sequence[TensorView], dim: int | None) -> None:
    """Refuse sizes that are known now and differ; the others are for the calls."""
    for k in range(parts[0].ndim):
        sizes = {x.shape[k] for x in parts if isinstance(x.shape[k], sc.Const)}
        if k != dim and len(sizes) > 1:
            shapes = " ".join(sizes_text(x.shape) for x in parts)
            beside = "all" if dim is None else "all other"
            message = f"{beside} sizes must match; axis {k} of {shapes} differs"
            raise ShapeError(message)


def _stacking(rank: int, axis: int) -> Any:
    def operation(d: Draft, tensors: Sequence[Any]) -> Any:
        parts = [ops.at_least(d.builder, x, rank) for x in _parts(d, tensors)]
        return _joined(d, parts, 0 if parts[0].ndim == 1 else axis)

    operation.__doc__ = f"Return tensors of at least {rank} axes joined as NumPy does."
    return operation


def _column_stack(d: Draft, tensors: Sequence[Any]) -> Any:
    """Return the tensors as columns beside each other."""
    b = d.builder
    parts = [
        x if x.ndim > 1 else ops.permute(b, ops.at_least(b, x, 2))
        for x in _parts(d, tensors)
    ]
    return _joined(d, parts, 1)


def _split(d: Draft, arg: Any, sections: int, dim: int = 0) -> Any:
    """Return ``sections`` equal parts along ``dim``."""
    return _windows(d, arg, sections, dim, equal=True)


def _array_split(d: Draft, arg: Any, sections: int, dim: int = 0) -> Any:
    """Return ``sections`` parts that differ by one element at most."""
    return _windows(d, arg, sections, dim, equal=False)


def _windows(d: Draft, arg: Any, sections: int, dim: int, *, equal: bool) -> Any:
    x = d.tensor(arg)
    axis = ops.normal_axis(dim, x.ndim)
    if type(sections) is not int or sections < 1:
        message = f"the number of parts is an integer above 0, found {sections!r}"
        raise ShapeError(message)
    extent = x.shape[axis]
    if equal:
        message = (
            f"axis {axis} of shape {d.shape_text(x)} does not divide into {sections} "
            "equal parts; array_split makes unequal ones"
        )
        d.require_natural(-(extent % sections), message)
    least, more = extent // sections, sc.const(0) if equal else extent % sections
    parts: list[TensorView] = []
    for k in range(sections):
        start = least * k + (minimum(more, k) if k else 0)
        length = least + less(k, more)
        parts.append(ops.window(d.builder, x, axis, start, length))
    return parts


def _unstack(d: Draft, arg: Any, dim: int = 0) -> Any:
    """Return the elements along ``dim``, whose size is part of the definition."""
    x = d.tensor(arg)
    axis = ops.normal_axis(dim, x.ndim)
    extent = x.shape[axis]
    if not isinstance(extent, sc.Const):
        message = f"the size of axis {axis} must be known while it is defined"
        raise ShapeError(message)
    return [ops.take_index(d.builder, x, axis, k) for k in range(extent.value)]


# -- roll, tile, repeat ------------------------------------------------------


def _roll(d: Draft, arg: Any, shifts: Any, dims: Any = None) -> Any:
    """Move elements along axes; what falls off comes in again."""
    b, x = d.builder, d.tensor(arg)
    numbers = shifts if isinstance(shifts, list | tuple) else [shifts]
    places = dims if isinstance(dims, list | tuple) else [dims]
    if len(numbers) != len(places) and 1 not in (len(numbers), len(places)):
        message = f"{len(numbers)} shifts do not go with {len(places)} axes"
        raise ShapeError(message)
    count = max(len(numbers), len(places)) if numbers and places else 0
    flat = ops.reshape(b, x, [-1]) if dims is None else x
    for k in range(count):
        number = d.integer(numbers[k % len(numbers)], "a shift")
        place = places[k % len(places)]
        flat = ops.roll(b, flat, number, 0 if place is None else place)
    return ops.reshape(b, flat, x.shape) if dims is None else flat


def _tile(d: Draft, arg: Any, counts: Any) -> Any:
    """Return the tensor laid side by side ``counts`` times along its last axes."""
    every = counts if isinstance(counts, list | tuple) else [counts]
    return ops.tile(d.builder, d.tensor(arg), [d.extent(item) for item in every])


def _repeat(d: Draft, arg: Any, count: Any, dim: int | None = None) -> Any:
    """Return each element ``count`` times along ``dim``, or of all in a row."""
    b, x = d.builder, d.tensor(arg)
    if dim is None:
        x, dim = ops.reshape(b, x, [-1]), 0
    return ops.repeat(b, x, d.extent(count), dim)


MOVES: dict[str, Callable[..., Any]] = {
    "array_split": _array_split,
    "cat": _cat,
    "column_stack": _column_stack,
    "dstack": _stacking(3, 2),
    "extend": _extend,
    "flatten": _flatten,
    "hstack": _stacking(1, 1),
    "pad": _pad,
    "repeat": _repeat,
    "reshape": _reshape,
    "roll": _roll,
    "split": _split,
    "stack": _stack,
    "tile": _tile,
    "unstack": _unstack,
    "vstack": _stacking(2, 0),
}
