# SPDX-License-Identifier: Apache-2.0
"""CUDA primitives that read and write global memory.

``load`` promises that nothing writes the element while the kernel runs, so it may go
through the read-only cache and be repeated or moved. What other blocks write is read
with ``load_volatile``.
"""

# numba-cuda and llvmlite ship no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from nfuser.codegen.primitives.cuda.convert import (
    narrow_bf16,
    narrow_f16,
    widen_bf16,
    widen_f16,
)
from nfuser.codegen.primitives.cuda.define import (
    F32,
    F64,
    FLOAT,
    I8,
    I16,
    I32,
    I64,
    INTEGER,
    NUMBER,
    ArrayPointer,
    Site,
    Value,
    primitive,
    types,
)

Widen = Callable[[Site, Value], Value]


def is_pointer(kind: Any, element: Any = None) -> bool:
    """Return whether ``kind`` points to ``element``, or else to any number."""
    if not isinstance(kind, types.CPointer):
        return False
    return kind.dtype == element if element is not None else kind.dtype in NUMBER


def is_array(kind: Any) -> bool:
    """Return whether ``kind`` is a local or shared array."""
    return isinstance(kind, (types.Array, ArrayPointer))


def shared_address(site: Site, place: Value) -> Value:
    """Return the address of ``place`` in shared memory, as instructions take it."""
    kind = ir.PointerType(place.type.pointee, addrspace=3)
    return site.builder.ptrtoint(site.builder.addrspacecast(place, kind), I32)


def unchanging(site: Site, load: Value) -> Value:
    """Mark ``load`` as one of memory that the kernel does not write."""
    load.set_metadata("invariant.load", site.builder.module.add_metadata([]))
    return load


def _read(site: Site, p: Value, i: Value) -> Value:
    return unchanging(site, site.builder.load(site.element(p, i, 1)))


def _loader(name: str, storage: Any, value: Any, widen: Widen) -> Any:
    def rule(p: Any, i: Any) -> Any:
        fits = is_pointer(p, storage) and i in INTEGER
        return value(p, i) if fits else None

    def emit(site: Site, p: Value, i: Value) -> Value:
        return widen(site, _read(site, p, i))

    return primitive(name, rule, emit)


def _storer(name: str, storage: Any, values: frozenset[Any], narrow: Widen) -> Any:
    def rule(p: Any, i: Any, v: Any) -> Any:
        fits = is_pointer(p, storage) and i in INTEGER and v in values
        return types.void(p, i, v) if fits else None

    def emit(site: Site, p: Value, i: Value, v: Value) -> None:
        site.builder.store(narrow(site, v), site.element(p, i, 1))

    return primitive(name, rule, emit)


def _load_rule(p: Any, i: Any) -> Any:
    return p.dtype(p, i) if is_pointer(p) and i in INTEGER else None


def _store_rule(p: Any, i: Any, v: Any) -> Any:
    fits = is_pointer(p, v) and i in INTEGER
    return types.void(p, i, v) if fits else None


def _store(site: Site, p: Value, i: Value, v: Value) -> None:
    site.builder.store(v, site.element(p, i, 1))


def _widen_bool(site: Site, bits: Value) -> Value:
    return site.builder.icmp_unsigned("!=", bits, ir.Constant(I8, 0))


def _narrow_bool(site: Site, x: Value) -> Value:
    return site.builder.zext(x, I8)


_REGISTERS = {  # LLVM type: PTX type, constraint, LLVM type of the register
    I8: ("u8", "h", I16),
    I16: ("u16", "h", I16),
    I32: ("u32", "r", I32),
    I64: ("u64", "l", I64),
    F32: ("f32", "f", F32),
    F64: ("f64", "d", F64),
}


def _load_volatile(site: Site, p: Value, i: Value) -> Value:
    target = site.context.get_value_type(site.result)
    kind, constraint, register = _REGISTERS[target]
    code = f"ld.relaxed.gpu.global.{kind} $0, [$1];"
    clobber = f"={constraint},l,~{{memory}}"
    address = site.element(p, i, 1)
    value = site.assembly(code, clobber, register, [address], effect=True)
    return site.builder.trunc(value, target) if register != target else value


_UNIT = frozenset({types.boolean})
_WORD = types.uint16

load = primitive("load", _load_rule, _read)
load_bool = _loader("load_bool", types.uint8, types.boolean, _widen_bool)
load_f16 = _loader("load_f16", _WORD, types.float32, widen_f16)
load_bf16 = _loader("load_bf16", _WORD, types.float32, widen_bf16)
load_volatile = primitive("load_volatile", _load_rule, _load_volatile)
store = primitive("store", _store_rule, _store)
store_bool = _storer("store_bool", types.uint8, _UNIT, _narrow_bool)
store_f16 = _storer("store_f16", _WORD, FLOAT, narrow_f16)
store_bf16 = _storer("store_bf16", _WORD, FLOAT, narrow_bf16)
