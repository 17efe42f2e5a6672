# SPDX-License-Identifier: Apache-2.0
"""Which memory order outputs get: the one NumPy's K order would give them.

Strides of every tensor are worked out as if each operation ran by itself; only their
order matters, so inner tensors need no memory.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from nfuser.compiler.domains.reshape import reshape_groups
from nfuser.compiler.ir.expr import (
    Argument,
    Assign,
    Called,
    Concatenate,
    Constant,
    Expand,
    ExpandDims,
    Expr,
    FromScalar,
    Iota,
    Loop,
    Matmul,
    Pad,
    PartialSum,
    Permute,
    Pointwise,
    Reduce,
    ReduceOp,
    Remap,
    Reshape,
    Scan,
    Scatter,
    Slice,
    Sort,
    Squeeze,
    SumTo,
    Take,
    results,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nfuser.compiler.ir.expr import View
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.point_op import MemoryOrder
    from nfuser.compiler.ir.tensor import TensorView

Strides: TypeAlias = "tuple[int, ...]"


def strides_of_all(
    fusion: Fusion,
    shapes: Mapping[TensorView, tuple[int, ...]],
    given: Mapping[TensorView, Strides],
) -> dict[TensorView, Strides]:
    """Return strides for every tensor; ``given`` are those of the arguments."""
    found: dict[TensorView, Strides] = {}
    for expr in fusion.exprs:
        if isinstance(expr, Loop):
            found.update(_strides_after(expr, shapes, found))
            continue
        if isinstance(expr, Called):
            for t in expr.results:
                found[t] = dense(shapes[t], range(t.ndim - 1, -1, -1))
            continue
        made = _strides(expr, shapes, found, given)
        found.update(dict.fromkeys(results(expr), made))
    return found


def _strides_after(
    expr: Loop,
    shapes: Mapping[TensorView, tuple[int, ...]],
    found: Mapping[TensorView, Strides],
) -> dict[TensorView, Strides]:
    """Return those of a loop: what is carried keeps its order, the rest is in rows."""
    made: dict[TensorView, Strides] = {}
    for before, _, result in expr.pairs:
        whole = _stretch(before, found[before], shapes, shapes[before])
        made[result] = dense(shapes[result], axis_order(result.ndim, [whole]))
    for _, result in expr.added:
        made[result] = dense(shapes[result], range(result.ndim - 1, -1, -1))
    return made


def _strides(
    expr: Expr,
    shapes: Mapping[TensorView, tuple[int, ...]],
    found: Mapping[TensorView, Strides],
    given: Mapping[TensorView, Strides],
) -> Strides:
    match expr:
        case Argument() | Constant() | FromScalar():
            return given.get(expr.result, ())
        case Iota():
            return (1,)
        case Pointwise(op, operands, result):
            shape = shapes[result]
            stretched = [_stretch(t, found[t], shapes, shape) for t in operands]
            return dense(shape, _ordered(op.order, shape, stretched))
        case Reduce(ReduceOp.ARGMAX | ReduceOp.ARGMIN, _, made, _):
            # NumPy moves the axis to the end and copies: these come in C order.
            shape = shapes[made[0]]
            return dense(shape, range(len(shape) - 1, -1, -1))
        case Scan(_, source, result) | Sort(source, result, _, False):
            whole = _stretch(source, found[source], shapes, shapes[source])
            return dense(shapes[result], axis_order(result.ndim, [whole]))
        case Matmul(lhs, rhs, result):
            return _strides_of_product(lhs, rhs, shapes[result], shapes, found)
        case Pad(source, _, result):
            return _like(shapes[result], shapes[source], found[source])
        case Concatenate(parts, result):
            own = [(shapes[t], found[t]) for t in parts]
            return dense(shapes[result], _order_beside(result.ndim, own))
        case Take(source, _, result, leads=True):
            return dense(shapes[result], _index_first(expr, shapes[source], found))
        case (
            Take(_, _, result)
            | Sort(_, result)
            | Scatter(result=result)
            | Called(result=result)
            | PartialSum(_, result)
        ):
            return dense(shapes[result], range(result.ndim - 1, -1, -1))
        case Reduce() | SumTo():
            source = expr.source
            whole = _stretch(source, found[source], shapes, shapes[source])
            order = axis_order(source.ndim, [whole])
            kept = [k for k in range(source.ndim) if k not in expr.axes]
            order = [kept.index(k) for k in order if k in kept]
            return dense(shapes[results(expr)[0]], order)
        case _:
            assert not isinstance(expr, Loop)
            return _view_strides(expr, shapes, found)


def _strides_of_product(
    lhs: TensorView,
    rhs: TensorView,
    shape: tuple[int, ...],
    shapes: Mapping[TensorView, tuple[int, ...]],
    found: Mapping[TensorView, Strides],
) -> Strides:
    """Return matrices in C order, stacked in the K order of the operands' stacks."""
    stacks = max(lhs.ndim, rhs.ndim, 2) - 2
    own = [
        (0,) * (stacks - max(t.ndim - 2, 0))
        + tuple(
            0 if n == 1 else s
            for n, s in zip(shapes[t][:-2], found[t][:-2], strict=True)
        )
        for t in (lhs, rhs)
    ]
    cores = range(len(shape) - 1, stacks - 1, -1)
    return dense(shape, [*cores, *axis_order(stacks, own)])


def _view_strides(
    expr: View | Assign,
    shapes: Mapping[TensorView, tuple[int, ...]],
    found: Mapping[TensorView, Strides],
) -> Strides:
    source, result = expr.source, expr.result
    own = found[source]
    match expr:
        case Expand():
            return _stretch(source, own, shapes, shapes[result])
        case ExpandDims(_, _, axes):
            rest = iter(own)
            return tuple(0 if k in axes else next(rest) for k in range(result.ndim))
        case Squeeze(_, _, axes):
            return tuple(s for k, s in enumerate(own) if k not in axes)
        case Assign():
            return own
        case Permute(_, _, order):
            return tuple(own[k] for k in order)
        case Slice(_, _, _, steps):
            return tuple(s * step for s, step in zip(own, steps, strict=True))
        case Reshape():
            return _reshaped(own, shapes[source], shapes[result])
        case Remap():
            if shapes[result] == shapes[source]:
                whole = _stretch(source, own, shapes, shapes[source])
                return dense(shapes[result], axis_order(result.ndim, [whole]))
            return _like(shapes[result], shapes[source], own)


def _index_first(
    expr: Take, shape: tuple[int, ...], found: Mapping[TensorView, Strides]
) -> list[int]:
    """Return the axes, fastest first: those kept in K order, then the index's own."""
    source, count = expr.source, expr.index.ndim
    own = tuple(0 if n == 1 else s for n, s in zip(shape, found[source], strict=True))
    kept = (k for k in axis_order(source.ndim, [own]) if k != expr.axis)
    moved = [k if k < expr.axis else k + count - 1 for k in kept]
    return moved + list(range(expr.axis + count - 1, expr.axis - 1, -1))


def _ordered(
    order: MemoryOrder, shape: tuple[int, ...], operands: Sequence[Strides]
) -> Sequence[int]:
    """Return the axes, fastest first, of a result in memory order ``order``."""
    rank = len(shape)
    if isinstance(order, tuple):
        return order
    if order == "K":
        return axis_order(rank, operands)
    if order == "like":
        return _order_like(shape, operands[0])
    if order == "A":
        forward = [_is_dense(shape, s, range(rank)) for s in operands]
        backward = [_is_dense(shape, s, range(rank - 1, -1, -1)) for s in operands]
        order = "F" if all(forward) and not all(backward) else "C"
    return range(rank) if order == "F" else range(rank - 1, -1, -1)


def _order_like(shape: tuple[int, ...], strides: Strides) -> Sequence[int]:
    """Return the axes, fastest first, of a copy of an array with these strides."""
    backward = range(len(shape) - 1, -1, -1)
    if _is_dense(shape, strides, backward):
        return backward
    if _is_dense(shape, strides, backward[::-1]):
        return backward[::-1]
    return sorted(backward, key=lambda axis: abs(strides[axis]))


def _order_beside(
    rank: int, parts: Sequence[tuple[tuple[int, ...], Strides]]
) -> list[int]:
    """Return the axes, fastest first, of what NumPy makes of joined arrays.

    An insertion sort from the slowest axis on; a part says nothing of an axis of size
    1, and where parts disagree, C order wins.
    """
    order = list(range(rank))
    for start in range(1, rank):
        axis = order[start]
        place = start
        for k in range(start - 1, -1, -1):
            other = order[k]
            is_later = [
                abs(strides[axis]) > abs(strides[other])
                for shape, strides in parts
                if shape[axis] != 1 and shape[other] != 1
            ]
            if is_later and not all(is_later):
                break
            if is_later:
                place = k
        order.insert(place, order.pop(start))
    return order[::-1]


def _is_dense(shape: tuple[int, ...], strides: Strides, axes: Sequence[int]) -> bool:
    """Tell whether an array fills memory with ``axes`` from the fastest on."""
    wanted = dense(shape, axes)
    return 0 in shape or all(
        n == 1 or s == w for n, s, w in zip(shape, strides, wanted, strict=True)
    )


def _stretch(
    tensor: TensorView,
    strides: Strides,
    shapes: Mapping[TensorView, tuple[int, ...]],
    target: tuple[int, ...],
) -> Strides:
    own = shapes[tensor]
    added = (0,) * (len(target) - len(own))
    return added + tuple(0 if n == 1 else s for n, s in zip(own, strides, strict=True))


def _like(shape: tuple[int, ...], own: tuple[int, ...], strides: Strides) -> Strides:
    """Return C order, or Fortran order where the source has it and C order not."""
    order = range(len(shape))
    c_order = dense(own, order[::-1])
    is_fortran = strides == dense(own, order) and strides != c_order
    return dense(shape, order if is_fortran else order[::-1])


def _reshaped(strides: Strides, old: tuple[int, ...], new: tuple[int, ...]) -> Strides:
    """Return the strides of a view with the ``new`` sizes, or C order without one."""
    fresh = dense(new, range(len(new) - 1, -1, -1))
    if 0 in old:
        return fresh
    wide = [k for k, n in enumerate(old) if n != 1]
    found = [0] * len(new)
    for left, right in reshape_groups([old[k] for k in wide], new):
        own = [wide[k] for k in left]
        if any(strides[a] != strides[b] * old[b] for a, b in pairwise(own)):
            return fresh
        step = strides[own[-1]] if own else 0
        for axis in reversed(right):
            found[axis] = step
            step *= new[axis]
    return tuple(found)


def axis_order(rank: int, operands: Sequence[Strides]) -> list[int]:
    """Return the axes, fastest first, in the order NumPy's iterator would run them.

    An insertion sort by magnitude of strides; where operands disagree, C order wins.
    """
    order = list(range(rank - 1, -1, -1))
    for start in range(1, rank):
        axis = order[start]
        place = start
        for k in range(start - 1, -1, -1):
            verdict = _should_swap(axis, order[k], operands)
            if verdict is None:
                continue
            if not verdict:
                break
            place = k
        order.insert(place, order.pop(start))
    return order


def _should_swap(axis: int, other: int, operands: Sequence[Strides]) -> bool | None:
    verdict: bool | None = None
    for strides in operands:
        a, b = abs(strides[axis]), abs(strides[other])
        if a == 0 or b == 0:
            continue
        if b <= a:
            return False
        verdict = True
    return verdict


def dense(shape: tuple[int, ...], order: Sequence[int]) -> Strides:
    """Return strides that fill memory, axes in ``order`` (fastest first).

    >>> dense((2, 3), [1, 0]), dense((2, 3), [0, 1])
    ((3, 1), (1, 2))
    """
    strides = [0] * len(shape)
    step = 1
    for axis in order:
        strides[axis] = step
        step *= max(shape[axis], 1)
    return tuple(strides)
