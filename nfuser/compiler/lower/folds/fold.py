# SPDX-License-Identifier: Apache-2.0
"""What a reduction holds while it folds: initial state, how an element joins it.

A state is one value or several. To add a reduction, say here how it begins, how an
element becomes a state, how two states become one, and what the result is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import Reduce, ReduceOp, Scan
from nfuser.compiler.lower.kernel.kernel_ir import Call, IndexValue, Number, Value, Var
from nfuser.errors import VerifyError

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.ir.scalars.scalar import Scalar

State: TypeAlias = "list[Value]"
Emit: TypeAlias = "Callable[[Value], Var]"

_ARGS = (ReduceOp.ARGMAX, ReduceOp.ARGMIN)
_EXPONENTIALS = {
    ReduceOp.EXPONENTIALS: "exp",
    ReduceOp.EXPONENTIALS_NEAR: "exp_near",
}
_COMBINERS = {
    ReduceOp.SUM: "add",
    ReduceOp.PROD: "multiply",
    ReduceOp.MAX: "maximum",
    ReduceOp.ARGMAX: "maximum",
    ReduceOp.MIN: "minimum",
    ReduceOp.ARGMIN: "minimum",
    ReduceOp.FMAX: "fmax",
    ReduceOp.FMIN: "fmin",
    ReduceOp.ANY: "bit_or",
    ReduceOp.ALL: "bit_and",
}
_REPEATABLE = (
    *(ReduceOp.MAX, ReduceOp.MIN, ReduceOp.FMAX, ReduceOp.FMIN),
    *(ReduceOp.ANY, ReduceOp.ALL),
)
_LOG2_E = float(np.log2(np.e))
_LOWEST = float(np.finfo(np.float32).min)
_REASSOCIATED = {"add": "sum_reassoc", "multiply": "product_reassoc"}
_OF_NUMBERS = {"maximum": "larger_number", "minimum": "smaller_number"}


def state_dtypes(reduce: Reduce, *, compensated: bool = False) -> list[DType]:
    """Return the dtype of each value of the state."""
    own = reduce.source.dtype.compute
    if compensated and reduce.op is ReduceOp.SUM and own.is_float:
        return [own, own]
    if reduce.op in _EXPONENTIALS:
        return [own, DType.F64]
    return [own, DType.I64] if reduce.op in _ARGS else [own]


def is_of_exponentials(reduce: Reduce | Scan) -> bool:
    """Tell whether the state is the largest element, and a sum relative to it."""
    return reduce.op in _EXPONENTIALS


def finds_place(reduce: Reduce) -> bool:
    """Tell whether the state is the best element, and where it is."""
    return reduce.op in _ARGS


def may_repeat(reduce: Reduce) -> bool:
    """Tell whether an element may be folded twice, and nothing changes."""
    return reduce.op in _REPEATABLE


def exponential(
    reduce: Reduce, element: Value, largest: Value, *, has_near: bool
) -> Value:
    """Return what one of few elements adds to their sum, whose largest is known.

    The largest adds 1. Beside it a power of 2 is good enough that is 0 in place of what
    is subnormal, and whose exponent is rounded: by more, the less the power is.
    """
    dtype = element.dtype
    distance = Call("subtract", (element, largest), dtype)
    if has_near:
        exponent = Call("multiply", (distance, Number(_LOG2_E, dtype)), dtype)
        return Call("exp2_near", (exponent,), dtype)
    return Call(_EXPONENTIALS[reduce.op], (distance,), dtype)


def initial(reduce: Reduce | Scan) -> list[Number]:
    """Return the state of no elements."""
    dtype = reduce.source.dtype.compute
    largest = np.iinfo(np.int64).max
    match reduce.op:
        case ReduceOp.SUM | ReduceOp.ANY:
            return [_number(0, dtype)]
        case ReduceOp.PROD | ReduceOp.ALL:
            return [_number(1, dtype)]
        case ReduceOp.MAX:
            return [_extreme(dtype, -1)]
        case ReduceOp.MIN:
            return [_extreme(dtype, 1)]
        case ReduceOp.FMAX | ReduceOp.FMIN:
            return [Number(float("nan"), dtype)]
        case ReduceOp.ARGMAX:
            return [_extreme(dtype, -1), Number(largest, DType.I64)]
        case ReduceOp.ARGMIN:
            return [_extreme(dtype, 1), Number(largest, DType.I64)]
        case ReduceOp.EXPONENTIALS | ReduceOp.EXPONENTIALS_NEAR:
            # Not the infinity: its distance from itself is no number.
            return [Number(_LOWEST, dtype), _number(0, DType.F64)]
        case ReduceOp.MOMENTS:
            message = "moments must be expanded by the schedule"
            raise VerifyError(message)


def _number(number: int, dtype: DType) -> Number:
    if dtype.is_bool:
        return Number(bool(number), dtype)
    return Number(float(number) if dtype.is_float else number, dtype)


def _extreme(dtype: DType, sign: int) -> Number:
    if dtype.is_float:
        return Number(sign * float("inf"), dtype)
    if dtype.is_bool:
        return Number(sign > 0, dtype)
    limits = np.iinfo(cast("np.dtype[np.integer]", dtype.numpy))
    return Number(int(limits.max if sign > 0 else limits.min), dtype)


def is_compensated(reduce: Reduce | Scan, state: State) -> bool:
    """Tell whether ``state`` carries the rounding errors of a sum beside it."""
    return reduce.op is ReduceOp.SUM and len(state) == 2


def lifted(reduce: Reduce, element: Value, index: Scalar) -> State:
    """Return the state of one element; ``index`` is its place along the axes."""
    if reduce.op in _ARGS:
        return [element, IndexValue(index, DType.I64)]
    if reduce.op in _EXPONENTIALS:
        return [element, Number(1.0, element.dtype)]
    return [element]


def combined(
    reduce: Reduce | Scan, a: State, b: State, emit: Emit, *, reassociate: bool
) -> State:
    """Return the state of what ``a`` and ``b`` hold together."""
    if reduce.op in _ARGS:
        return _better(reduce, a, b, emit)
    if is_compensated(reduce, a):
        return _two_sum(a, b, emit)
    if exp := _EXPONENTIALS.get(reduce.op):
        return _rescaled(exp, a, b, emit)
    dtype = a[0].dtype
    name = joiner(reduce, dtype, reassociate=reassociate)
    return [Call(name, (a[0], b[0]), dtype)]


def joiner(reduce: Reduce | Scan, dtype: DType, *, reassociate: bool) -> str:
    """Return the primitive that makes one of the first values of two states.

    Where it is free to ``reassociate``, places are looked for among numbers alone.
    """
    name = _COMBINERS[reduce.op]
    if dtype.is_bool:
        name = {"maximum": "bit_or", "minimum": "bit_and"}.get(name, name)
    if reassociate and dtype.is_float:
        others = _OF_NUMBERS if reduce.op in _ARGS else _REASSOCIATED
        name = others.get(name, name)
    return name


def _two_sum(a: State, b: State, emit: Emit) -> State:
    """Add, and keep exactly what rounding took away."""
    dtype = a[0].dtype

    def add(x: Value, y: Value) -> Var:
        return emit(Call("add", (x, y), dtype))

    def subtract(x: Value, y: Value) -> Var:
        return emit(Call("subtract", (x, y), dtype))

    total = add(a[0], b[0])
    shadow = subtract(total, a[0])
    lost = add(subtract(a[0], subtract(total, shadow)), subtract(b[0], shadow))
    kept = add(a[1], lost)
    return [total, add(kept, b[1]) if len(b) == 2 else kept]


def _rescaled(exp: str, a: State, b: State, emit: Emit) -> State:
    """Join sums of exponentials, of distances from the largest element of each.

    The sum with the smaller element shrinks: one exponential, whichever it is.
    """
    narrow, wide = a[0].dtype, a[1].dtype

    def cast(x: Value) -> Value:
        return x if x.dtype is wide else Call(f"to_{wide}", (x,), wide)

    distance = emit(Call("subtract", (b[0], a[0]), narrow))
    below = Call("negative", (Call("absolute", (distance,), narrow),), narrow)
    factor = cast(Call(exp, (below,), narrow))
    grows = emit(Call("greater", (distance, Number(0.0, narrow)), DType.BOOL))
    other = cast(b[1])
    shrinking = emit(Call("select", (grows, a[1], other), wide))
    staying = emit(Call("select", (grows, other, a[1]), wide))
    product = Call("multiply", (shrinking, factor), wide)
    return [
        Call("maximum", (a[0], b[0]), narrow),
        emit(Call("add", (product, staying), wide)),
    ]


def _better(reduce: Reduce | Scan, a: State, b: State, emit: Emit) -> State:
    """Keep the better element; of equals, and of NaNs, the first."""
    chosen = emit(is_better(reduce, a, b))
    return [
        Call("select", (chosen, new, old), old.dtype)
        for old, new in zip(a, b, strict=True)
    ]


def is_better(reduce: Reduce | Scan, a: State, b: State) -> Value:
    """Return whether ``b`` goes before ``a``: the first of equals, and of NaNs."""
    wins = "greater" if reduce.op is ReduceOp.ARGMAX else "less"

    def bits(op: str, *operands: Value) -> Value:
        return Call(op, operands, DType.BOOL)

    earlier = bits("less", b[1], a[1])
    if a[0].dtype.is_bool:
        # True beats False; ordering of bool is that of its bits.
        first, second = (b[0], a[0]) if wins == "greater" else (a[0], b[0])
        better = bits("bit_and", first, bits("invert", second))
    else:
        better = bits(wins, b[0], a[0])
    ties = bits("bit_and", bits("equal", b[0], a[0]), earlier)
    take = bits("bit_or", better, ties)
    if a[0].dtype.is_float:
        fresh = bits("bit_or", bits("equal", a[0], a[0]), earlier)
        is_nan = bits("not_equal", b[0], b[0])
        holds_nan = bits("equal", a[0], a[0])
        take = bits(
            "bit_or", bits("bit_and", take, holds_nan), bits("bit_and", is_nan, fresh)
        )
    return take


def result(reduce: Reduce, state: State) -> Value:
    """Return what the finished state stands for."""
    if is_compensated(reduce, state):
        total, lost = state
        both = Call("add", (total, lost), total.dtype)
        # Where the sum is infinite, what it lost is not a number.
        is_finite = Call("isfinite", (lost,), DType.BOOL)
        return Call("select", (is_finite, both, total), total.dtype)
    if reduce.op in _EXPONENTIALS:
        largest, total = state
        near = Call("to_f32", (total,), largest.dtype)
        # No number if the largest is infinite, as its distance from itself is; nothing
        # has been added where all are infinitely small.
        undefined = Call("subtract", (largest, largest), largest.dtype)
        nothing = Call("equal", (total, Number(0.0, total.dtype)), DType.BOOL)
        sound = Call("add", (near, undefined), largest.dtype)
        nan = Number(float("nan"), largest.dtype)
        return Call("select", (nothing, nan, sound), largest.dtype)
    return state[-1]
