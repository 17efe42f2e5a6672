# SPDX-License-Identifier: Apache-2.0
"""Philox4x32-10, as LLVM IR for the CPU and for CUDA alike.

A GPU keeps the words of 32 bits in registers of as many: a product is one wide
multiplication, and the rest of a round one instruction a word. A CPU keeps them in
integers of 64, of which the upper half is known to be 0: so a product is one
multiplication of halves, in vectors as well.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from llvmlite import ir

Registers: TypeAlias = Literal[32, 64]
"""The size of the integers that words of 32 bits are kept in."""

_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_KEY_STEPS = 0x9E3779B9, 0xBB67AE85
_ROUNDS = 10
_SLOT = 0xFF << 56  # the bits of a place that number the slot
_SHIFTS = {16: 3, 32: 2, 64: 1}  # from the index of an element to that of its block
_WORD = ir.IntType(64)


def philox_word(
    builder: Any, bits: int, place: Any, key: Any, call: Any, registers: Registers
) -> Any:
    """Return the word of ``bits`` bits of the element at ``place`` of a draw call.

    A place is the index of an element in its low 56 bits, and a slot above them.
    """
    block = _block_of(builder, bits, place)
    halves = _rounds(builder, block, key, call, registers)
    return _taken(builder, bits, halves, place, 1)[0]


def philox_packet(
    builder: Any, bits: int, place: Any, key: Any, call: Any, width: int
) -> list[Any]:
    """Return a GPU's words of ``width`` places on from one, each block made once.

    The block that the last of them may reach into is made where they do: where LLVM
    knows that they do not, nothing is left of it.
    """
    first, count = _block_of(builder, bits, place), 128 // bits
    blocks = -(-width // count)
    halves: list[Any] = []
    for k in range(blocks):
        number = builder.add(first, _constant(k))
        halves += _rounds(builder, number, key, call, 32)
    within = _and(builder, place, count - 1)
    most = _constant(blocks * count - width)
    before = builder.block
    with builder.if_then(builder.icmp_unsigned(">", within, most)):
        number = builder.add(first, _constant(blocks))
        more = _rounds(builder, number, key, call, 32)
        made_in = builder.block
    for half in more:
        joined = builder.phi(half.type)
        joined.add_incoming(ir.Constant(half.type, 0), before)
        joined.add_incoming(half, made_in)
        halves.append(joined)
    return _taken(builder, bits, halves, place, width)


def philox_block(builder: Any, block: Any, key: Any, call: Any) -> list[Any]:
    """Return the four words of 32 bits, on a CPU, of the block of this number.

    One after the other in memory they are its words of 16 and of 64 bits, too. The slot
    is part of the number, as it is of places.
    """
    return _rounds(builder, block, key, call, 64)


def _block_of(builder: Any, bits: int, place: Any) -> Any:
    """Return the number of the block that ``place`` is in, with its slot."""
    slot = _and(builder, place, _SLOT)
    index = _and(builder, place, ~_SLOT)
    shift = _SHIFTS[bits]
    return builder.or_(builder.lshr(index, _constant(shift)), slot)


def _taken(
    builder: Any, bits: int, halves: list[Any], place: Any, width: int
) -> list[Any]:
    """Return ``width`` words from that of ``place`` on, in integers of 64 bits."""
    if bits == 16:
        # Of the first and the last register a half may be left over.
        count = width // 2 + 1
        wide = [
            _wide(builder, x)
            for x in _from_place(builder, (4, 2), 2, halves, place, count)
        ]
        low = (_and(builder, x, 0xFFFF) for x in wide)
        high = (builder.lshr(x, _constant(16)) for x in wide)
        words = [x for pair in zip(low, high, strict=True) for x in pair]
        return _from_place(builder, (1,), 1, words, place, width)
    if bits == 32:
        found = _from_place(builder, (2, 1), 1, halves, place, width)
        return [_wide(builder, half) for half in found]
    words = [
        builder.or_(_wide(builder, x), builder.shl(_wide(builder, y), _constant(32)))
        for x, y in zip(halves[::2], halves[1::2], strict=True)
    ]
    return _from_place(builder, (1,), 1, words, place, width)


def _from_place(
    builder: Any,
    steps: tuple[int, ...],
    size: int,
    words: list[Any],
    place: Any,
    width: int,
) -> list[Any]:
    """Return ``width`` of ``words``, of ``size`` elements each, from ``place`` on.

    ``steps`` are the powers of two that a place within its block is made of.
    """
    # There may be no word beyond the last block, where none of it is wanted.
    last = len(words) - 1
    for n, step in enumerate(steps):
        bit = _and(builder, place, step)
        is_later = builder.icmp_unsigned("!=", bit, _constant(0))
        left = sum(steps[n + 1 :]) // size
        words = [
            builder.select(is_later, words[min(k + step // size, last)], words[k])
            for k in range(min(width + left, last + 1))
        ]
        last = len(words) - 1
    return words


def _rounds(
    builder: Any, block: Any, key: Any, call: Any, registers: Registers
) -> list[Any]:
    """Return the four words of 32 bits of a block."""
    c0, c1, c2, c3, k0, k1 = (
        half for x in (block, call, key) for half in _halves(builder, x, registers)
    )
    for _ in range(_ROUNDS):
        (left_low, left_high), (right_low, right_high) = (
            _product(builder, c, by)
            for c, by in zip((c0, c2), _MULTIPLIERS, strict=True)
        )
        c0, c1 = builder.xor(builder.xor(right_high, c1), k0), right_low
        c2, c3 = builder.xor(builder.xor(left_high, c3), k1), left_low
        k0, k1 = (
            _sum(builder, k, step) for k, step in zip((k0, k1), _KEY_STEPS, strict=True)
        )
    return [c0, c1, c2, c3]


def _product(builder: Any, word: Any, by: int) -> list[Any]:
    """Return the halves of a product of two words of 32 bits."""
    if word.type == _WORD:
        return _halves(builder, builder.mul(word, _constant(by)), 64)
    # LLVM would take all that follows for words of 64 bits.
    both = ir.LiteralStructType([word.type, word.type])
    found = builder.asm(
        ir.FunctionType(both, [word.type, word.type]),
        "{ .reg .b64 t; mul.wide.u32 t, $2, $3; mov.b64 {$0, $1}, t; }",
        "=r,=r,r,n",
        [word, ir.Constant(word.type, by)],
        side_effect=False,
    )
    return [builder.extract_value(found, k) for k in range(2)]


def _sum(builder: Any, word: Any, step: int) -> Any:
    """Return the sum of two words of 32 bits, wrapping."""
    total = builder.add(word, ir.Constant(word.type, step))
    return total if word.type.width == 32 else _and(builder, total, 0xFFFFFFFF)


def _wide(builder: Any, word: Any) -> Any:
    return word if word.type == _WORD else builder.zext(word, _WORD)


def _halves(builder: Any, x: Any, registers: Registers) -> list[Any]:
    high = builder.lshr(x, _constant(32))
    if registers == 64:
        return [_and(builder, x, 0xFFFFFFFF), high]
    return [builder.trunc(part, ir.IntType(32)) for part in (x, high)]


def _and(builder: Any, x: Any, mask: int) -> Any:
    return builder.and_(x, _constant(mask & (1 << 64) - 1))


def _constant(number: int) -> Any:
    return ir.Constant(_WORD, number)
