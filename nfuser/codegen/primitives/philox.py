# SPDX-License-Identifier: Apache-2.0
"""Philox4x32-10, as LLVM IR for the CPU and for CUDA alike.

Words of 32 bits are kept in integers of 64, of which the upper half is known to be 0:
so a product is one multiplication of halves on the CPU, also in vectors, and one wide
multiplication of 32 bits on a GPU.
"""

# llvmlite carries no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

from llvmlite import ir

_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_KEY_STEPS = 0x9E3779B9, 0xBB67AE85
_ROUNDS = 10
_SLOT = 0xFF << 56  # the bits of a place that number the slot
_WORD = ir.IntType(64)


def philox_word(builder: Any, bits: int, place: Any, key: Any, call: Any) -> Any:
    """Return the word of ``bits`` bits of the element at ``place`` of a draw call.

    A place is the index of an element in its low 56 bits, and a slot above them.
    """
    block = _block_of(builder, bits, place)
    halves = _rounds(builder, block, key, call)
    return _words(builder, bits, _from_place(builder, bits, halves, place, 1))[0]


def philox_packet(
    builder: Any, bits: int, place: Any, key: Any, call: Any, width: int
) -> list[Any]:
    """Return the words of ``width`` places from ``place`` on, each block made once.

    The block that the last of them may reach into is made where they do: where LLVM
    knows that they do not, nothing is left of it.
    """
    first, count = _block_of(builder, bits, place), 128 // bits
    blocks = -(-width // count)
    halves: list[Any] = []
    for k in range(blocks):
        number = builder.add(first, _constant(k))
        halves += _rounds(builder, number, key, call)
    within = _and(builder, place, count - 1)
    most = _constant(blocks * count - width)
    before = builder.block
    with builder.if_then(builder.icmp_unsigned(">", within, most)):
        number = builder.add(first, _constant(blocks))
        more = _rounds(builder, number, key, call)
        made_in = builder.block
    for half in more:
        joined = builder.phi(_WORD)
        joined.add_incoming(_constant(0), before)
        joined.add_incoming(half, made_in)
        halves.append(joined)
    return _words(builder, bits, _from_place(builder, bits, halves, place, width))


def philox_block(builder: Any, bits: int, place: Any, key: Any, call: Any) -> list[Any]:
    """Return the words of the block that begins at ``place``: 4 of 32 bits, 2 of 64."""
    block = _block_of(builder, bits, place)
    return _words(builder, bits, _rounds(builder, block, key, call))


def _block_of(builder: Any, bits: int, place: Any) -> Any:
    """Return the number of the block that ``place`` is in, with its slot."""
    slot = _and(builder, place, _SLOT)
    index = _and(builder, place, ~_SLOT)
    shift = 2 if bits == 32 else 1
    return builder.or_(builder.lshr(index, _constant(shift)), slot)


def _from_place(
    builder: Any, bits: int, halves: list[Any], place: Any, width: int
) -> list[Any]:
    """Return the halves of ``width`` words from that of ``place`` on."""
    size = bits // 32
    for step in (2, 1) if bits == 32 else (1,):
        bit = _and(builder, place, step)
        is_later = builder.icmp_unsigned("!=", bit, _constant(0))
        halves = [
            builder.select(is_later, halves[k + step * size], halves[k])
            for k in range((width + step - 1) * size)
        ]
    return halves


def _words(builder: Any, bits: int, halves: list[Any]) -> list[Any]:
    if bits == 32:
        return halves
    high = (builder.shl(x, _constant(32)) for x in halves[1::2])
    return [builder.or_(x, y) for x, y in zip(halves[::2], high, strict=True)]


def _rounds(builder: Any, block: Any, key: Any, call: Any) -> list[Any]:
    """Return the four words of 32 bits of a block."""
    c0, c1, c2, c3 = (*_halves(builder, block), *_halves(builder, call))
    k0, k1 = _halves(builder, key)
    for _ in range(_ROUNDS):
        left = builder.mul(c0, _constant(_MULTIPLIERS[0]))
        right = builder.mul(c2, _constant(_MULTIPLIERS[1]))
        (left_low, left_high), (right_low, right_high) = (
            _halves(builder, product) for product in (left, right)
        )
        c0, c1 = builder.xor(builder.xor(right_high, c1), k0), right_low
        c2, c3 = builder.xor(builder.xor(left_high, c3), k1), left_low
        k0, k1 = (
            _and(builder, builder.add(k, _constant(step)), 0xFFFFFFFF)
            for k, step in zip((k0, k1), _KEY_STEPS, strict=True)
        )
    return [c0, c1, c2, c3]


def _halves(builder: Any, x: Any) -> list[Any]:
    return [_and(builder, x, 0xFFFFFFFF), builder.lshr(x, _constant(32))]


def _and(builder: Any, x: Any, mask: int) -> Any:
    return builder.and_(x, _constant(mask & (1 << 64) - 1))


def _constant(number: int) -> Any:
    return ir.Constant(_WORD, number)
