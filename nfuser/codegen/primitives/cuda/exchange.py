# SPDX-License-Identifier: Apache-2.0
"""CUDA primitives by which threads of a warp, and blocks of a grid, communicate."""

# numba-cuda and llvmlite ship no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

from llvmlite import ir

from nfuser.codegen.primitives.cuda.define import (
    ANY,
    F32,
    F64,
    I1,
    I32,
    I64,
    INTEGER,
    Site,
    Value,
    primitive,
    types,
)
from nfuser.codegen.primitives.cuda.memory import is_pointer

_MODES = {"shuffle": 0, "shuffle_down": 2, "shuffle_xor": 3}
_LAST_LANE = 0x1F


def _exchange_word(site: Site, mode: int, word: Value, lane: Value) -> Value:
    # The NVVM intrinsic is convergent; inline PTX could be moved under a branch.
    pair = ir.LiteralStructType([I32, I1])
    arguments = [
        ir.Constant(I32, 0xFFFFFFFF),
        ir.Constant(I32, mode),
        word,
        lane,
        ir.Constant(I32, _LAST_LANE),
    ]
    both = site.external("llvm.nvvm.shfl.sync.i32", pair, arguments)
    return site.builder.extract_value(both, 0)


def _exchange(site: Site, mode: int, value: Value, lane: Value) -> Value:
    b = site.builder
    kind = value.type
    if kind == F32:
        return b.bitcast(_exchange_word(site, mode, b.bitcast(value, I32), lane), F32)
    if kind == F64:
        return b.bitcast(_exchange(site, mode, b.bitcast(value, I64), lane), F64)
    if kind == I32:
        return _exchange_word(site, mode, value, lane)
    if kind == I64:
        thirty_two = ir.Constant(I64, 32)
        low = _exchange_word(site, mode, b.trunc(value, I32), lane)
        high = b.trunc(b.lshr(value, thirty_two), I32)
        high = b.shl(b.zext(_exchange_word(site, mode, high, lane), I64), thirty_two)
        return b.or_(high, b.zext(low, I64))
    return b.trunc(_exchange_word(site, mode, b.zext(value, I32), lane), kind)


def _shuffle(name: str) -> Any:
    def rule(v: Any, lane: Any) -> Any:
        # A literal lane arrives as int64; the cast of a constant costs nothing.
        return v(v, types.int32) if v in ANY and lane in INTEGER else None

    def emit(site: Site, v: Value, lane: Value) -> Value:
        return _exchange(site, _MODES[name], v, lane)

    return primitive(name, rule, emit)


def _counter_rule(result: Any) -> Any:
    def rule(p: Any, i: Any) -> Any:
        fits = is_pointer(p, types.uint32) and i in INTEGER
        return result(p, i) if fits else None

    return rule


def _ticket(site: Site, p: Value, i: Value) -> Value:
    return site.assembly(
        "atom.add.acq_rel.gpu.global.u32 $0, [$1], 1;",
        "=r,l,~{memory}",
        I32,
        [site.element(p, i, 1)],
        effect=True,
    )


def _reset(site: Site, p: Value, i: Value) -> None:
    site.builder.store(ir.Constant(I32, 0), site.element(p, i, 1))


def _wait(site: Site, p: Value, i: Value, least: Value) -> None:
    load = "ld.acquire.gpu.global.u32 $0, [$1];", "=r,l,~{memory}", I32
    _spin(site, site.element(p, i, 1), least, *load)


def _spin(
    site: Site, address: Value, least: Value, load: str, registers: str, kind: ir.Type
) -> Value:
    """Load until what lies at ``address`` is not less than ``least``; return it."""
    b = site.builder
    spin, done = b.append_basic_block("wait"), b.append_basic_block("wait_end")
    b.branch(spin)
    b.position_at_end(spin)
    found = site.assembly(load, registers, kind, [address], effect=True)
    b.cbranch(b.icmp_unsigned("<", found, least), spin, done)
    b.position_at_end(done)
    return found


def _wait_rule(p: Any, i: Any, least: Any) -> Any:
    fits = is_pointer(p, types.uint32) and i in INTEGER and least in INTEGER
    return types.void(p, i, types.int32) if fits else None


# A box is 64 bits wide: a word, and above it whether it is full. Boxes that are empty
# hold 0. Wider values take two neighbours.
_FULL = 1 << 32


def _box_rule(p: Any, i: Any, v: Any) -> bool:
    return is_pointer(p, types.uint64) and i in INTEGER and v in ANY


def _post_rule(p: Any, i: Any, v: Any) -> Any:
    return types.void(p, i, v) if _box_rule(p, i, v) else None


def _receive_rule(p: Any, i: Any, v: Any) -> Any:
    return v(p, i, v) if _box_rule(p, i, v) else None


def _box(site: Site, p: Value, i: Value, part: int, parts: int) -> Value:
    first = site.builder.sext(i, I64) if i.type.width < 64 else i
    if parts > 1:
        b = site.builder
        first = b.add(b.mul(first, ir.Constant(I64, parts)), ir.Constant(I64, part))
    return site.builder.gep(p, [first])


def _words(site: Site, value: Value) -> list[Value]:
    """Return the bits of ``value`` as words of 32 bits, the low one first."""
    b = site.builder
    if value.type == F32:
        return [b.bitcast(value, I32)]
    if value.type == F64:
        value = b.bitcast(value, I64)
    if value.type == I64:
        high = b.trunc(b.lshr(value, ir.Constant(I64, 32)), I32)
        return [b.trunc(value, I32), high]
    return [value if value.type == I32 else b.zext(value, I32)]


def _post(site: Site, p: Value, i: Value, v: Value) -> None:
    b = site.builder
    words = _words(site, v)
    for part, word in enumerate(words):
        full = b.or_(b.zext(word, I64), ir.Constant(I64, _FULL))
        address = _box(site, p, i, part, len(words))
        site.assembly(
            "st.relaxed.gpu.global.u64 [$0], $1;",
            "l,l,~{memory}",
            ir.VoidType(),
            [address, full],
            effect=True,
        )


def _receive(site: Site, p: Value, i: Value, like: Value) -> Value:
    b, kind = site.builder, like.type
    parts = 2 if kind in (F64, I64) else 1
    found = [_opened(site, _box(site, p, i, n, parts)) for n in range(parts)]
    if parts == 2:
        high = b.shl(b.zext(found[1], I64), ir.Constant(I64, 32))
        whole = b.or_(high, b.zext(found[0], I64))
        return b.bitcast(whole, F64) if kind == F64 else whole
    if kind == F32:
        return b.bitcast(found[0], F32)
    return found[0] if kind == I32 else b.trunc(found[0], kind)


def _opened(site: Site, address: Value) -> Value:
    """Wait until the box at ``address`` is full; return its word."""
    load = "ld.relaxed.gpu.global.u64 $0, [$1];", "=l,l,~{memory}", I64
    box = _spin(site, address, ir.Constant(I64, _FULL), *load)
    return site.builder.trunc(box, I32)


shuffle = _shuffle("shuffle")
shuffle_down = _shuffle("shuffle_down")
shuffle_xor = _shuffle("shuffle_xor")
ticket = primitive("ticket", _counter_rule(types.int32), _ticket)
reset = primitive("reset", _counter_rule(types.void), _reset)
wait = primitive("wait", _wait_rule, _wait)
post = primitive("post", _post_rule, _post)
receive = primitive("receive", _receive_rule, _receive)
