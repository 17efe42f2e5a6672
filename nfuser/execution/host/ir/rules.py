# SPDX-License-Identifier: Apache-2.0
"""Which shape and dtype each operation of a host program gives.

Dtypes are those that NumPy itself resolves. Extents are compared as expressions: two
that differ in form may still be equal, and are compared again when the program runs.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from nfuser.compiler.dtypes import DType, as_dtype
from nfuser.compiler.ir.scalars.functions import maximum
from nfuser.compiler.ir.scalars.scalar import Const, as_scalar, floor_divide
from nfuser.compiler.ir.scalars.symbols import knob
from nfuser.compiler.ir.tensor import TensorView, tensor
from nfuser.errors import ArgumentError, AxisError, DTypeError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import SourceLine
    from nfuser.execution.host.ir.statements import Operand

Shape: TypeAlias = "tuple[Scalar, ...]"
Form: TypeAlias = "tuple[Shape, DType]"
STREAMS = knob("streams")  # how many an evaluator has
RANK = knob("rank")  # of those that run the program, the one that this is
FOLDS = ("sum", "prod", "max", "min", "any", "all")


def function(name: str, count: int) -> np.ufunc:
    """Return NumPy's function of ``count`` operands that is called ``name``."""
    found: Any = getattr(np, name, None)
    if isinstance(found, np.ufunc) and (found.nin, found.nout) == (count, 1):
        return found
    kind = "one operand" if count == 1 else "two operands"
    message = f"{name} is no elementwise function of NumPy with {kind}"
    raise ArgumentError(message)


def axis_of(axis: int, ndim: int, name: str) -> int:
    """Return ``axis`` counted from the front."""
    if -ndim <= axis < ndim:
        return axis % ndim
    message = f"{name}: axis {axis} lies outside an array of {ndim} axes"
    raise AxisError(message)


def differ(a: Scalar, b: Scalar) -> bool:
    """Tell whether two extents cannot be equal."""
    return isinstance(a, Const) and isinstance(b, Const) and a is not b


def meet(shapes: Sequence[Shape], name: str) -> Shape:
    """Return the shape in which operands of ``name`` meet."""
    one, result = as_scalar(1), list[Any]()
    for back in range(max(map(len, shapes)), 0, -1):
        extents = [s[-back] for s in shapes if len(s) >= back]
        wide = [x for x in extents if x is not one] or [one]
        known = [x for x in wide if isinstance(x, Const)]
        if any(differ(a, b) for a in known for b in known):
            message = f"{name}: operands of shapes {_listed(shapes)} do not fit"
            raise ShapeError(message)
        result.append((known or wide)[0])
    return tuple(result)


def _listed(shapes: Sequence[Shape]) -> str:
    spelled = (
        [x.value if isinstance(x, Const) else "?" for x in shape] for shape in shapes
    )
    return " and ".join(map(str, spelled))


def pointwise(name: str, operands: Sequence[Operand]) -> Form:
    """Return what a unary or binary function gives."""
    tensors = [x for x in operands if isinstance(x, TensorView)]
    if not tensors:
        message = f"{name}: expected a tensor among the operands"
        raise ArgumentError(message)
    return meet([t.shape for t in tensors], name), loop_types(name, operands)[-1]


def loop_types(name: str, operands: Sequence[Operand]) -> tuple[DType, ...]:
    """Return in which dtypes NumPy computes, operands first, the result last."""
    kinds = tuple(
        x.dtype if isinstance(x, TensorView) else _python_type(x) for x in operands
    )
    return _resolved(name, kinds)


def _python_type(x: Any) -> type:
    return type(x) if isinstance(x, bool | int | float | complex) else int


@cache
def _resolved(name: str, kinds: tuple[Any, ...]) -> tuple[DType, ...]:
    given = tuple(k.numpy if isinstance(k, DType) else k for k in kinds)
    given = tuple(np.dtype(bool) if k is bool else k for k in given)
    try:
        found = function(name, len(kinds)).resolve_dtypes(cast("Any", (*given, None)))
    except TypeError as error:
        listed = " and ".join(
            str(k) if isinstance(k, DType) else k.__name__ for k in kinds
        )
        message = f"{name}: NumPy does not take {listed}: {error}"
        raise DTypeError(message) from None
    return tuple(as_dtype(d) for d in found)


def reduce(name: str, source: TensorView, axes: Sequence[int]) -> Form:
    """Return what folding ``axes`` gives."""
    if name not in FOLDS:
        message = f"{name} is none of the reductions {', '.join(FOLDS)}"
        raise ArgumentError(message)
    gone = [axis_of(axis, source.ndim, name) for axis in axes]
    kept = tuple(x for k, x in enumerate(source.shape) if k not in gone)
    return kept, _folded(name, source.dtype)


@cache
def _folded(name: str, dtype: DType) -> DType:
    return as_dtype(getattr(np, name)(np.ones(1, dtype.numpy)).dtype)


def matmul(lhs: TensorView, rhs: TensorView) -> Form:
    """Return what NumPy's matmul gives."""
    a, b = lhs.shape, rhs.shape
    if not a or not b:
        message = "matmul: an operand has no axes; multiply it elementwise"
        raise ShapeError(message)
    inner = b[-min(len(b), 2)]
    if differ(a[-1], inner):
        message = f"matmul: operands of shapes {_listed([a, b])} do not fit"
        raise ShapeError(message)
    batch = meet([a[:-2], b[:-2]], "matmul") if len(a) > 2 or len(b) > 2 else ()
    rows = a[-2:-1] if len(a) > 1 else ()
    columns = b[-1:] if len(b) > 1 else ()
    dtype = np.result_type(lhs.dtype.numpy, rhs.dtype.numpy)
    return (*batch, *rows, *columns), as_dtype(dtype)


def select(source: TensorView, axis: int) -> Form:
    """Return what is left without ``axis``."""
    gone = axis_of(axis, source.ndim, "select")
    return tuple(x for k, x in enumerate(source.shape) if k != gone), source.dtype


def slices(
    source: TensorView,
    starts: Sequence[Scalar],
    stops: Sequence[Scalar],
    steps: Sequence[int],
) -> Form:
    """Return what a slice of every axis gives."""
    if not len(starts) == len(stops) == len(steps) == source.ndim:
        message = f"slice: expected a span for each of {source.ndim} axes"
        raise ShapeError(message)
    if any(step < 1 for step in steps):
        message = f"slice: steps are at least 1, found {tuple(steps)}"
        raise ArgumentError(message)
    triples = zip(starts, stops, steps, strict=True)
    shape = (_count(a, b, step) for a, b, step in triples)
    return tuple(shape), source.dtype


def _count(start: Scalar, stop: Scalar, step: int) -> Scalar:
    length = stop - start
    if step != 1:
        length = floor_divide(length + (step - 1), step)
    return maximum(length, 0) if isinstance(length, Const) else length


def permute(source: TensorView, order: Sequence[int]) -> Form:
    """Return what the axes in another order give."""
    if sorted(order) != list(range(source.ndim)):
        message = f"permute: {tuple(order)} is no order of {source.ndim} axes"
        raise AxisError(message)
    return tuple(source.shape[k] for k in order), source.dtype


# What an exchange may be: how many axes it names, and how many ends it has.
_EXCHANGES = {
    "allgather": (1, 0),
    "all_to_all": (2, 0),
    "gather": (1, 1),
    "scatter": (1, 1),
    "broadcast": (0, 1),
    "send_receive": (0, 2),
}
_COMPLETED = {"allreduce": (0, 0), "reduce_scatter": (1, 0), "reduce": (0, 1)}


def fold_of(kind: str) -> str:
    """Return the reduction that an exchange completes, or nothing.

    >>> fold_of("reduce_scatter_max"), fold_of("allgather")
    ('max', '')
    """
    verb, _, fold = kind.rpartition("_")
    return fold if verb in _COMPLETED and fold in FOLDS else ""


def exchange(
    kind: str,
    source: TensorView,
    axes: Sequence[int],
    ends: Sequence[int],
    ranks: int | None,
) -> Form:
    """Return what each of ``ranks`` ranks gets; axes of unknown extent are kept."""
    fold = fold_of(kind)
    wanted = _COMPLETED[kind[: -len(fold) - 1]] if fold else _EXCHANGES.get(kind)
    if wanted is None:
        message = f"{kind} is no exchange between ranks"
        raise ArgumentError(message)
    if (len(axes), len(ends)) != wanted or len(set(axes)) < len(axes):
        message = f"{kind}: names {wanted[0]} axes and {wanted[1]} ranks"
        raise ArgumentError(message)
    if any(not 0 <= end < (ranks or end + 1) for end in ends):
        message = f"{kind}: no rank {max(ends)} among {ranks}"
        raise ArgumentError(message)
    if any(not 0 <= axis < source.ndim for axis in axes):
        message = f"{kind}: axes {tuple(axes)} of an array of {source.ndim} axes"
        raise AxisError(message)
    shape = list(source.shape)
    if ranks is not None and axes:
        if kind in ("allgather", "gather", "all_to_all"):
            shape[axes[-1]] *= ranks
        if kind not in ("allgather", "gather"):
            shape[axes[0]] = parts(shape[axes[0]], ranks, kind)
    return tuple(shape), source.dtype


def parts(extent: Scalar, ranks: int, name: str) -> Scalar:
    """Return the extent of one of ``ranks`` equal parts."""
    if isinstance(extent, Const) and extent.value % ranks:
        message = f"{name}: size {extent.value} has no {ranks} equal parts"
        raise ShapeError(message)
    return floor_divide(extent, ranks)


def result(
    name: str, form: Form, out: TensorView | None, line: SourceLine | None
) -> TensorView:
    """Return ``out``, which must have this form, or a new tensor."""
    shape, dtype = form
    if out is None:
        return tensor(shape, dtype, line)
    if out.dtype is not dtype:
        message = f"{name}: expected an output of {dtype}, found {out.dtype}"
        raise DTypeError(message)
    if not fits(shape, out.shape):
        message = f"{name}: the output has another shape than the result"
        raise ShapeError(message)
    return out


def fits(shape: Sequence[Scalar], other: Sequence[Scalar]) -> bool:
    """Tell whether two shapes may be the same."""
    pairs = zip(shape, other, strict=False)
    return len(shape) == len(other) and not any(differ(a, b) for a, b in pairs)
