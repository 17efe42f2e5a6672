# SPDX-License-Identifier: Apache-2.0
"""Steps that move elements, join and take arrays apart, or make them."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser import DataType
from nfuser.compiler.dtypes import as_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.definitions.writer import Term, Writer


def _keep(w: Writer, handle: Any, array: Any, term: Term) -> None:
    w.keep(handle, array, term.slack)


# -- reshape -----------------------------------------------------------------


def _divided(w: Writer, count: int) -> list[int]:
    """Return random sizes with product ``count``."""
    sizes: list[int] = []
    while count > 1 and len(sizes) < 4:
        factors = [n for n in range(2, count + 1) if count % n == 0]
        sizes.append(w.dice.choice(factors))
        count //= sizes[-1]
    sizes += [count] if count > 1 else []
    for _ in range(w.dice.choice((0, 0, 1))):
        sizes.insert(w.dice.randint(0, len(sizes)), 1)
    return sizes


def reshape(w: Writer) -> None:
    term = w.pick(rank=(0, 4))
    sizes = _divided(w, term.array.size) if term.array.size else [0, 3]
    spelled = [w.integer(n) for n in sizes]
    if sizes and term.array.size and w.dice.random() < 0.5:
        spelled[w.dice.randrange(len(sizes))] = _open(w)
    made = w.fd.ops.reshape(term.handle, spelled)
    _keep(w, made, term.array.reshape(sizes), term)


def _open(w: Writer) -> Any:
    if w.dice.random() < 0.7:
        return -1
    w.inputs.append(-1)
    return w.fd.define_scalar(dtype=DataType.Int)


def flatten(w: Writer) -> None:
    term = w.pick(rank=(1, 4))
    shape = term.array.shape
    first = w.dice.randrange(len(shape))
    last = w.dice.randrange(first, len(shape))
    sizes = (*shape[:first], int(np.prod(shape[first : last + 1])), *shape[last + 1 :])
    made = w.fd.ops.flatten(term.handle, first, last - len(shape))
    _keep(w, made, term.array.reshape(sizes), term)


# -- axes --------------------------------------------------------------------


def permute(w: Writer) -> None:
    term = w.pick()
    order = w.dice.sample(range(term.array.ndim), term.array.ndim)
    made = w.fd.ops.permute(term.handle, order)
    _keep(w, made, term.array.transpose(order), term)


def stride_order(w: Writer) -> None:
    term = w.pick()
    ranks = w.dice.sample(range(term.array.ndim), term.array.ndim)
    made = w.fd.ops.stride_order(term.handle, ranks)
    _keep(w, made, term.array.copy(), term)


def moveaxis(w: Writer) -> None:
    term = w.pick(rank=(1, 4))
    pair = w.axis(term), w.axis(term)
    made = w.fd.ops.moveaxis(term.handle, *pair)
    _keep(w, made, np.moveaxis(term.array, *pair), term)


def swapaxes(w: Writer) -> None:
    term = w.pick(rank=(1, 4))
    pair = w.axis(term), w.axis(term)
    made = w.fd.ops.swapaxes(term.handle, *pair)
    _keep(w, made, np.swapaxes(term.array, *pair), term)


def matrix_transpose(w: Writer) -> None:
    term = w.pick(rank=(2, 4))
    made = w.fd.ops.matrix_transpose(term.handle)
    _keep(w, made, np.matrix_transpose(term.array), term)


def flip(w: Writer) -> None:
    term = w.pick(rank=(1, 4))
    axis = w.dice.choice((w.axis(term), None))
    _keep(w, w.fd.ops.flip(term.handle, axis), np.flip(term.array, axis), term)


def expand_dims(w: Writer) -> None:
    term = w.pick(rank=(0, 3))
    place = w.dice.randint(0, term.array.ndim)
    made = w.fd.ops.expand_dims(term.handle, place)
    _keep(w, made, np.expand_dims(term.array, place), term)


def squeeze(w: Writer) -> None:
    term = w.pick(rank=(1, 4), fits=lambda a: 1 in a.shape)
    places = [k for k, n in enumerate(term.array.shape) if n == 1]
    chosen = w.dice.sample(places, w.dice.randint(1, len(places)))
    made = w.fd.ops.squeeze(term.handle, chosen)
    _keep(w, made, np.squeeze(term.array, tuple(chosen)), term)


def broadcast(w: Writer) -> None:
    term = w.pick(rank=(0, 3))
    flags = [False] * term.array.ndim
    flags.insert(place := w.dice.randint(0, term.array.ndim), True)
    made = w.fd.ops.broadcast(term.handle, flags)
    _keep(w, made, np.expand_dims(term.array, place), term)


def broadcast_in_dim(w: Writer) -> None:
    term = w.pick(rank=(0, 2))
    shape, place = [*term.array.shape], w.dice.randint(0, term.array.ndim)
    shape.insert(place, w.dice.choice((1, 3, 5)))
    places = [k for k in range(len(shape)) if k != place]
    wanted = [w.integer(n) for n in shape]
    made = w.fd.ops.broadcast_in_dim(term.handle, wanted, places)
    array = np.broadcast_to(np.expand_dims(term.array, place), shape)
    _keep(w, made, array, term)


def expand(w: Writer) -> None:
    term = w.pick(rank=(0, 3))
    shape = [w.dice.choice((3, 5)) if n == 1 else n for n in term.array.shape]
    same = [k for k, n in enumerate(shape) if n == term.array.shape[k]]
    spelled = [
        -1 if k in same and w.dice.random() < 0.5 else w.integer(n)
        for k, n in enumerate(shape)
    ]
    if w.dice.random() < 0.5:
        shape.insert(0, 2)
        spelled.insert(0, 2)
    made = w.fd.ops.expand(term.handle, spelled)
    _keep(w, made, np.broadcast_to(term.array, shape), term)


def broadcast_tensors(w: Writer) -> None:
    x = w.pick()
    y = w.partner(x)
    made = w.fd.ops.broadcast_tensors([x.handle, y.handle])
    arrays = np.broadcast_arrays(x.array, y.array)
    for handle, array, term in zip(made, arrays, (x, y), strict=True):
        _keep(w, handle, array, term)


def at_least(rank: int) -> Callable[[Writer], None]:
    name = f"atleast_{rank}d"

    def step(w: Writer) -> None:
        term = w.pick()
        made = getattr(w.fd.ops, name)(term.handle)
        _keep(w, made, getattr(np, name)(term.array), term)

    return step


def size(w: Writer) -> None:
    term = w.pick(rank=(1, 4))
    axis = w.axis(term)
    scalar = w.fd.ops.size(term.handle, axis)
    made = w.fd.ops.add(term.handle, scalar) if term.kind == "f" else scalar
    extent = term.array.shape[axis]
    w.computed(made, term.array + extent if term.kind == "f" else extent, term.slack)


def shape(w: Writer) -> None:
    term = w.pick(rank=(1, 4))
    made = w.fd.ops.shape(term.handle)
    w.keep(w.fd.ops.full(made, 1.5, DataType.Double), np.full(term.array.shape, 1.5))


# -- slices and borders ------------------------------------------------------


def slice_step(w: Writer) -> None:
    term = w.pick(rank=(1, 3))
    starts, ends, steps = [], [], []
    for n in term.array.shape:
        low, high = sorted((w.dice.randint(0, n), w.dice.randint(0, n + 2)))
        starts.append(low - n if low and low < n and w.dice.random() < 0.25 else low)
        ends.append(high)
        steps.append(w.dice.choice((1, 1, 1, 2, 3)))
    if w.dice.random() < 0.3:
        k = w.dice.randrange(term.array.ndim)
        made, array = _half(w, term, k)
    else:
        spelled = [[w.integer(n) for n in bounds] for bounds in (starts, ends)]
        plain = all(step == 1 for step in steps)
        made = w.fd.ops.slice(term.handle, *spelled, *([] if plain else [steps]))
        array = term.array[tuple(map(slice, starts, ends, steps))]
    _keep(w, made, array, term)


def _half(w: Writer, term: Term, axis: int) -> tuple[Any, Any]:
    """Return a half along an axis, as rotations take it."""
    ops, sizes = w.fd.ops, w.fd.ops.shape(term.handle)
    middle = ops.div(sizes[axis], 2)
    starts, ends = [0] * len(sizes), [*sizes]
    index: list[Any] = [slice(None)] * len(sizes)
    half = term.array.shape[axis] // 2
    if w.dice.random() < 0.5:
        starts[axis], index[axis] = middle, slice(half, None)
    else:
        ends[axis], index[axis] = middle, slice(0, half)
    exact = w.dice.random() < 0.3
    made = ops.slice(term.handle, starts, ends, manual_normalization=exact)
    return made, term.array[tuple(index)]


def pad(w: Writer) -> None:
    term = w.pick("bif", rank=(1, 3))
    pairs = [
        (w.dice.randint(-min(n, 1), 3), w.dice.randint(0, 2)) for n in term.array.shape
    ]
    named = w.dice.randint(1, len(pairs))
    pairs = [(0, 0)] * (len(pairs) - named) + pairs[len(pairs) - named :]
    # The last axis comes first.
    flat = [n for pair in reversed(pairs[len(pairs) - named :]) for n in pair]
    value = w.dice.choice((None, 2)) if term.kind != "b" else None
    made = w.fd.ops.pad(term.handle, [w.integer(n) for n in flat], value)
    cropped = term.array[tuple(slice(max(0, -left), None) for left, _ in pairs)]
    added = [(max(0, left), right) for left, right in pairs]
    _keep(w, made, np.pad(cropped, added, constant_values=value or 0), term)


def extend(w: Writer) -> None:
    term = w.pick("bif", rank=(1, 3), fits=lambda a: a.size > 0)
    mode = w.dice.choice(("edge", "wrap", "reflect", "symmetric"))
    left, right = w.dice.randint(0, 6), w.dice.randint(0, 6)
    made = w.fd.ops.extend(term.handle, [w.integer(left), w.integer(right)], mode)
    pairs = [(0, 0)] * (term.array.ndim - 1) + [(left, right)]
    _keep(w, made, np.pad(term.array, pairs, mode), term)


# -- joins -------------------------------------------------------------------


def _beside(w: Writer, term: Term, axis: int | None) -> Term:
    """Return a term that differs in size along ``axis`` only."""
    shape = [*term.array.shape]
    if axis is not None:
        shape[axis] = w.dice.choice((0, 1, 3, 5))
    fitting = [
        other
        for other in w.terms
        if other.kind == term.kind
        and _meet(other.array.dtype, term.array.dtype)
        and other.array.ndim == len(shape)
        and all(
            a == b or k == axis
            for k, (a, b) in enumerate(zip(other.array.shape, shape, strict=True))
        )
    ]
    if fitting and w.dice.random() < 0.6:
        return w.dice.choice(fitting)
    made = w.make(term.kind, shape)
    while not _meet(made.array.dtype, term.array.dtype):
        made = w.make(term.kind, shape)
    return made


def _meet(*dtypes: np.dtype[Any]) -> bool:
    """Tell whether NumPy joins arrays of ``dtypes``; it refuses f16 beside bf16."""
    try:
        np.result_type(*dtypes)
    except TypeError:
        return False
    return True


def cat(w: Writer) -> None:
    term = w.pick(rank=(1, 3))
    axis = w.dice.randrange(term.array.ndim)
    parts = [term, *(_beside(w, term, axis) for _ in range(w.dice.randint(0, 2)))]
    made = w.fd.ops.cat([part.handle for part in parts], axis)
    array = np.concatenate([part.array for part in parts], axis)
    w.keep(made, array, max(part.slack for part in parts))


def joined(name: str, other: str | None = None) -> Callable[[Writer], None]:
    """Return the step of stack and its kin, for tensors of one shape."""

    def step(w: Writer) -> None:
        term = w.pick(rank=(0, 3))
        parts = [term, _beside(w, term, None)]
        w.dice.shuffle(parts)
        made = getattr(w.fd.ops, name)([part.handle for part in parts])
        array = getattr(np, other or name)([part.array for part in parts])
        w.keep(made, array, max(part.slack for part in parts))

    return step


def split(name: str) -> Callable[[Writer], None]:
    """Return the step of split or array_split."""

    def step(w: Writer) -> None:
        term = w.pick(rank=(1, 3))
        axis = w.axis(term)
        n = term.array.shape[axis]
        counts = [k for k in (1, 2, 3, 5, 7) if name == "array_split" or n % k == 0]
        count = w.dice.choice(counts)
        made = getattr(w.fd.ops, name)(term.handle, count, axis)
        arrays = getattr(np, name)(term.array, count, axis)
        for handle, array in zip(made, arrays, strict=True):
            _keep(w, handle, array, term)

    return step


def unstack(w: Writer) -> None:
    shape = [w.dice.choice((2, 3)), w.dice.choice((1, 5))]
    array = w.data.integers(-4, 5, shape).astype(np.float32)
    handle = w.fd.from_array(array, static_sizes=True)
    w.inputs.append(array)
    for made, want in zip(w.fd.ops.unstack(handle, 0), array, strict=True):
        w.keep(made, want)


# -- remaps ------------------------------------------------------------------


def roll(w: Writer) -> None:
    term = w.pick(rank=(1, 3))
    axis = w.axis(term) if w.dice.random() < 0.8 else None
    shift = w.dice.randint(-9, 9)
    made = w.fd.ops.roll(term.handle, w.integer(shift), axis)
    _keep(w, made, np.roll(term.array, shift, axis), term)


def tile(w: Writer) -> None:
    term = w.pick(rank=(0, 2))
    counts = [w.dice.randint(0, 3) for _ in range(w.dice.randint(1, 3))]
    made = w.fd.ops.tile(term.handle, [w.integer(n) for n in counts])
    _keep(w, made, np.tile(term.array, counts), term)


def repeat(w: Writer) -> None:
    term = w.pick(rank=(1, 3))
    axis = w.axis(term) if w.dice.random() < 0.8 else None
    count = w.dice.randint(0, 3)
    made = w.fd.ops.repeat(term.handle, w.integer(count), axis)
    _keep(w, made, np.repeat(term.array, count, axis), term)


# -- gathers -----------------------------------------------------------------


def _index(w: Writer, shape: Sequence[int], extent: int) -> Term:
    dtype = w.dice.choice((np.int32, np.int64, np.uint8))
    low = 0 if dtype is np.uint8 else -extent
    return w.define(np.asarray(w.data.integers(low, extent, tuple(shape)), dtype))


def taken(name: str, rank: int) -> Callable[[Writer], None]:
    """Return the step of take or index_select."""

    def step(w: Writer) -> None:
        term = w.pick(rank=(1, 3), fits=lambda a: a.size > 0)
        axis = w.axis(term)
        shape = [w.dice.choice((1, 4, 6)) for _ in range(w.dice.randint(1, rank))]
        index = _index(w, shape, term.array.shape[axis])
        made = getattr(w.fd.ops, name)(term.handle, index.handle, axis)
        _keep(w, made, np.take(term.array, index.array, axis), term)

    return step


def select(w: Writer) -> None:
    term = w.pick(rank=(1, 4), fits=lambda a: a.size > 0)
    axis = w.axis(term)
    n = term.array.shape[axis]
    number = w.dice.randrange(-n, n)
    if w.dice.random() < 0.3:
        index = _index(w, (), n)
        made, number = w.fd.ops.select(term.handle, index.handle, axis), index.array
    else:
        made = w.fd.ops.select(term.handle, w.integer(number), axis)
    _keep(w, made, np.take(term.array, number, axis), term)


def take_along_axis(w: Writer) -> None:
    term = w.pick(rank=(1, 3), fits=lambda a: a.size > 0)
    axis = w.axis(term)
    shape = [*term.array.shape]
    extent, shape[axis] = shape[axis], w.dice.choice((1, 4))
    index = _index(w, shape, extent)
    made = w.fd.ops.take_along_axis(term.handle, index.handle, axis)
    chosen = np.take_along_axis(term.array, index.array.astype(np.int64), axis)
    _keep(w, made, chosen, term)


def gather(w: Writer) -> None:
    term = w.pick(rank=(1, 3), fits=lambda a: a.size > 0)
    axis = w.dice.randrange(term.array.ndim)
    shape = [w.dice.randint(1, n) for n in term.array.shape]
    shape[axis] = w.dice.choice((1, 4))
    index = _index(w, shape, term.array.shape[axis])
    made = w.fd.ops.gather(term.handle, index.handle, axis)
    cut = [slice(0, None if k == axis else n) for k, n in enumerate(shape)]
    part = term.array[tuple(cut)]
    chosen = np.take_along_axis(part, index.array.astype(np.int64), axis)
    _keep(w, made, chosen, term)


def scatter(w: Writer) -> None:
    term = w.pick(rank=(1, 3), fits=lambda a: a.size > 0)
    axis = w.dice.randrange(term.array.ndim)
    shape = [w.dice.randint(1, n) for n in term.array.shape]
    index = _index(w, shape, term.array.shape[axis])
    made = w.fd.ops.scatter(term.handle, index.handle, term.handle, axis)
    kept = term.array.copy()
    for place in np.ndindex(*shape):
        key = list(place)
        key[axis] = int(index.array[place])
        kept[tuple(key)] = term.array[place]
    _keep(w, made, kept, term)


def embedding(w: Writer) -> None:
    term = w.pick("f", rank=(2, 2), fits=lambda a: a.size > 0)
    index = _index(w, (2, 3), len(term.array))
    made = w.fd.ops.embedding_fwd(index.handle, term.handle)
    _keep(w, made, term.array[index.array], term)


# -- arrays of numbers -------------------------------------------------------


def _dtype(w: Writer) -> Any:
    return np.dtype(w.dice.choice((np.float32, np.int32, np.int64, np.float64)))


def made_of_sizes(name: str) -> Callable[[Writer], None]:
    """Return the step of zeros, ones or full."""

    def step(w: Writer) -> None:
        dtype, sizes = _dtype(w), w.shape(w.dice.randint(0, 3))
        fill = [3] if name == "full" else []
        wanted = [w.integer(n) for n in sizes]
        made = getattr(w.fd.ops, name)(wanted, *fill, DataType(as_dtype(dtype)))
        w.keep(made, getattr(np, name)(sizes, *fill, dtype))

    return step


def like(name: str) -> Callable[[Writer], None]:
    """Return the step of zeros_like, ones_like or full_like."""

    def step(w: Writer) -> None:
        term = w.pick()
        fill = [1] if name == "full_like" else []
        made = getattr(w.fd.ops, name)(term.handle, *fill)
        w.keep(made, getattr(np, name)(term.array, *fill))

    return step


def iota(w: Writer) -> None:
    n, dtype = w.dice.choice((0, 1, 5, 9)), _dtype(w)
    start, step = w.dice.randint(-3, 3), w.dice.randint(-2, 3)
    made = w.fd.ops.iota(w.integer(n), start, step, DataType(as_dtype(dtype)))
    w.keep(made, (start + step * np.arange(n)).astype(dtype))


def linspace(w: Writer) -> None:
    n, endpoint = w.dice.choice((1, 5, 9)), w.dice.random() < 0.5
    made = w.fd.ops.linspace(-1.0, 2.0, w.integer(n), endpoint)
    w.computed(made, np.linspace(-1.0, 2.0, n, endpoint), 0)


def diagonal(name: str) -> Callable[[Writer], None]:
    """Return the step of eye or tri."""

    def step(w: Writer) -> None:
        n, m, k = w.dice.choice((1, 4)), w.dice.choice((3, 5)), w.dice.randint(-2, 2)
        made = getattr(w.fd.ops, name)(w.integer(n), w.integer(m), w.integer(k))
        w.keep(made, getattr(np, name)(n, m, k, np.float32))

    return step


def triangle(name: str) -> Callable[[Writer], None]:
    """Return the step of tril or triu."""

    def step(w: Writer) -> None:
        term = w.pick("bif", rank=(2, 3))
        k = w.dice.randint(-2, 2)
        made = getattr(w.fd.ops, name)(term.handle, w.integer(k))
        _keep(w, made, getattr(np, name)(term.array, k), term)

    return step


STEPS: dict[str, Callable[[Writer], None]] = {
    **{f"atleast_{rank}d": at_least(rank) for rank in (1, 2, 3)},
    **{name: joined(name) for name in ("hstack", "vstack", "dstack", "stack")},
    **{name: split(name) for name in ("split", "array_split")},
    **{name: made_of_sizes(name) for name in ("zeros", "ones", "full")},
    **{name: like(name) for name in ("zeros_like", "ones_like", "full_like")},
    **{name: diagonal(name) for name in ("eye", "tri")},
    **{name: triangle(name) for name in ("tril", "triu")},
    "broadcast": broadcast,
    "broadcast_in_dim": broadcast_in_dim,
    "broadcast_tensors": broadcast_tensors,
    "cat": cat,
    "column_stack": joined("column_stack"),
    "embedding_fwd": embedding,
    "expand": expand,
    "expand_dims": expand_dims,
    "extend": extend,
    "flatten": flatten,
    "flip": flip,
    "gather": gather,
    "scatter": scatter,
    "index_select": taken("index_select", 1),
    "iota": iota,
    "linspace": linspace,
    "matrix_transpose": matrix_transpose,
    "moveaxis": moveaxis,
    "pad": pad,
    "permute": permute,
    "repeat": repeat,
    "reshape": reshape,
    "roll": roll,
    "select": select,
    "shape": shape,
    "size": size,
    "slice": slice_step,
    "squeeze": squeeze,
    "stride_order": stride_order,
    "swapaxes": swapaxes,
    "take": taken("take", 2),
    "take_along_axis": take_along_axis,
    "tile": tile,
    "unstack": unstack,
}
