# SPDX-License-Identifier: Apache-2.0
"""Numbers that are known before the kernels run: what is computed of scalars alone.

Each is a weak tensor for kernels, and an expression here that the host works out where
one becomes a size: as an integer of its own, which a call computes and passes.
"""

# A number is a Python one, or one of NumPy's.
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, get_args

import numpy as np

from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.errors import RangeError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nfuser.compiler.dtypes import DType
    from nfuser.compiler.ir.tensor import TensorView

_INTEGERS: tuple[type, ...] = get_args(sc.Scalar)
_KINDS: dict[str, type] = {"b": bool, "i": int, "u": int, "f": float}


@node
class PassedNumber:
    """The number that a call passes in place ``slot``."""

    slot: int


@node
class Hosted:
    """``name`` of the numbers before it; for a cast, what it gives is ``dtype``."""

    name: str
    operands: tuple[Number, ...]
    dtype: DType | None = None


Number: TypeAlias = "bool | int | float | sc.Scalar | PassedNumber | Hosted"


def _toward_zero(x: Any, y: Any) -> Any:
    quotient = np.true_divide(x, y)
    are_whole = isinstance(x, int) and isinstance(y, int)
    return int(np.trunc(quotient)) if are_whole and y else quotient


def _power(x: Any, y: Any) -> Any:
    return np.power(float(x), y) if y < 0 else x**y


_MEANINGS: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in ("floor", "ceil", "trunc", "sqrt", "exp")},
    **{name: getattr(np, name) for name in ("log", "log2", "maximum", "minimum")},
    **{name: getattr(np, name) for name in ("fmod", "remainder", "floor_divide")},
    **{name: getattr(np, name) for name in ("where", "sign", "square", "positive")},
    **{f"logical_{name}": getattr(np, f"logical_{name}") for name in ("and", "or")},
    "logical_not": np.logical_not,
    "abs": np.abs,
    "add": np.add,
    "div": _toward_zero,
    "eq": np.equal,
    "ge": np.greater_equal,
    "gt": np.greater,
    "le": np.less_equal,
    "lt": np.less,
    "mod": np.fmod,
    "mul": np.multiply,
    "ne": np.not_equal,
    "neg": np.negative,
    "pow": _power,
    "reciprocal": lambda x: np.true_divide(1, x),
    "rint": np.rint,
    "round": np.rint,
    "sub": np.subtract,
    "truediv": np.true_divide,
}


class Host:
    """The numbers of one definition that the host knows."""

    def __init__(self) -> None:
        self._known: dict[TensorView, Number] = {}

    def know(self, view: TensorView, number: Number) -> None:
        """Note that kernels call ``number`` ``view``."""
        self._known[view] = number

    def note(self, view: Any, name: str, operands: list[Any], dtype: Any = None) -> Any:
        """Return ``view``, which is ``name`` of operands; note it if all are known."""
        found = [self.number(x) for x in operands]
        is_known = name in _MEANINGS or dtype is not None
        if is_known and all(x is not None for x in found):
            self._known[view] = Hosted(name, tuple(found), dtype)  # pyright: ignore[reportArgumentType]
        return view

    def number(self, operand: Any) -> Number | None:
        """Return what the host knows ``operand`` as, if it does."""
        if isinstance(operand, (bool, int, float, *_INTEGERS)):
            return operand
        return self._known.get(operand)


def is_fixed(number: Number) -> bool:
    """Tell whether ``number`` is the same in every call."""
    match number:
        case PassedNumber():
            return False
        case Hosted(_, operands):
            return all(is_fixed(x) for x in operands)
        case _:
            return not isinstance(number, _INTEGERS) or isinstance(number, sc.Const)


def worked_out(
    number: Number, sizes: Mapping[sc.Scalar, int], passed: Mapping[int, Any]
) -> Any:
    """Return the value of ``number`` in a call, as Python's."""
    match number:
        case PassedNumber(slot):
            return passed[slot]
        case Hosted(name, operands, dtype):
            given = [worked_out(x, sizes, passed) for x in operands]
            with np.errstate(all="ignore"):
                if dtype is not None:
                    return _cast(given[0], dtype)
                found = _MEANINGS[name](*given)
            return found.item() if hasattr(found, "item") else found
        case bool() | int() | float():
            return number
        case _:
            return scalar_walk.evaluate(number, sizes)


def _cast(number: Any, dtype: DType) -> Any:
    if dtype.is_integer:
        if not np.isfinite(number):
            message = f"pass another number: {number} has no {dtype}"
            raise RangeError(message)
        return int(np.int64(int(number)).astype(dtype.numpy))
    return _KINDS[dtype.kind](np.asarray(number).astype(dtype.numpy))
