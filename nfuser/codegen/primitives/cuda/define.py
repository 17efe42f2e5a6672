# SPDX-License-Identifier: Apache-2.0
"""Define a CUDA primitive: its type rule and the LLVM IR that it becomes.

Every primitive is a numba-cuda intrinsic. Overloads and device functions would ask
the driver for its compute capability; intrinsics compile on a machine without one.
"""

# numba-cuda and llvmlite ship no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportAttributeAccessIssue=false
# pyright: reportMissingImports=false

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from llvmlite import ir
from numba.cuda import cgutils
from numba.cuda import types as numba_types
from numba.cuda.datamodel import models
from numba.cuda.extending import intrinsic, register_model
from numba.cuda.typing import signature

types: Any = numba_types  # it is filled at import, unseen by type checkers
Value: TypeAlias = Any  # an llvmlite value
Rule: TypeAlias = Callable[..., Any]  # argument types -> signature, or None to refuse
Emit: TypeAlias = Callable[..., Any]  # (Site, *values) -> value, or None for void

BOOL = frozenset({types.boolean})
SIGNED = frozenset({types.int8, types.int16, types.int32, types.int64})
UNSIGNED = frozenset({types.uint8, types.uint16, types.uint32, types.uint64})
INTEGER = SIGNED | UNSIGNED
FLOAT = frozenset({types.float32, types.float64})
NUMBER = INTEGER | FLOAT
ANY = NUMBER | BOOL

I1, I8, I16, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
F16, F32, F64 = ir.HalfType(), ir.FloatType(), ir.DoubleType()


class ArrayPointer(types.Type):
    """A local or shared array, of which its first element's address is known alone."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(f"array of {dtype}")


register_model(ArrayPointer)(models.PointerModel)
PRIMITIVES: dict[str, Any] = {}  # by the names that kernels call them by


@dataclass(frozen=True, slots=True)
class Site:
    """One call of a primitive while it is lowered."""

    context: Any
    builder: Any
    signature: Any

    @property
    def result(self) -> Any:
        """The Numba type of what the call returns."""
        return self.signature.return_type

    def argument(self, position: int) -> Any:
        """Return the Numba type of the argument at ``position``."""
        return self.signature.args[position]

    def constant(self, kind: Any, value: float) -> Value:
        """Return ``value`` as a constant of the Numba type ``kind``."""
        return ir.Constant(self.context.get_value_type(kind), value)

    def external(self, name: str, result: Any, arguments: list[Value]) -> Value:
        """Call the libdevice or NVVM function ``name``."""
        kind = ir.FunctionType(result, [value.type for value in arguments])
        module = self.builder.module
        return self.builder.call(
            cgutils.get_or_insert_function(module, kind, name), arguments
        )

    def assembly(
        self,
        code: str,
        constraints: str,
        result: Any,
        arguments: list[Value],
        *,
        effect: bool = False,
    ) -> Value:
        """Call inline PTX; ``effect`` keeps its order among other memory accesses."""
        kind = ir.FunctionType(result, [value.type for value in arguments])
        block = ir.InlineAsm(kind, code, constraints, side_effect=effect)
        return self.builder.call(block, arguments)

    def element(self, pointer: Value, index: Value, position: int) -> Value:
        """Return the address of ``pointer[index]``; ``position`` finds its type."""
        if self.argument(position) in UNSIGNED and index.type.width < 64:
            index = self.builder.zext(index, I64)  # an address is sign-extended
        return self.builder.gep(pointer, [index])

    def data(self, array: Value, position: int) -> Value:
        """Return the address of the first element of a local or shared array."""
        kind = self.argument(position)
        if isinstance(kind, ArrayPointer):
            return array
        return self.context.make_array(kind)(self.context, self.builder, array).data


def primitive(name: str, rule: Rule, emit: Emit, arity: int | None = None) -> Any:
    """Make the intrinsic ``name``; its arity is that of ``emit`` without the site."""

    def lower(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        value = emit(Site(context, builder, sig), *arguments)
        return context.get_dummy_value() if value is None else value

    def typed(context: Any, *arguments: Any) -> Any:
        found = rule(*(types.unliteral(argument) for argument in arguments))
        return None if found is None else (found, lower)

    if arity is None:
        arity = len(inspect.signature(emit).parameters) - 1
    # Numba reads the arity off the signature, from which *arguments would hide it.
    names = ["context", *(f"x{k}" for k in range(arity))]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, kind) for name in names]
    typed.__signature__ = inspect.Signature(parameters)
    typed.__name__ = typed.__qualname__ = name
    PRIMITIVES[name] = made = intrinsic(typed)
    return made


def same(kinds: frozenset[Any], result: Any = None) -> Rule:
    """Take arguments of one type among ``kinds``; return it, or ``result``."""

    def rule(first: Any, *rest: Any) -> Any:
        if first not in kinds or any(other != first for other in rest):
            return None
        return signature(result or first, first, *rest)

    return rule


def suffixed(name: str, kind: Any) -> str:
    """Return libdevice's name of the function ``name`` for ``kind``."""
    return f"__nv_{name}f" if kind == types.float32 else f"__nv_{name}"
