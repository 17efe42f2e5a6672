# SPDX-License-Identifier: Apache-2.0
"""Loads, stores, 16-bit floats and stack arrays on the CPU."""

# Numba and llvmlite carry no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import signature

from nfuser.codegen.primitives.cpu.define import (
    NUMBER,
    TYPES,
    define,
    register,
    untyped,
)
from nfuser.codegen.primitives.cpu.half import (
    converts_halves,
    half_to_single,
    single_to_half,
)
from nfuser.codegen.primitives.cpu.math.value import (
    FLOAT,
    HALF,
    I16,
    I32,
    I64,
    Value,
    bits,
    from_bits,
    select,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_BYTES = ir.IntType(8).as_pointer()
STACK_ALIGNMENT = 64
"""Bytes: the widest vector that a CPU stores."""


def _address(builder: Any, pointer: Any, index: Any) -> Any:
    return builder.gep(pointer, [index], inbounds=True)


def _index_type(index: Any) -> Any:
    plain = types.unliteral(index)
    return plain if isinstance(plain, types.Integer) else None


def _points_to(pointer: Any, storage: Any) -> bool:
    if not isinstance(pointer, types.CPointer):
        return False
    return pointer.dtype in NUMBER if storage is None else pointer.dtype == storage


def _loader(
    name: str, storage: Any, value: Any, widen: Callable[[Value], Value]
) -> Any:
    def rule(_typing: Any, pointer: Any, index: Any) -> Any:
        position = _index_type(index)
        if position is None or not _points_to(pointer, storage):
            return None

        def emit(_context: Any, builder: Any, _typed: Any, arguments: Any) -> Any:
            element = builder.load(_address(builder, *arguments))
            return widen(Value(builder, element)).ir

        return signature(value or pointer.dtype, pointer, position), emit

    return register(name, rule)


def _storer(
    name: str, storage: Any, value: Any, narrow: Callable[[Value], Value]
) -> Any:
    def rule(_typing: Any, pointer: Any, index: Any, element: Any) -> Any:
        position = _index_type(index)
        if position is None or not _points_to(pointer, storage):
            return None
        kind = value or pointer.dtype
        if types.unliteral(element) != kind and not isinstance(element, types.Literal):
            return None

        def emit(context: Any, builder: Any, _typed: Any, arguments: Any) -> Any:
            pointer, index, element = arguments
            narrowed = narrow(Value(builder, element)).ir
            builder.store(narrowed, _address(builder, pointer, index))
            return context.get_dummy_value()

        return signature(types.void, pointer, position, kind), emit

    return register(name, rule)


def _same(x: Value) -> Value:
    return x


def _from_bool(x: Value) -> Value:
    return x.make(x.builder.zext(x.ir, ir.IntType(8)))


def _from_half(x: Value) -> Value:
    if not converts_halves():
        return half_to_single(x.make(x.builder.zext(x.ir, I32)))
    half = x.builder.bitcast(x.ir, HALF)
    return x.make(x.builder.fpext(half, FLOAT))


def to_half(x: Value) -> Value:
    """Return the bits of the nearest float16, ties to even."""
    if not converts_halves():
        return x.make(x.builder.trunc(single_to_half(x).ir, I16))
    half = x.builder.fptrunc(x.ir, HALF)
    return x.make(x.builder.bitcast(half, I16))


def _from_bfloat(x: Value) -> Value:
    return from_bits(x.make(x.builder.zext(x.ir, I32)) << 16)


def _nearest_bfloat(x: Value) -> Value:
    """Return the bits of the nearest bfloat16, ties to even, in the upper half."""
    pattern = bits(x)
    rounded = pattern + (pattern.logical_right(16) & 1) + 0x7FFF
    quiet = (pattern & -0x80000000) | 0x7FC00000
    return select(x.is_nan(), quiet, rounded) & -0x10000


def to_bfloat(x: Value) -> Value:
    """Return the bits of the nearest bfloat16, ties to even."""
    upper = _nearest_bfloat(x).logical_right(16)
    return x.make(x.builder.trunc(upper.ir, I16))


_loader("load", None, None, _same)
_loader("load_bool", types.uint8, types.boolean, lambda x: x.differs(0))
_loader("load_f16", types.uint16, types.float32, _from_half)
_loader("load_bf16", types.uint16, types.float32, _from_bfloat)
_storer("store", None, None, _same)
_storer("store_bool", types.uint8, types.boolean, _from_bool)
_storer("store_f16", types.uint16, types.float32, to_half)
_storer("store_bf16", types.uint16, types.float32, to_bfloat)


def _store_line_rule(
    _typing: Any, pointer: Any, index: Any, line: Any, count: Any
) -> Any:
    """Write ``line`` to neighbours past the cache, where that is not read first.

    It takes whole vectors at aligned addresses; everywhere else these are plain stores.
    """
    position = _index_type(index)
    fits = isinstance(pointer, types.CPointer) and line == pointer
    if position is None or not fits or not isinstance(count, types.IntegerLiteral):
        return None

    def emit(context: Any, builder: Any, _typed: Any, arguments: Any) -> Any:
        target, index, source, _ = arguments
        place = _address(builder, target, index)
        element = source.type.pointee
        lanes = STACK_ALIGNMENT // context.get_abi_sizeof(element)
        vector = ir.VectorType(element, lanes).as_pointer()
        parts = range(0, count.literal_value, lanes)

        def part(pointer: Any, start: int) -> Any:
            at = builder.gep(pointer, [ir.Constant(I64, start)], inbounds=True)
            return builder.bitcast(at, vector)

        found = [builder.load(part(source, k), align=STACK_ALIGNMENT) for k in parts]
        address = builder.ptrtoint(place, I64)
        off = builder.and_(address, ir.Constant(I64, STACK_ALIGNMENT - 1))
        aligned = builder.icmp_unsigned("==", off, ir.Constant(I64, 0))
        size = context.get_abi_sizeof(element)
        hint = builder.module.add_metadata([ir.Constant(I32, 1)])
        with builder.if_else(aligned) as (past, through):
            with past:
                for k, value in zip(parts, found, strict=True):
                    store = builder.store(value, part(place, k), STACK_ALIGNMENT)
                    store.set_metadata("nontemporal", hint)
            with through:
                for k, value in zip(parts, found, strict=True):
                    builder.store(value, part(place, k), size)
        return context.get_dummy_value()

    return signature(types.void, pointer, position, line, count), emit


def _take_ticket_rule(_typing: Any, pointer: Any, index: Any) -> Any:
    """Count who comes; what they stored before is seen by whoever comes later."""
    position = _index_type(index)
    if position is None or not _points_to(pointer, types.uint32):
        return None

    def emit(_context: Any, builder: Any, _typed: Any, arguments: Any) -> Any:
        one = ir.Constant(I32, 1)
        return builder.atomic_rmw("add", _address(builder, *arguments), one, "acq_rel")

    return signature(types.int32, pointer, position), emit


def _load_volatile_rule(_typing: Any, pointer: Any, index: Any) -> Any:
    """Load what another thread has stored."""
    position = _index_type(index)
    if position is None or not _points_to(pointer, None):
        return None

    def emit(context: Any, builder: Any, typed: Any, arguments: Any) -> Any:
        size = context.get_abi_sizeof(context.get_data_type(typed.return_type))
        address = _address(builder, *arguments)
        return builder.load_atomic(address, "monotonic", size)

    return signature(pointer.dtype, pointer, position), emit


register("take_ticket", _take_ticket_rule)
register("load_volatile", _load_volatile_rule)


def _settle_rule(_typing: Any) -> Any:
    """Let whoever is told of it after this find what was stored past the cache."""

    def emit(context: Any, builder: Any, _typed: Any, _arguments: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return signature(types.void), emit


def _up_to_line_rule(_typing: Any, pointer: Any, index: Any, most: Any) -> Any:
    """Count the elements from here on, at most so many, that end a line."""
    position = _index_type(index)
    if position is None or not _points_to(pointer, None):
        return None

    def emit(context: Any, builder: Any, typed: Any, arguments: Any) -> Any:
        size = context.get_abi_sizeof(context.get_data_type(typed.args[0].dtype))
        place = builder.ptrtoint(_address(builder, *arguments[:2]), I64)
        left = builder.and_(builder.neg(place), ir.Constant(I64, STACK_ALIGNMENT - 1))
        count = Value(builder, builder.udiv(left, ir.Constant(I64, size)))
        most = count.make(arguments[2])
        return select(count < most, count, most).ir

    return signature(types.int64, pointer, position, types.int64), emit


def ask_for(builder: Any, place: Any, level: int = 1) -> None:
    """Emit the wish that what lies at ``place`` come to a cache, to be read."""
    kind = ir.FunctionType(ir.VoidType(), [_BYTES, I32, I32, I32])
    ask = builder.module.declare_intrinsic("llvm.prefetch", [_BYTES], kind)
    to_read, locality, data = (ir.Constant(I32, k) for k in (0, 4 - level, 1))
    builder.call(ask, [builder.bitcast(place, _BYTES), to_read, locality, data])


def _fetch_rule(_typing: Any, pointer: Any, index: Any, level: Any) -> Any:
    """Bring what lies there to a cache; nothing happens where nothing does."""
    position = _index_type(index)
    fits = isinstance(pointer, types.CPointer) and isinstance(
        level, types.IntegerLiteral
    )
    if position is None or not fits:
        return None

    def emit(context: Any, builder: Any, _typed: Any, arguments: Any) -> Any:
        place = builder.gep(arguments[0], [arguments[1]])
        ask_for(builder, place, level.literal_value)
        return context.get_dummy_value()

    return signature(types.void, pointer, position, level), emit


register("fetch", _fetch_rule, prefer_literal=True)
register("up_to_line", _up_to_line_rule)
register("settle", _settle_rule)
register("store_line", _store_line_rule, prefer_literal=True)


def _round_half(x: Value) -> Value:
    return _from_half(to_half(x))


def _round_bfloat(x: Value) -> Value:
    return from_bits(_nearest_bfloat(x))


_F32 = frozenset({types.float32})
define("round_f16", 1, _F32, untyped(_round_half))
define("round_bf16", 1, _F32, untyped(_round_bfloat))


def _stack(name: str, element: Any) -> None:
    def rule(_typing: Any, length: Any) -> Any:
        if not isinstance(length, types.IntegerLiteral):
            return None
        count = length.literal_value

        def emit(context: Any, builder: Any, _typed: Any, _arguments: Any) -> Any:
            array = ir.ArrayType(context.get_data_type(element), count)
            # In the entry block, where LLVM can turn small arrays into registers and
            # a loop around the call does not grow the stack. Numba's own helper would
            # also store a zero to every element, one by one.
            with builder.goto_entry_block():
                memory = builder.alloca(array)
            memory.align = STACK_ALIGNMENT
            return cgutils.gep(builder, memory, 0, 0, inbounds=True)

        return signature(types.CPointer(element), length), emit

    register(name, rule, prefer_literal=True)


for _name, _type in TYPES.items():
    if _type != types.boolean:
        _stack(f"stack_{_name}", _type)
