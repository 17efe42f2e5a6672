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
    shift = 2 if bits == 32 else 1
    slot = _and(builder, place, _SLOT)
    index = _and(builder, place, ~_SLOT)
    block = builder.or_(builder.lshr(index, _constant(shift)), slot)
    counter = [*_halves(builder, block), *_halves(builder, call)]
    found = _rounds(builder, counter, _halves(builder, key))
    is_second = _has_bit(builder, index, 0)
    if bits == 64:
        low, high = _chosen(builder, is_second, found[2:], found[:2])
        return builder.or_(low, builder.shl(high, _constant(32)))
    pair = _chosen(builder, _has_bit(builder, index, 1), found[2:], found[:2])
    return builder.select(is_second, pair[1], pair[0])


def _rounds(builder: Any, counter: list[Any], key: list[Any]) -> list[Any]:
    c0, c1, c2, c3 = counter
    k0, k1 = key
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


def _chosen(builder: Any, condition: Any, yes: list[Any], no: list[Any]) -> list[Any]:
    return [builder.select(condition, y, n) for y, n in zip(yes, no, strict=True)]


def _has_bit(builder: Any, x: Any, number: int) -> Any:
    return builder.icmp_unsigned("!=", _and(builder, x, 1 << number), _constant(0))


def _and(builder: Any, x: Any, mask: int) -> Any:
    return builder.and_(x, _constant(mask & (1 << 64) - 1))


def _constant(number: int) -> Any:
    return ir.Constant(_WORD, number)
