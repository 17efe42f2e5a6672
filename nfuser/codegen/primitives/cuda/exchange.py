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
from nfuser.codegen.primitives.cuda.memory import is_array, is_pointer, shared_address

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
    site: Site,
    address: Value,
    least: Value,
    load: str,
    registers: str,
    kind: ir.Type,
    *,
    together: bool = False,
) -> Value:
    """Load until what lies at ``address`` is not less than ``least``; return it.

    Threads of a warp that go on ``together`` all wait for the last of them: those that
    leave a loop one after the other would stay apart for long.
    """
    b = site.builder
    spin, done = b.append_basic_block("wait"), b.append_basic_block("wait_end")
    b.branch(spin)
    b.position_at_end(spin)
    found = site.assembly(load, registers, kind, [address], effect=True)
    waits = b.icmp_unsigned("<", found, least)
    if together:
        everyone = ir.Constant(I32, 0xFFFFFFFF)
        waits = site.external("llvm.nvvm.vote.any.sync", I1, [everyone, waits])
    b.cbranch(waits, spin, done)
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
    parts = 2 if like.type in (F64, I64) else 1
    found = [_opened(site, _box(site, p, i, n, parts)) for n in range(parts)]
    return _joined(site, found, like.type)


def _joined(site: Site, found: list[Value], kind: ir.Type) -> Value:
    """Return the value of type ``kind`` of which ``found`` are the words."""
    b = site.builder
    if len(found) == 2:
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


# Blocks of a cluster have boxes in their own shared memory, which a word of each turn
# is put into: above it stands the turn's number, counted from 1.


def _cluster_post_rule(a: Any, i: Any, block: Any, v: Any, turn: Any) -> Any:
    fits = _cluster_receive_rule(a, i, v, turn) and block in INTEGER
    return types.void(a, i, block, v, turn) if fits else None


def _cluster_receive_rule(a: Any, i: Any, v: Any, turn: Any) -> Any:
    fits = is_array(a) and a.dtype == types.uint64 and v in ANY
    return v(a, i, v, turn) if fits and {i, turn} <= INTEGER else None


def _of_turn(site: Site, turn: Value) -> Value:
    """Return what a box of this turn holds above its word."""
    b = site.builder
    wide = b.zext(turn, I64) if turn.type.width < 64 else turn
    return b.shl(wide, ir.Constant(I64, 32))


def _cluster_post(
    site: Site, a: Value, i: Value, block: Value, v: Value, turn: Value
) -> None:
    b = site.builder
    words, mark = _words(site, v), _of_turn(site, turn)
    block = b.trunc(block, I32) if block.type.width > 32 else block
    for part, word in enumerate(words):
        box = _box(site, site.data(a, 0), i, part, len(words))
        there = site.assembly(
            "mapa.shared::cluster.u32 $0, $1, $2;",
            "=r,r,r",
            I32,
            [shared_address(site, box), block],
        )
        site.assembly(
            "st.relaxed.cluster.shared::cluster.u64 [$0], $1;",
            "r,l,~{memory}",
            ir.VoidType(),
            [there, b.or_(b.zext(word, I64), mark)],
            effect=True,
        )


def _cluster_receive(site: Site, a: Value, i: Value, like: Value, turn: Value) -> Value:
    parts = 2 if like.type in (F64, I64) else 1
    least = _of_turn(site, turn)
    load = "ld.relaxed.cluster.shared::cta.u64 $0, [$1];", "=l,r,~{memory}", I64
    found: list[Value] = []
    for part in range(parts):
        box = shared_address(site, _box(site, site.data(a, 0), i, part, parts))
        full = _spin(site, box, least, *load, together=True)
        found.append(site.builder.trunc(full, I32))
    return _joined(site, found, like.type)


def _cluster_barrier(site: Site) -> None:
    # At the top of a kernel, where no branch is that it could be moved under.
    code = "barrier.cluster.arrive;\n\tbarrier.cluster.wait;"
    site.assembly(code, "~{memory}", ir.VoidType(), [], effect=True)


shuffle = _shuffle("shuffle")
shuffle_down = _shuffle("shuffle_down")
shuffle_xor = _shuffle("shuffle_xor")
ticket = primitive("ticket", _counter_rule(types.int32), _ticket)
reset = primitive("reset", _counter_rule(types.void), _reset)
wait = primitive("wait", _wait_rule, _wait)
post = primitive("post", _post_rule, _post)
receive = primitive("receive", _receive_rule, _receive)
cluster_post = primitive("cluster_post", _cluster_post_rule, _cluster_post)
cluster_receive = primitive("cluster_receive", _cluster_receive_rule, _cluster_receive)
cluster_barrier = primitive("cluster_barrier", types.void, _cluster_barrier)
