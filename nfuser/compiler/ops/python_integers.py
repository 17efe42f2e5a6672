# SPDX-License-Identifier: Apache-2.0
"""Python integers beside an integer array whose dtype may not hold them.

Arithmetic refuses such a number (``Builder.convert``). Comparisons answer by value,
``clip`` holds to the dtype's own limits, and ``where`` wraps. What a run-time number
needs for that the host works out in each call, so no other value traces again. What
branches and loops compute is looked at where it is, unless it is known to fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

import nfuser.compiler.ir.scalars.functions as scalar_functions
from nfuser.compiler.dtypes import DType, check_fits
from nfuser.compiler.ir.expr import Called, results
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.interval import interval
from nfuser.compiler.ir.tensor import TensorView
from nfuser.compiler.ops.loops.index_ranges import Ranges

if TYPE_CHECKING:
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ops.builder import Builder, Operand
    from nfuser.compiler.ops.loops.index_ranges import Range

_WHERE_BELOW = ("not_equal", "less", "less_equal")
_WHERE_ABOVE = ("not_equal", "greater", "greater_equal")


def limits_of(dtype: DType) -> tuple[int, int]:
    """Return the least and the largest integer of ``dtype``."""
    limits = np.iinfo(dtype.numpy.name)
    return int(limits.min), int(limits.max)


def is_python_integer(x: Operand, b: Builder) -> TypeGuard[int | Scalar]:
    """Tell whether ``x`` is a Python integer, known or of the call."""
    return b.type_of(x) is int and not isinstance(x, TensorView)


def is_integer_array(x: Operand, b: Builder) -> TypeGuard[TensorView]:
    """Tell whether ``x`` has an integer dtype of its own."""
    return isinstance(x, TensorView) and x.dtype.is_integer and x not in b.weak


def compare(b: Builder, name: str, x: TensorView, y: int | Scalar) -> TensorView:
    """Compare each element with ``y`` by value, also where the dtype lacks it."""
    low, high = limits_of(x.dtype)
    if isinstance(y, int):
        if low <= y <= high:
            return b.point(name, x, b.convert(y, x.dtype))
        answer = name in (_WHERE_BELOW if y > high else _WHERE_ABOVE)
        found = b.constant(answer, DType.BOOL)
        return b.point("select", b.point("equal", x, x), found, found)
    between = interval(y)
    if between and low <= between[0] and between[1] <= high:
        return b.point(name, x, b.from_scalar(y, x.dtype))
    near = scalar_functions.maximum(scalar_functions.minimum(y, high), low)
    compared = b.point(name, x, b.from_scalar(near, x.dtype))
    below, above = scalar_functions.less(y, low), scalar_functions.less(high, y)
    outside = 1 - scalar_functions.equal(near, y)
    # The nearest number that the dtype holds gives all answers but these.
    joint, flag = {
        "equal": ("bit_and", 1 - outside),
        "not_equal": ("bit_or", outside),
        "less": ("bit_or", above),
        "less_equal": ("bit_and", 1 - below),
        "greater": ("bit_or", below),
        "greater_equal": ("bit_and", 1 - above),
    }[name]
    return b.point(joint, compared, b.from_scalar(flag, DType.BOOL))


def lower_bound(b: Builder, x: Operand, low: Operand, dtype: DType) -> Operand:
    """Return the bound that ``clip`` takes for ``low``, in ``dtype``.

    What no number of ``x`` lies below is no bound at all, as in NumPy.
    """
    if not is_integer_array(x, b):
        return low
    least, none = limits_of(x.dtype)[0], _extremes(dtype)[0]
    if _is_computed(low, b):
        return _bound(b, "greater_equal", low, least, none, dtype)
    if not is_python_integer(low, b):
        return low
    return scalar_functions.select(scalar_functions.less(least, low), low, none)


def upper_bound(b: Builder, x: Operand, high: Operand, dtype: DType) -> Operand:
    """Return the bound that ``clip`` takes for ``high``, in ``dtype``."""
    if not is_integer_array(x, b):
        return high
    largest, none = limits_of(x.dtype)[1], _extremes(dtype)[1]
    if _is_computed(high, b):
        return _bound(b, "less_equal", high, largest, none, dtype)
    if not is_python_integer(high, b):
        return high
    return scalar_functions.select(scalar_functions.less(high, largest), high, none)


def _is_computed(x: Operand, b: Builder) -> TypeGuard[TensorView]:
    """Tell whether ``x`` is an integer of Python's that a branch or a loop computes."""
    if b.narrow is None or not isinstance(x, TensorView):
        return False
    return b.weak.get(x) is int


def _bound(
    b: Builder, name: str, x: TensorView, limit: int, none: int, dtype: DType
) -> TensorView:
    """Return ``x`` in ``dtype`` where it is on this side of a limit, else no bound."""
    low, high = limits_of(x.dtype)
    held = b.constant(min(max(limit, low), high), x.dtype)
    is_within = b.point(name, x, held)
    within = b.point("select", is_within, x, b.constant(0, x.dtype))
    b.weak[within] = int  # others are no bound, and have to fit nowhere
    unbound = b.constant(none if dtype.is_integer else float(none), dtype)
    return b.point("select", is_within, b.convert(within, dtype), unbound)


def _extremes(dtype: DType) -> tuple[int, int]:
    """Return integers beyond which, in ``dtype``, lies no integer of 64 bits."""
    return limits_of(dtype) if dtype.is_integer else (-(2**64), 2**64)


def wrapped(b: Builder, x: Operand, dtype: DType) -> TensorView:
    """Return ``x`` as ``where`` takes it: an integer of 64 bits, cast to ``dtype``."""
    if isinstance(x, TensorView):
        return b.cast(x, dtype)
    if not (dtype.is_integer and is_python_integer(x, b)):
        return b.convert(x, dtype)
    number = sc.as_scalar(x)
    for part, wide in (
        (scalar_functions.minimum(number, 0), DType.I64),
        (scalar_functions.maximum(number, 0), DType.U64),
    ):
        b.convert(part.value if isinstance(part, sc.Const) else part, wide)
    low, _ = limits_of(dtype)
    turned = sc.modulo(number - low, 2**dtype.bits) + low
    return b.from_scalar(turned, dtype)


_ROUNDING = 1024  # of floats next to what 64 bits hold
WITHIN = "arithmetic"  # the function that raises for a number beyond a dtype


def looked_at(b: Builder, x: TensorView, dtype: DType) -> TensorView:
    """Return ``x``, an integer of Python's that is computed, cast to ``dtype``.

    A call raises where it is one that ``dtype`` cannot hold.
    """
    low, high = limits_of(dtype)
    if (found := range_of(b, x)) is not None:
        least, most = found
        if isinstance(least, sc.Const) and least.value > high:
            check_fits(least.value, dtype, "computed by the program")
        if isinstance(most, sc.Const) and most.value < low:
            check_fits(most.value, dtype, "computed by the program")
        if is_within(b, found, dtype):
            return b.cast(x, dtype)
    return b.cast(look(b, x, low, high, dtype.numpy.name), dtype)


def look(b: Builder, x: TensorView, low: int, high: int, dtype: str) -> TensorView:
    """Return ``x``, at which each call looks: it is to be from ``low`` to ``high``."""
    made, kinds = b.new(x.shape, x.dtype), (x.dtype,)
    options = (("low", low), ("high", high), ("dtype", dtype))
    b.emit(Called(WITHIN, (x,), (made,), kinds, kinds, options, may_fail=True))
    return made


def is_within(b: Builder, known: Range, dtype: DType) -> bool:
    """Tell whether ``dtype`` holds all numbers of a range, in each call."""
    return all(b.ask(end, usual=1) for end in _fits(known, *limits_of(dtype)))


def look_at_size(b: Builder, x: TensorView) -> None:
    """Let a call raise where an integer of Python's, as a float, is beyond 64 bits."""
    low, high = limits_of(DType.I64)
    look(b, x, low, high + 1 - _ROUNDING, "int64")


def look_at_product(b: Builder, x: TensorView, *factors: Operand) -> None:
    """Look at a product of integers of Python's that may be beyond 64 bits."""
    found = None if b.narrow is None or x.ndim else range_of(b, x)
    if found is None:
        return
    low, high = limits_of(DType.I64)
    is_below = isinstance(found[0], sc.Const) and found[0].value < low
    if is_below or (isinstance(found[1], sc.Const) and found[1].value > high):
        one, other = (b.convert(t, DType.F64) for t in factors)
        look_at_size(b, b.point("multiply", one, other))


def within(look: Called, known: Range) -> tuple[Scalar, Scalar]:
    """Return what holds if a number with this range needs no look."""
    options: dict[str, Any] = dict(look.options)
    return _fits(known, options["low"], options["high"])


def _fits(known: Range, low: int, high: int) -> tuple[Scalar, Scalar]:
    return (
        scalar_functions.less(low - 1, known[0]),
        scalar_functions.less(known[1], high + 1),
    )


def is_never_negative(b: Builder, x: TensorView) -> bool:
    """Tell whether all that a computed integer of Python's may be is known to be."""
    if b.weak.get(x) is not int or (found := range_of(b, x)) is None:
        return False
    return bool(b.ask(scalar_functions.less(-1, found[0]), usual=1))


def range_of(b: Builder, x: TensorView) -> Range | None:
    """Return between which numbers a computed integer of Python's is, if known."""
    definition = {t: e for e in b.exprs for t in results(e)}
    return Ranges(definition, b.counters).of(x)
