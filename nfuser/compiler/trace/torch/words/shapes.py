# SPDX-License-Identifier: Apache-2.0
"""Moves of elements, under torch's names."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nfuser.compiler.ops as ops
from nfuser.compiler.trace.numpy.dispatch.keywords import plain
from nfuser.compiler.trace.numpy.movement.moves import reshape_method
from nfuser.compiler.trace.torch.words.common import axis_of, one_of, sizes_of
from nfuser.errors import ArgumentError, UnsupportedError

if TYPE_CHECKING:
    from nfuser.compiler.trace.torch.words.common import Word
    from nfuser.compiler.trace.tracer import Tracer


def _unsqueeze(t: Tracer, x: Any, dim: Any) -> Any:
    return t.handlers["expand_dims"](t, x, plain(dim))


def _permute(t: Tracer, x: Any, *dims: Any, **options: Any) -> Any:
    order = options.pop("dims", None) or sizes_of(dims)
    return t.handlers["transpose"](t, x, plain(tuple(order)))


def _movedim(t: Tracer, x: Any, source: Any, destination: Any) -> Any:
    return t.handlers["moveaxis"](t, x, plain(source), plain(destination))


def _t(t: Tracer, x: Any) -> Any:
    if x.ndim > 2:
        message = f"t: expected at most 2 dimensions, found {x.ndim}; write x.mT"
        raise ArgumentError(message)
    return t.handlers["transpose"](t, x) if x.ndim == 2 else x


def _view(t: Tracer, x: Any, *sizes: Any, **options: Any) -> Any:
    shape = options.pop("size", None) or sizes_of(sizes)
    if len(shape) == 1 and not hasattr(shape[0], "__index__"):
        message = (
            f"write x.to(dtype) to convert the values; view({shape[0]!r}), the same "
            "bytes in another dtype, has no fused form"
        )
        raise UnsupportedError(message)
    return reshape_method(t, x, *shape)


def _view_as(t: Tracer, x: Any, other: Any) -> Any:
    return reshape_method(t, x, *other.shape)


def _unflatten(t: Tracer, x: Any, dim: Any, sizes: Any) -> Any:
    axis = axis_of(dim, x.ndim)
    return reshape_method(t, x, *x.shape[:axis], *sizes, *x.shape[axis + 1 :])


def _expand(t: Tracer, x: Any, *sizes: Any, **options: Any) -> Any:
    shape = tuple(options.pop("size", None) or sizes_of(sizes))
    new = len(shape) - x.ndim
    kept = (*shape[:new], *x.shape)
    pairs = zip(shape, kept, strict=True)
    whole = tuple(
        old if isinstance(n, int) and type(n) is int and n == -1 else n
        for n, old in pairs
    )
    return t.handlers["broadcast_to"](t, x, whole)


def _expand_as(t: Tracer, x: Any, other: Any) -> Any:
    return t.handlers["broadcast_to"](t, x, other.shape)


def _broadcast_to(t: Tracer, x: Any, size: Any) -> Any:
    return _expand(t, x, *size)


def _narrow(t: Tracer, x: Any, dim: Any, start: Any, length: Any) -> Any:
    del t
    return _along(x, dim, slice(start, start + length))


def _select(t: Tracer, x: Any, dim: Any, index: Any) -> Any:
    del t
    return _along(x, dim, index)


def _along(x: Any, dim: Any, key: Any) -> Any:
    axis = axis_of(dim, x.ndim)
    return x[(*(slice(None),) * axis, key)]


def _unbind(t: Tracer, x: Any, dim: Any = 0) -> Any:
    del t
    count = int(x.shape[axis_of(dim, x.ndim)])
    return tuple(_along(x, dim, k) for k in range(count))


def _split(t: Tracer, x: Any, split_size: Any, dim: Any = 0) -> Any:
    del t
    extent = x.shape[axis_of(dim, x.ndim)]
    if isinstance(split_size, (tuple, list)):
        sizes = list(split_size)
        if sum(sizes) != extent:
            message = f"split: expected sizes whose sum is {extent}, found {sizes}"
            raise ArgumentError(message)
    else:
        if split_size < 1:
            message = f"split: expected a size of at least 1, found {split_size}"
            raise ArgumentError(message)
        sizes = []
        while sum(sizes) < extent or not sizes:
            sizes.append(split_size)
    parts, begin = [], 0
    for size in sizes:
        parts.append(_along(x, dim, slice(begin, begin + size)))
        begin = begin + size
    return tuple(parts)


def _chunk(t: Tracer, x: Any, chunks: Any, dim: Any = 0) -> Any:
    if chunks < 1:
        message = f"chunk: expected at least 1 chunk, found {chunks}"
        raise ArgumentError(message)
    extent = x.shape[axis_of(dim, x.ndim)]
    size = -(-extent // chunks)
    if size == 0:
        return tuple(x for _ in range(chunks))
    count = chunks
    while (count - 1) * size >= extent and count > 1:
        count -= 1
    edges = [k * size for k in range(count)]
    ends = [*edges[1:], extent]
    del t
    pairs = zip(edges, ends, strict=True)
    return tuple(_along(x, dim, slice(a, b)) for a, b in pairs)


def _tensor_split(t: Tracer, x: Any, indices_or_sections: Any, dim: Any = 0) -> Any:
    return tuple(t.handlers["array_split"](t, x, indices_or_sections, plain(dim)))


def _cat(t: Tracer, tensors: Any, dim: Any = 0) -> Any:
    held = [t.operand(x) for x in tensors]
    taken = [t.wrap(x) for x in t.dialect.meet(t, ops.concatenate, held)]
    return t.handlers["concatenate"](t, taken, plain(dim))


def _stack(t: Tracer, tensors: Any, dim: Any = 0) -> Any:
    held = [t.operand(x) for x in tensors]
    taken = [t.wrap(x) for x in t.dialect.meet(t, ops.concatenate, held)]
    return t.handlers["stack"](t, taken, plain(dim))


def _joined(name: str) -> Word:
    def word(t: Tracer, tensors: Any) -> Any:
        held = [t.operand(x) for x in tensors]
        taken = [t.wrap(x) for x in t.dialect.meet(t, ops.concatenate, held)]
        return t.handlers[name](t, taken)

    return word


def _flip(t: Tracer, x: Any, *dims: Any, **options: Any) -> Any:
    axes = options.pop("dims", None)
    axes = sizes_of(dims) if axes is None else axes
    axes = axes if isinstance(axes, (tuple, list)) else (axes,)
    return t.call_on_tensor(ops.flip, x, plain(tuple(axes)))  # no view, as NumPy's is


def _roll(t: Tracer, x: Any, shifts: Any, dims: Any = None) -> Any:
    return t.handlers["roll"](t, x, shifts, plain(dims))


def _repeat_interleave(
    t: Tracer, x: Any, repeats: Any, dim: Any = None, *, output_size: Any = None
) -> Any:
    del output_size
    return t.handlers["repeat"](t, x, repeats, plain(dim))


def _triangle(name: str) -> Word:
    def word(t: Tracer, x: Any, diagonal: Any = 0) -> Any:
        return t.handlers[name](t, x, diagonal)

    return word


def _pad(
    t: Tracer,
    x: Any,
    pad: Any,
    mode: Any = "constant",
    value: Any = None,
) -> Any:
    """Pad the last axes first, as torch does; negative widths cut."""
    modes = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    one_of("pad", "mode", mode, ("constant", *modes))
    if len(pad) % 2 or len(pad) > 2 * x.ndim:
        message = (
            f"pad: expected pairs of widths, the last axis first, at most {x.ndim} of "
            f"them, found {tuple(pad)}"
        )
        raise ArgumentError(message)
    pairs = [(0, 0)] * (x.ndim - len(pad) // 2)
    pairs += [(pad[k], pad[k + 1]) for k in range(len(pad) - 2, -1, -2)]
    cut = [
        slice(-a if a < 0 else None, b if b < 0 else None)
        if a < 0 or b < 0
        else slice(None)
        for a, b in pairs
    ]
    if any(key != slice(None) for key in cut):
        x = x[tuple(cut)]
        pairs = [(max(a, 0), max(b, 0)) for a, b in pairs]
    if mode == "constant":
        fill = 0 if value is None else value
        return t.handlers["pad"](t, x, pairs, constant_values=fill)
    return t.handlers["pad"](t, x, pairs, modes[mode])


def _numel(t: Tracer, x: Any) -> Any:
    del t
    count: Any = 1
    for extent in x.shape:
        count = count * extent
    return count


def _dim(t: Tracer, x: Any) -> Any:
    del t
    return x.ndim


def _swap(t: Tracer, x: Any, first: Any, second: Any) -> Any:
    return t.handlers["swapaxes"](t, x, plain(first), plain(second))


def adjoint(t: Tracer, x: Any) -> Any:
    """Return the conjugate of a matrix, transposed."""
    return t.handlers["conj"](t, x.mT) if t.tensor(x).dtype.is_complex else x.mT


def _diag(t: Tracer, x: Any, diagonal: Any = 0) -> Any:
    found = t.handlers["diag"](t, x, diagonal)
    return t.handlers["copy"](t, found) if found.ndim == 1 else found


def _rot90(t: Tracer, x: Any, k: Any = 1, dims: Any = (0, 1)) -> Any:
    found = t.handlers["rot90"](t, x, plain(k), plain(tuple(dims)))
    return t.handlers["copy"](t, found)  # torch's is new, NumPy's is a view


def _tile(t: Tracer, x: Any, *dims: Any) -> Any:
    return t.handlers["tile"](t, x, sizes_of(dims))


def _meshgrid(t: Tracer, *tensors: Any, indexing: Any = "ij") -> Any:
    given = sizes_of(tensors)
    return tuple(t.handlers["meshgrid"](t, *given, copy=False, indexing=indexing))


def _fliplr(t: Tracer, x: Any) -> Any:
    return t.call_on_tensor(ops.flip, x, 1)


def _flipud(t: Tracer, x: Any) -> Any:
    return t.call_on_tensor(ops.flip, x, 0)


WORDS: dict[str, Word] = {
    "unsqueeze": _unsqueeze,
    "permute": _permute,
    "movedim": _movedim,
    "moveaxis": _movedim,
    "swapdims": _swap,
    "swapaxes": _swap,
    "t": _t,
    "adjoint": adjoint,
    "view": _view,
    "reshape": _view,
    "view_as": _view_as,
    "reshape_as": _view_as,
    "unflatten": _unflatten,
    "expand": _expand,
    "expand_as": _expand_as,
    "broadcast_to": _broadcast_to,
    "narrow": _narrow,
    "select": _select,
    "unbind": _unbind,
    "split": _split,
    "chunk": _chunk,
    "tensor_split": _tensor_split,
    "cat": _cat,
    "concat": _cat,
    "concatenate": _cat,
    "stack": _stack,
    "hstack": _joined("hstack"),
    "vstack": _joined("vstack"),
    "dstack": _joined("dstack"),
    "flip": _flip,
    "fliplr": _fliplr,
    "flipud": _flipud,
    "roll": _roll,
    "rot90": _rot90,
    "tile": _tile,
    "repeat_interleave": _repeat_interleave,
    "tril": _triangle("tril"),
    "triu": _triangle("triu"),
    "diag": _diag,
    "pad": _pad,
    "numel": _numel,
    "nelement": _numel,
    "dim": _dim,
    "ndimension": _dim,
    "meshgrid": _meshgrid,
}
