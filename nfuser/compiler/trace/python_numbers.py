# SPDX-License-Identifier: Apache-2.0
"""Numbers of Python's that are taken out of arrays, and how Python computes with them.

Where Python would raise, the call looks: at a divisor of zero, at what is beyond 64
bits, at what is no integer. What gives a number of another type, by its value, is
refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nfuser.compiler.ops.elementwise.arithmetic as arithmetic
import nfuser.compiler.ops.elementwise.bits as bits
import nfuser.compiler.ops.elementwise.logic as logic
import nfuser.compiler.ops.python_integers as python_integers
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import Pointwise, Reduce, ReduceOp, results
from nfuser.compiler.ir.point_op import CAST
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.scalar import Const
from nfuser.compiler.ir.tensor import TensorView
from nfuser.errors import UnsupportedError

if TYPE_CHECKING:
    from nfuser.compiler.dtypes.promotion import Weak
    from nfuser.compiler.ops.builder import Builder, Operand

_EXACT = 1 << 53  # up to it floats hold all integers, and many of them add up
_SMALL = 1 << 32  # steps of counters, which take no counter out of 64 bits
_DTYPES: dict[Weak, DType] = {bool: DType.BOOL, int: DType.I64, float: DType.F64}
_OF_FLOAT = "int(x) of a float of a traced array"
_PLACES = (ReduceOp.ARGMAX, ReduceOp.ARGMIN)
_POWER = (
    "write x * x, or np.power(x, y), in place of x ** y: whether Python gives an "
    "integer, a float or a complex number depends on the numbers; expected an integer "
    "of the program as the exponent of a number that the call computes"
)
_SHIFT = (
    "write np.left_shift(x, n) or np.right_shift(x, n): shifts of Python's have no "
    "end; expected a number that is known while tracing"
)


def number_of(b: Builder, x: TensorView, kind: Weak) -> TensorView:
    """Return the one element ``x`` as a number of Python's, ``kind`` of it."""
    if b.weak.get(x) is kind:
        return x
    if kind is bool:
        found = b.point("copy", logic.truth(b, x))
    elif kind is int:
        found = _integer(b, x)
    else:
        found = b.point("copy", b.cast(x, _DTYPES[kind]))
    b.weak[found] = kind
    return found


def _integer(b: Builder, x: TensorView) -> TensorView:
    """Return what ``int(x)`` is, as 64 bits hold it; calls raise for anything else."""
    if x.dtype.is_bool or _is_counted(b, x):
        low, high = 0, 1 if x.dtype.is_bool else _EXACT
    elif x.dtype.is_integer:
        low, high = python_integers.limits_of(x.dtype)
    else:
        low, high = -_EXACT, _EXACT
        x = python_integers.look(b, b.cast(x, DType.F64), low, high, _OF_FLOAT)
    if x.dtype is DType.U64:
        high = python_integers.limits_of(DType.I64)[1]
        x = python_integers.look(b, x, low, high, "int64")
    found = b.point("copy", b.cast(x, DType.I64))
    b.counters[found] = sc.const(low), sc.const(high)
    return found


def operation(b: Builder, verb: Any, x: Operand, y: Operand) -> Any:
    """Return what an operator of Python's gives of two numbers that calls compute."""
    if verb in _OWN:
        return _OWN[verb](b, x, y)
    if verb in DIVISIONS and isinstance(y, TensorView):
        look_at_divisor(b, y)
    if verb in _COMPARISONS:
        for one, other in ((x, y), (y, x)):
            _compare_exactly(b, one, other)
    found = verb(b, x, y)
    if verb in _SIZES and found.dtype.is_integer:
        look_at_size(b, _SIZES[verb], found, x, y)
    return found


def _is_counted(b: Builder, x: TensorView) -> bool:
    """Tell whether ``x`` is a place, or how many there are of something."""
    definition = {t: e for e in b.exprs for t in results(e)}
    match definition.get(x):
        case Reduce(op) if op in _PLACES:
            return True
        case Reduce(ReduceOp.SUM, source):
            counted = definition.get(source)
            if not isinstance(counted, Pointwise) or counted.op is not CAST:
                return False
            return counted.operands[0].dtype.is_bool
        case _:
            return False


def _compare_exactly(b: Builder, x: Operand, y: Operand) -> None:
    """Let a call raise where a float holds no integer that it is compared with."""
    if not isinstance(x, TensorView) or b.type_of(y) is not float:
        return
    known = python_integers.range_of(b, x) if b.weak[x] is int else None
    ends = () if known is None else (x.value for x in known if isinstance(x, Const))
    if any(abs(end) > _EXACT for end in ends):
        python_integers.look(b, x, -_EXACT, _EXACT, "a comparison with a float")


def look_at_divisor(b: Builder, y: TensorView) -> None:
    """Let a call raise as Python does where ``y`` is zero."""
    known = python_integers.range_of(b, y)
    if known is not None:
        low, high = known
        is_above = isinstance(low, Const) and low.value > 0
        if is_above or (isinstance(high, Const) and high.value < 0):
            return
    _raise_where(b, b.point("equal", y, b.convert(0, y.dtype)), "division")


def look_at_size(b: Builder, name: str, found: TensorView, *given: Operand) -> None:
    """Look at what an operation gives of two integers: it may be beyond 64 bits."""
    known = python_integers.range_of(b, found)
    if known is not None and python_integers.is_within(b, known, DType.I64):
        return
    is_sum = known is None and name != "multiply"
    if is_sum and any(_is_small(b, x) for x in given):
        return
    one, other = (b.convert(x, DType.F64) for x in given)
    python_integers.look_at_size(b, b.point(name, one, other))


def _is_small(b: Builder, x: Operand) -> bool:
    """Tell whether a number that is added is none that takes others out of 64 bits."""
    if not isinstance(x, TensorView):
        return not isinstance(x, int) or abs(x) <= _SMALL
    known = python_integers.range_of(b, x)
    if known is None:
        return False
    ends = (end.value if isinstance(end, Const) else 0 for end in known)
    return all(abs(end) <= _SMALL for end in ends)


def power(b: Builder, x: Operand, y: Operand) -> TensorView:
    """Return ``x ** y``: of Python's floats, or by an integer of the program."""
    if type(x) is float and x > 0 and isinstance(y, TensorView):
        found = arithmetic.power(b, x, y)
        _raise_where(b, logic.isinf(b, found), "power")
        return found
    kind = b.weak[x] if isinstance(x, TensorView) else None
    if type(y) is not int or kind not in (int, float) or (kind is int and y < 0):
        raise UnsupportedError(_POWER)
    assert isinstance(x, TensorView)
    if y < 0:
        look_at_divisor(b, x)
    found = arithmetic.power(b, x, y)
    if kind is int and y == 2:
        look_at_size(b, "multiply", found, x, x)
    elif kind is int and y > 2:
        floats = arithmetic.power(b, b.cast(x, DType.F64), y)
        python_integers.look_at_size(b, floats)
    elif abs(y) > 1:
        is_finite = logic.logical_not(b, logic.isinf(b, x))
        is_beyond = b.point("bit_and", logic.isinf(b, found), is_finite)
        _raise_where(b, is_beyond, "power")
    return found


def shift(b: Builder, x: Operand, y: Operand) -> TensorView:
    """Return ``x >> y`` by a number of the program."""
    if type(y) is not int or y < 0:
        raise UnsupportedError(_SHIFT)
    return bits.right_shift(b, x, min(y, 63))


def left_shift(b: Builder, x: Operand, y: Operand) -> TensorView:
    """Refuse ``x << y``."""
    del b, x, y
    raise UnsupportedError(_SHIFT)


def _raise_where(b: Builder, flag: TensorView, what: str) -> None:
    """Let a call raise where ``flag`` holds; ``what`` names the error."""
    python_integers.look(b, b.cast(flag, DType.I64), 0, 0, what)


DIVISIONS = frozenset(
    {
        *(arithmetic.divide, arithmetic.floor_divide),
        *(arithmetic.remainder, arithmetic.divmod),
    }
)
_COMPARISONS = frozenset(
    {
        *(logic.less, logic.less_equal, logic.greater, logic.greater_equal),
        *(logic.equal, logic.not_equal),
    }
)
_SIZES: dict[Any, str] = {
    arithmetic.add: "add",
    arithmetic.subtract: "subtract",
    arithmetic.multiply: "multiply",
}
_OWN: dict[Any, Any] = {
    arithmetic.power: power,
    bits.right_shift: shift,
    bits.left_shift: left_shift,
}
