# SPDX-License-Identifier: Apache-2.0
"""The dialect of torch's tensors: their dtypes, methods, and how operands meet."""

# torch has partial types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ops as ops
import nfuser.compiler.trace.numpy.names.refusals as refusals
from nfuser.compiler.dtypes import DType, as_dtype
from nfuser.compiler.ir.tensor import TensorView
from nfuser.compiler.trace.standins.dialect import Dialect
from nfuser.compiler.trace.standins.sizes import passed_integer
from nfuser.compiler.trace.standins.standin import Standin
from nfuser.compiler.trace.torch.state import check_autocast, default_float
from nfuser.compiler.trace.torch.words.kinds import ATTRIBUTES
from nfuser.compiler.trace.torch.words.table import TensorMethods
from nfuser.errors import DTypeError

if TYPE_CHECKING:
    from nfuser.compiler.trace.tracer import Tracer

_KINDS = {bool: 0, int: 1, float: 2, complex: 3}
_KIND_OF = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
_OPERATORS = frozenset(
    (
        *("add", "subtract", "multiply", "divide", "floor_divide", "remainder"),
        *("power", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift"),
        *("right_shift", "less", "less_equal", "equal", "not_equal", "greater"),
        "greater_equal",
    )
)
_OF_NUMBERS = frozenset((ops.floor_divide, ops.remainder, ops.power))


class Torch(Dialect):
    """That of torch; what of its words has no fused form is refused by name."""

    methods = TensorMethods()
    attributes = ATTRIBUTES
    has_words = True

    def meet(self, t: Tracer, verb: Any, operands: list[Any]) -> list[Any]:
        """Convert to the dtype that torch computes in.

        Arrays with axes come first, then those without, then Python's numbers; what
        comes later counts by its kind alone.
        """
        strong = [x for x in operands if _is_strong(t, x)]
        if not strong:
            return operands
        taken = [x.item() if isinstance(x, np.generic) else x for x in operands]
        if verb is ops.power:
            taken[1] = _exponent(t, taken[1])
        weak = [t.builder.type_of(x) for x in taken if not _is_strong(t, x)]
        common = _common(t, strong, weak)
        if verb is ops.divide and not (common.is_float or common.is_complex):
            common = default_float(t)
        if verb in _OF_NUMBERS and common.is_bool:
            raise _no_numbers(verb.__name__)
        check_autocast(t, verb.__name__, common)
        return [t.builder.cast(x, common) if _is_strong(t, x) else x for x in taken]

    def number(self, item: Any) -> Any:
        """Return a number as an operand: what is made of Python's types is as weak."""
        return item

    def check_operands(self, operands: tuple[Any, ...]) -> None:
        """Refuse sequences, of which NumPy would make an array, and torch does not."""
        for x in operands:
            if isinstance(x, (tuple, list)):
                message = (
                    "write x.max(dim).values for one half of a pair, or make a tensor "
                    "of it outside of the function: expected a tensor or a number "
                    f"beside a tensor, found a {type(x).__name__}"
                )
                raise DTypeError(message)

    def is_operator(self, name: str, inputs: tuple[Any, ...]) -> bool:
        """Tell whether it is that of a NumPy scalar, which torch takes as a number."""
        is_scalar = isinstance(inputs[0], np.generic)
        return is_scalar and not isinstance(inputs[0], Standin) and name in _OPERATORS

    def attribute(self, name: str) -> Exception:
        """Return the error for an attribute that stand-ins do not have."""
        return refusals.attribute_of_tensor(name)

    def dtype(self, dtype: DType) -> Any:
        """Return the torch.dtype."""
        return getattr(sys.modules["torch"], dtype.numpy.name)

    def class_of(self, held: TensorView, array: type) -> type:
        """Return the class of a result: a tensor has any number of axes."""
        del held
        return array


TORCH = Torch()


def _is_strong(t: Tracer, x: object) -> bool:
    return isinstance(x, TensorView) and x not in t.builder.weak


def _exponent(t: Tracer, y: Any) -> Any:
    """Return a power; of an integer that each call passes, its sign can be asked."""
    if not isinstance(y, TensorView) or t.builder.weak.get(y) is not int:
        return y
    passed = passed_integer(t, y)
    return y if passed is None else passed


def _common(t: Tracer, strong: list[TensorView], weak: list[Any]) -> DType:
    with_axes = _promoted(*(x.dtype for x in strong if x.ndim))
    without = _promoted(*(x.dtype for x in strong if not x.ndim))
    if with_axes is None:
        found = without
    else:
        found = _beside(with_axes, without)
    kind = max((_KINDS[k] for k in weak), default=0)
    assert found is not None  # one of them is strong
    if kind <= _KIND_OF[found.kind]:
        return found
    if kind == 1:
        return DType.I64
    if kind == 3:
        return _complex(found if found.is_float else default_float(t))
    return default_float(t)


def _beside(first: DType, second: DType | None) -> DType:
    """Return the dtype of ``first`` beside what counts by its kind alone, if that."""
    if second is None or _KIND_OF[second.kind] <= _KIND_OF[first.kind]:
        return first
    if second.is_complex and first.is_float:
        return _complex(first)
    return _promoted(first, second) or first


def _complex(dtype: DType) -> DType:
    if dtype is DType.F16:
        message = (
            "write x.astype(np.float32) first: a complex number beside float16 is "
            "complex32 in torch, which nfuser does not have"
        )
        raise DTypeError(message)
    return dtype.complex


def _promoted(*dtypes: DType) -> DType | None:
    found: DType | None = None
    for dtype in dtypes:
        found = dtype if found is None else _pair(found, dtype)
    return found


@cache
def _pair(a: DType, b: DType) -> DType:
    torch: Any = sys.modules["torch"]
    one, other = (getattr(torch, d.numpy.name) for d in (a, b))
    if {a, b} & {DType.C64, DType.C128} and DType.F16 in (a, b):
        return _complex(DType.F16)
    try:
        return as_dtype(torch.promote_types(one, other))
    except RuntimeError:
        message = (
            f"write x.astype({a}) or x.astype({b}) for one of the operands: torch "
            f"lets no {a} meet {b}"
        )
        raise DTypeError(message) from None


def _no_numbers(name: str) -> DTypeError:
    message = (
        f"write x.astype(np.int64) first: torch has no {name} of bool, and NumPy's is "
        "int8"
    )
    return DTypeError(message)
