# SPDX-License-Identifier: Apache-2.0
"""The operations of ``fd.ops``: nvFuser's names, and more that nfuser has.

Each function takes the draft, then what the user passed: handles and numbers.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import nfuser.compiler.ops as ops
from nfuser.compiler.ops.verbs import elementwise_verbs
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

# What has another name in nvFuser, or a form of its own (None).
RENAMED = {
    "absolute": "abs",
    "complex_of": "complex",
    "divide": "truediv",
    "divmod": None,
    "equal": "eq",
    "greater": "gt",
    "greater_equal": "ge",
    "invert": "bitwise_not",
    "left_shift": "bitwise_left_shift",
    "less": "lt",
    "less_equal": "le",
    "multiply": "mul",
    "negative": "neg",
    "not_equal": "ne",
    "power": None,
    "reciprocal": None,
    "right_shift": "bitwise_right_shift",
    "subtract": "sub",
}


def _named(count: int) -> dict[str, Callable[..., Any]]:
    """Return the verbs of ``count`` operands by nvFuser's names."""
    verbs = elementwise_verbs(count).items()
    return {n: verb for name, verb in verbs if (n := RENAMED.get(name, name))}


UNARY = _named(1) | {"round": ops.rint, "segment_set": ops.copy, "set": ops.copy}
BINARY = _named(2) | {"mod": ops.fmod}
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
