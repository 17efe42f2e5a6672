# SPDX-License-Identifier: Apache-2.0
"""Define a CPU primitive: its type rule and the LLVM IR that it becomes."""

# Numba and llvmlite carry no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from numba.core import types
from numba.core.typing.templates import signature
from numba.extending import intrinsic

from nfuser.codegen.primitives.cpu.apart import call_apart, stands_apart
from nfuser.codegen.primitives.cpu.math.value import Value

Kinds: TypeAlias = frozenset[Any]
Body: TypeAlias = Callable[..., Value]
"""From one `Value` an operand to the result."""
TypedBody: TypeAlias = Callable[..., Value]
"""As `Body`, after the operands' Numba type."""

BOOL: Kinds = frozenset({types.boolean})
SIGNED: Kinds = frozenset({types.int8, types.int16, types.int32, types.int64})
UNSIGNED: Kinds = frozenset({types.uint8, types.uint16, types.uint32, types.uint64})
INTEGER: Kinds = SIGNED | UNSIGNED
FLOAT: Kinds = frozenset({types.float32, types.float64})
NUMBER: Kinds = INTEGER | FLOAT
ANY: Kinds = NUMBER | BOOL
WORD: Kinds = frozenset({types.uint64})
PRIMITIVES: dict[str, Any] = {}  # by the names that kernels call them by
TYPES: dict[str, Any] = {
    "bool": types.boolean,
    "f32": types.float32,
    "f64": types.float64,
    "i8": types.int8,
    "i16": types.int16,
    "i32": types.int32,
    "i64": types.int64,
    "u8": types.uint8,
    "u16": types.uint16,
    "u32": types.uint32,
    "u64": types.uint64,
}


def common_type(operands: tuple[Any, ...], kinds: Kinds) -> Any:
    """Return the one type of the operands, or None to refuse them.

    An integer literal takes the type of the others.
    """
    plain = {t for t in operands if not isinstance(t, types.Literal)}
    plain = plain or {types.unliteral(t) for t in operands}
    if len(plain) != 1:
        return None
    (kind,) = plain
    return kind if kind in kinds else None


def define(name: str, arity: int, kinds: Kinds, body: TypedBody, to: Any = None) -> Any:
    """Return the intrinsic `name` over `arity` operands of one type among `kinds`.

    Its result has the type of the operands unless `to` gives another.
    """

    def emit(_context: Any, builder: Any, typed: Any, arguments: Any) -> Any:
        if to is None and stands_apart(builder, arguments):
            of_kind = partial(body, typed.args[0])
            made = call_apart(builder, name, of_kind, arguments)
            if made is not None:
                return made
        values = [Value(builder, argument) for argument in arguments]
        return body(typed.args[0], *values).ir

    def typed_as(operands: tuple[Any, ...]) -> Any:
        kind = common_type(operands, kinds)
        if kind is None:
            return None
        return signature(to or kind, *[kind] * arity), emit

    def unary(_typing: Any, a: Any) -> Any:
        return typed_as((a,))

    def binary(_typing: Any, a: Any, b: Any) -> Any:
        return typed_as((a, b))

    def ternary(_typing: Any, a: Any, b: Any, c: Any) -> Any:
        return typed_as((a, b, c))

    return register(name, (unary, binary, ternary)[arity - 1])


def register(name: str, rule: Callable[..., Any], **options: Any) -> Any:
    """Turn a typing rule into the intrinsic `name`, which kernels import."""
    rule.__name__ = rule.__qualname__ = name
    made: Any = intrinsic(**options)(rule) if options else intrinsic(rule)
    PRIMITIVES[name] = made
    return made


def untyped(body: Body) -> TypedBody:
    """Adapt a body that needs no Numba type."""

    def typed(_kind: Any, *values: Value) -> Value:
        return body(*values)

    return typed
