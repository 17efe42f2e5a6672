# SPDX-License-Identifier: Apache-2.0

"""Operations of ``fd.ops`` that are more than one verb."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nfuser.compiler.ir.scalars.functions as scalar_functions
import nfuser.compiler.ops as ops
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.scalar import is_natural
from nfuser.compiler.ir.tensor import TensorView
from nfuser.compiler.ops import rules
from nfuser.errors import DTypeError, ShapeError
from nfuser.frontend.definition.draft import INTEGERS
from nfuser.frontend.definition.operations.stored import (
    Float8,
    format_of,
    narrowed,
    widened,
)
from nfuser.frontend.definition.types import (
    DataType,
    Tensor,
    data_type,
    required_dtype,
    stored_type,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.frontend.definition.draft import Draft


def _difference(a: sc.Scalar, b: sc.Scalar) -> sc.Scalar:
    return a - b


def _opposite(a: sc.Scalar) -> sc.Scalar:
    return -a


def _size_of(a: sc.Scalar) -> sc.Scalar:
    return a if is_natural(a) else scalar_functions.maximum(a, -a)


def _itself(a: sc.Scalar) -> sc.Scalar:
    return a


_EXACT: dict[str, Callable[..., sc.Scalar]] = {
    "add": sc.add,
    "maximum": scalar_functions.maximum,
    "minimum": scalar_functions.minimum,
    "mul": sc.multiply,
    "sub": _difference,
    "neg": _opposite,
    "abs": _size_of,
    "positive": _itself,
}
_DIVISIONS: dict[str, Callable[..., sc.Scalar]] = {
    "div": sc.floor_divide,
    "floor_divide": sc.floor_divide,
    "mod": sc.modulo,
    "remainder": sc.modulo,
}


def integer_of(d: Draft, name: str, taken: list[Any]) -> sc.Scalar | None:
    """Return an integer that is known before the kernels run, if the operands are.

    Sizes divide only by positive constants: there all roundings agree.
    """
    if not all(isinstance(x, (int, *INTEGERS)) for x in taken):
        return None
    if any(isinstance(x, bool) for x in taken):
        return None
    given = [sc.as_scalar(x) for x in taken]
    if name in _EXACT:
        return _EXACT[name](*given)
    if name in _DIVISIONS and is_natural(given[0]):
        divisor = given[1]
        if isinstance(divisor, sc.Const) and divisor.value > 0:
            return _DIVISIONS[name](*given)
    return None


def _div(d: Draft, x: Any, y: Any) -> Any:
    """Divide; integers toward zero, as C does."""
    taken = [d.operand(x), d.operand(y)]
    if (known := integer_of(d, "div", taken)) is not None:
        return known
    b, left, right = d.builder, *taken
    if not b.promote(left, right).is_integer:
        found = ops.divide(b, left, right)
    else:
        whole = ops.subtract(b, left, ops.fmod(b, left, right))
        found = ops.floor_divide(b, whole, right)
    return d.host.note(d.same_kind(found, taken), "div", taken)


def _pow(d: Draft, x: Any, y: Any) -> Any:
    """Return ``x`` to the power ``y``."""
    taken = [d.operand(x), d.operand(y)]
    dtype = d.builder.promote(*taken)
    if isinstance(taken[1], INTEGERS) and dtype.is_integer and dtype.is_signed:
        message = "Integers to negative integer powers are not allowed: {}"
        d.require_natural(taken[1], message)
    exponent = taken[1]
    if isinstance(exponent, TensorView) and dtype.is_integer and dtype.is_signed:
        return d.same_kind(_integer_power(d.builder, taken[0], exponent), taken)
    found = d.same_kind(ops.power(d.builder, *taken), taken)
    return d.host.note(found, "pow", taken)


def _integer_power(b: ops.Builder, x: Any, y: TensorView) -> TensorView:
    """Return ``x ** y``; below zero what is left of the fraction toward zero, as C."""
    dtype = b.promote(x, y)
    base, exponent = b.convert(x, dtype), b.convert(y, dtype)
    zero, one, minus = (b.constant(n, dtype) for n in (0, 1, -1))
    natural = b.point("maximum", exponent, zero)
    odd = b.point("not_equal", b.point("bit_and", exponent, one), zero)
    sign = b.point("select", odd, minus, one)
    left = b.point("select", b.point("equal", base, minus), sign, zero)
    left = b.point("select", b.point("equal", base, one), one, left)
    below = b.point("less", exponent, zero)
    return b.point("select", below, left, b.point("power", base, natural))


def _logical_right_shift(d: Draft, x: Any, y: Any) -> Any:
    """Shift in zeros, whatever the sign."""
    b, left, right = d.builder, d.operand(x), d.operand(y)
    dtype = rules.bits_type(b, "logical_right_shift", left, right, boolean=False)
    unsigned = DType(f"u{dtype.bits}")
    wide = b.cast(b.convert(left, dtype), unsigned)
    count = b.cast(b.convert(right, dtype), unsigned)
    return b.cast(b.point("right_shift", wide, count), dtype)


def _divmod(d: Draft, x: Any, y: Any) -> Any:
    """Return the floored quotient and what remains."""
    taken = [d.operand(x), d.operand(y)]
    found = ops.divmod(d.builder, *taken)
    return tuple(d.same_kind(part, taken) for part in found)


def _frac(d: Draft, x: Any) -> Any:
    """Return what ``trunc`` takes away."""
    taken = d.operand(x)
    whole = ops.trunc(d.builder, taken)
    return d.same_kind(ops.subtract(d.builder, taken, whole), [taken])


def _isreal(d: Draft, x: Any) -> Any:
    """Tell where the imaginary part is 0."""
    taken = d.operand(x)
    part = ops.imag(d.builder, taken)
    return d.same_kind(ops.equal(d.builder, part, 0), [taken])


def _reciprocal(d: Draft, x: Any) -> Any:
    """Return ``1 / x``; of an integer a float, as ``truediv`` gives it."""
    taken = d.operand(x)
    kind = d.builder.promote(taken)
    if kind.is_float or kind.is_complex:
        found = d.same_kind(ops.reciprocal(d.builder, taken), [taken])
        return d.host.note(found, "reciprocal", [taken])
    found = d.same_kind(ops.divide(d.builder, 1, taken), [taken])
    return d.host.note(found, "reciprocal", [taken])


# -- three operands ----------------------------------------------------------


def _where(d: Draft, condition: Any, x: Any, y: Any) -> Any:
    """Return ``x`` where the condition, of type Bool, holds, else ``y``."""
    taken = [d.operand(a) for a in (condition, x, y)]
    kind = d.builder.promote(taken[0])
    if not kind.is_bool:
        message = (
            "write fd.ops.ne(condition, 0): expected a condition of DataType.Bool, "
            f"found {data_type(kind)}"
        )
        raise DTypeError(message)
    found = d.same_kind(ops.where(d.builder, *taken), taken)
    return d.host.note(found, "where", taken)


def _clamp(d: Draft, x: Any, min: Any = None, max: Any = None) -> Any:  # noqa: A002
    """Hold to a range; None is no bound."""
    bounds = [None if a is None else d.operand(a) for a in (min, max)]
    taken = [d.operand(x), *(a for a in bounds if a is not None)]
    return d.same_kind(ops.clip(d.builder, taken[0], *bounds), taken)


def _threshold(d: Draft, x: Any, threshold: Any, value: Any) -> Any:
    """Return ``x`` where it lies above, else ``value``."""
    b = d.builder
    taken = [d.operand(a) for a in (x, threshold, value)]
    below = ops.less_equal(b, taken[0], taken[1])
    return d.same_kind(ops.where(b, below, taken[2], taken[0]), taken)


def _lerp(d: Draft, start: Any, end: Any, weight: Any) -> Any:
    """Return ``start + weight * (end - start)``, exact at both ends."""
    b = d.builder
    first, last, share = taken = [d.operand(a) for a in (start, end, weight)]
    gap = d.same_kind(ops.subtract(b, last, first), [last, first])
    from_start = ops.add(b, first, ops.multiply(b, share, gap))
    left = d.same_kind(ops.subtract(b, 1, share), [share])
    rest = ops.multiply(b, gap, left)
    from_end = ops.subtract(b, last, rest)
    near = ops.less(b, ops.absolute(b, share), 0.5)
    return d.same_kind(ops.where(b, near, from_start, from_end), taken)


def _addcmul(d: Draft, x: Any, a: Any, b: Any, value: Any = 1) -> Any:
    """Return ``x + value * a * b``."""
    taken = [d.operand(item) for item in (x, a, b, value)]
    scaled = d.same_kind(ops.multiply(d.builder, taken[3], taken[1]), taken[1::2])
    product = ops.multiply(d.builder, scaled, taken[2])
    return d.same_kind(ops.add(d.builder, taken[0], product), taken)


# -- dtypes and products -----------------------------------------------------


def _cast(d: Draft, arg: Any, dtype: Any) -> Any:
    """Convert, as ``astype`` does; a scalar stays weak."""
    b, taken = d.builder, d.operand(arg)
    if isinstance(arg, Tensor) and arg.stored is not None:
        taken = widened(b, taken, arg.stored)
    form = format_of(stored_type(dtype).value)
    if form is not None:
        return _narrowed(d, taken, form)
    wanted = required_dtype(dtype)
    if isinstance(taken, INTEGERS) and wanted is DType.I64:
        return taken  # a size stays one
    made = d.same_kind(ops.astype(b, b.tensor(taken), wanted), [taken])
    return made if wanted.is_complex else d.host.note(made, "cast", [taken], wanted)


def _narrowed(d: Draft, x: Any, form: Float8) -> TensorView:
    """Return the bytes of a tensor of real numbers."""
    if not isinstance(x, TensorView) or x.dtype.is_complex or x in d.builder.weak:
        message = f"{DataType(form)} is for tensors of real numbers"
        raise DTypeError(message)
    found = narrowed(d.builder, x, form)
    d.formats[found] = form
    return found


def _matmul(d: Draft, a: Any, b: Any) -> Any:
    """Multiply matrices, as ``numpy.matmul`` does."""
    return ops.matmul(d.builder, d.operand(a), d.operand(b))


def _linear(d: Draft, inp: Any, weight: Any, bias: Any = None) -> Any:
    """Multiply by the rows of ``weight``, and add ``bias``, stretched if need be."""
    b = d.builder
    taken = d.tensor(weight)
    turned = taken if taken.ndim < 2 else ops.swapaxes(b, taken, -1, -2)
    made = ops.matmul(b, d.operand(inp), turned)
    if bias is None:
        return made
    added = d.operand(bias)
    if isinstance(added, TensorView) and added.ndim:
        added = _as_bias(d, added, made)
    return ops.add(b, made, added)


def _as_bias(d: Draft, bias: TensorView, made: TensorView) -> TensorView:
    """Return ``bias`` in the shape of what it is added to, which it never stretches."""
    message = (
        "pass a bias with one element for each row of the weight, or one in all: "
        f"found shape {d.shape_text(bias)} for a product of shape {d.shape_text(made)}"
    )
    if bias.ndim > made.ndim:
        raise ShapeError(message)
    for a, b in zip(reversed(bias.shape), reversed(made.shape), strict=False):
        d.require_natural(
            scalar_functions.equal(a, b) + scalar_functions.equal(a, 1) - 1, message
        )
    return ops.broadcast_to(d.builder, bias, made.shape)


COMPOUND: dict[str, Callable[..., Any]] = {
    "addcmul": _addcmul,
    "cast": _cast,
    "clamp": _clamp,
    "div": _div,
    "divmod": _divmod,
    "frac": _frac,
    "isreal": _isreal,
    "lerp": _lerp,
    "linear": _linear,
    "logical_right_shift": _logical_right_shift,
    "matmul": _matmul,
    "pow": _pow,
    "reciprocal": _reciprocal,
    "threshold": _threshold,
    "where": _where,
}
