# SPDX-License-Identifier: Apache-2.0
"""The operations of ``fd.ops``: nvFuser's names, and more that nfuser has.

Each function takes the draft, then what the user passed: handles and numbers.
"""

# The table is made of operations of many forms.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import nfuser.ops as ops
from nfuser.frontend.definition.operations.compound import COMPOUND, integer_of
from nfuser.frontend.definition.operations.creation import CREATION
from nfuser.frontend.definition.operations.folds import FOLDS
from nfuser.frontend.definition.operations.gathers import GATHERS
from nfuser.frontend.definition.operations.moves import MOVES
from nfuser.frontend.definition.operations.orders import ORDERS
from nfuser.frontend.definition.operations.random import RANDOM
from nfuser.frontend.definition.operations.scans import SCANS
from nfuser.frontend.definition.operations.shapes import SHAPES
from nfuser.frontend.definition.refused import OPERATIONS, refuse

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.frontend.definition.draft import Draft

UNARY = {
    name: getattr(ops, name)
    for name in (
        *("acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh"),
        *("erf", "erfc", "exp", "exp2", "expm1", "floor", "log", "log10", "log1p"),
        *("log2", "rsqrt", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"),
        *("sign", "signbit", "isfinite", "isinf", "isnan", "isneginf", "isposinf"),
        *("logical_not", "relu", "sigmoid", "silu", "real", "imag", "conj", "angle"),
        *("cbrt", "deg2rad", "fabs", "positive", "rad2deg", "rint", "sinc", "softplus"),
        *("square", "truth", "erfinv", "erfcinv", "lgamma"),
    )
} | {
    "abs": ops.absolute,
    "bitwise_not": ops.invert,
    "neg": ops.negative,
    "round": ops.rint,
    "segment_set": ops.copy,
    "set": ops.copy,
}
BINARY = {
    name: getattr(ops, name)
    for name in (
        *("add", "atan2", "fmod", "maximum", "minimum", "nextafter", "remainder"),
        *("bitwise_and", "bitwise_or", "bitwise_xor", "logical_and", "logical_or"),
        *("logical_xor", "copysign", "floor_divide", "fmax", "fmin", "heaviside"),
        *("hypot", "logaddexp", "logaddexp2", "float_power", "gcd", "lcm"),
        "ldexp",
    )
} | {
    "bitwise_left_shift": ops.left_shift,
    "bitwise_right_shift": ops.right_shift,
    "complex": ops.complex_of,
    "eq": ops.equal,
    "ge": ops.greater_equal,
    "gt": ops.greater,
    "le": ops.less_equal,
    "lt": ops.less,
    "mod": ops.fmod,
    "mul": ops.multiply,
    "ne": ops.not_equal,
    "sub": ops.subtract,
    "truediv": ops.divide,
}
GENERAL = (
    *("all", "any", "argmax", "argmin", "count_nonzero", "mean", "ptp", "std"),
    *("expand_dims", "flip", "moveaxis", "swapaxes", "full_like", "isclose"),
    *("gelu", "layer_norm", "log_softmax", "logsumexp", "rms_norm", "softmax"),
    *("nan_to_num", "round_to"),
)


def _elementwise(name: str, verb: Callable[..., Any], arity: int) -> Any:
    def unary(d: Draft, x: Any) -> Any:
        return _applied(d, name, verb, x)

    def binary(d: Draft, x: Any, y: Any) -> Any:
        return _applied(d, name, verb, x, y)

    return unary if arity == 1 else binary


def _applied(d: Draft, name: str, verb: Callable[..., Any], *operands: Any) -> Any:
    taken = [d.operand(x) for x in operands]
    if (known := integer_of(d, name, taken)) is not None:
        return known
    return d.host.note(d.same_kind(verb(d.builder, *taken), taken), name, taken)


def _general(name: str) -> Any:
    """Return verb ``name`` with its own signature, for tensors and options."""
    verb = getattr(ops, name)
    signature = inspect.signature(verb)

    def operation(d: Draft, *args: Any, **options: Any) -> Any:
        bound = signature.bind(d.builder, *args, **options)
        b, first, *rest = bound.args
        taken = [d.taken(x) for x in rest]
        named = {key: d.taken(x) for key, x in bound.kwargs.items()}
        return verb(b, d.tensor(first), *taken, **named)

    made: Any = operation
    made.__signature__ = signature
    made.__doc__ = verb.__doc__
    return made


TABLE: dict[str, Callable[..., Any]] = {
    **{name: _elementwise(name, verb, 1) for name, verb in UNARY.items()},
    **{name: _elementwise(name, verb, 2) for name, verb in BINARY.items()},
    **{name: _general(name) for name in GENERAL},
    **COMPOUND,
    **FOLDS,
    **SHAPES,
    **MOVES,
    **GATHERS,
    **SCANS,
    **ORDERS,
    **CREATION,
    **RANDOM,
}


class Ops:
    """The operations of one definition: ``fd.ops.add(x, y)``; ``dir`` lists them."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        draft = self._draft
        if name in TABLE:
            return lambda *args, **options: draft.call(name, args, options)
        if name in OPERATIONS:
            return lambda *_, **__: _refuse(draft, name)
        message = f"fd.ops has no operation {name!r}; dir(fd.ops) lists them"
        raise AttributeError(message)

    def __dir__(self) -> list[str]:
        return sorted(TABLE)


def _refuse(draft: Draft, name: str) -> None:
    with draft.at_users_line(f"fd.ops.{name}"):
        refuse(f"fd.ops.{name}", OPERATIONS[name])
